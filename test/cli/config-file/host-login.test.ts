/** The login of a host's own entry, where mcp-portage logs in. */
import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { parseConfig } from '../../../src/cli/parse/config.ts';
import { read } from './read-text.ts';

async function loginOf(entry: object, ...argv: readonly string[]) {
  const server = { type: 'http', url: 'https://web.example/mcp', ...entry };
  const file = await read({ mcpServers: { web: server } });
  const words = argv.length > 0 ? argv : ['connect'];
  const command = parseCommandLine([...words, '--config', 'mcp.json']);
  if (command.kind !== 'bridge') throw new Error('this is no command about a server');
  const readFile = () => {
    throw new Error('there are no other files');
  };
  const around = { cwd: '/', env: { HOME: '/home/me' }, platform: 'linux', stderrIsTerminal: false, readFile } as const;
  return parseConfig(command, around, file).config.servers[0].remote.login;
}

const USED = {
  client: { id: 'mine', proof: { kind: 'none' } },
  scopes: ['read', 'write'],
  callback: new URL('http://localhost:3118/callback'),
} as const;

const FORMS: Readonly<Record<string, object>> = {
  'Claude Code': { oauth: { clientId: 'mine', callbackPort: 3118, scopes: 'read write' } },
  'Gemini CLI': {
    oauth: { clientId: 'mine', redirectUri: 'http://localhost:3118/callback', scopes: ['read', 'write'] },
  },
  Cursor: {
    auth: { CLIENT_ID: 'mine', scopes: ['read', 'write'] },
    portage: { oauthCallback: 'http://localhost:3118/callback' },
  },
  Codex: {
    oauth_client_id: 'mine',
    scopes: ['read', 'write'],
    portage: { oauthCallback: 'http://localhost:3118/callback' },
  },
};

for (const [host, entry] of Object.entries(FORMS)) {
  test(`a login uses what the entry of ${host} says of it`, async (t) => {
    t.like(await loginOf(entry), USED);
  });
}

test('the secret in the environment is withheld from the client ids of several servers, and is for the one that is chosen', async (t) => {
  const entry = (url: string) => ({ type: 'http', url, oauth: { clientId: 'mine' }, portage: { login: 'on-demand' } });
  const mcpServers = { one: entry('https://one.example/mcp'), two: entry('https://two.example/mcp') };
  const file = await read({ mcpServers });
  const env = { HOME: '/home/me', MCP_PORTAGE_OAUTH_CLIENT_SECRET: 'of-one-server' };
  const readFile = () => {
    throw new Error('there are no other files');
  };
  const around = { cwd: '/', env, platform: 'linux', stderrIsTerminal: false, readFile } as const;
  for (const [proofs, ...words] of [
    [['none', 'none'], 'serve'],
    [['none', 'none'], 'probe'],
    [['secret'], 'connect', 'one'],
  ] as const) {
    const command = parseCommandLine([...words, '--config', 'mcp.json']);
    if (command.kind !== 'bridge') throw new Error('this is no command about a server');
    const { servers } = parseConfig(command, around, file).config;
    t.deepEqual(
      servers.map(({ remote }) => remote.login?.client?.proof.kind),
      [...proofs],
      words.join(' '),
    );
    t.is(JSON.stringify(servers).includes('of-one-server'), words[0] === 'connect');
  }
});

test('what is no login of ours is passed over: other addresses, variables of the host, wrong kinds', async (t) => {
  const usual = { client: undefined, scopes: [], callback: new URL('http://127.0.0.1:0/callback') };
  for (const oauth of [
    true,
    { clientId: `$${'{input:id}'}`, redirectUri: 'cursor://callback', scopes: 7 },
    { clientId: 5, callbackPort: 'x' },
    { callbackPort: 70_000 },
    { redirectUri: 'https://host.example/callback' },
  ]) {
    t.like(await loginOf({ oauth }), usual, JSON.stringify(oauth));
  }
});

test('the options of the user win, and without a login here the one of the host is no mistake', async (t) => {
  const { oauth } = FORMS['Claude Code'] as { oauth: object };
  t.like(await loginOf({ oauth }, 'connect', '--oauth-callback', 'http://127.0.0.1:9/'), {
    callback: new URL('http://127.0.0.1:9/'),
  });
  t.like(await loginOf({ oauth, portage: { oauthScope: ['call'] } }), { scopes: ['call'] });
  t.is(await loginOf({ oauth }, 'serve'), undefined);
  t.like(await loginOf({ oauth, portage: { login: 'on-demand' } }, 'serve'), USED);
  t.is(await loginOf({ oauth, headers: { Authorization: 'Bearer x' } }), undefined);
});
