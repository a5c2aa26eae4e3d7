/** Options of a program: what they come to, and what is said of those that cannot be used. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { renderLibraryOptions } from '../../scripts/library-options.ts';
import { fingerprint } from '../../src/config.ts';
import { BridgeError } from '../../src/errors.ts';
import { type LibraryVerb, readOptions } from '../../src/library/read-options.ts';

const server = { command: 'node', args: ['server.js'] };

async function read(options: object, verb: LibraryVerb = 'serve') {
  return (await readOptions(verb, options)).config;
}

async function refusal(options: unknown, verb: LibraryVerb = 'serve'): Promise<string> {
  const error = await readOptions(verb, options as object).catch((thrown: unknown) => thrown);
  return error instanceof BridgeError ? `${error.code} ${error.message}` : `no refusal: ${error}`;
}

test('the types of the options are those of the command line (npm run docs)', async (t) => {
  const text = await readFile(new URL('../../src/library/option-types.ts', import.meta.url), 'utf8');
  t.is(text, renderLibraryOptions());
});

test('options have the names and meanings of the command line', async (t) => {
  const config = await read({
    server: { ...server, env: { A: '1', B: undefined }, portage: { includeTool: ['read_*', 'list_*'] } },
    port: 0,
    requestTimeout: 30,
    maxMessageBytes: '64k',
    allowHost: 'example.com',
    sse: false,
  });
  t.like(config.listener, {
    kind: 'http',
    addresses: [{ kind: 'tcp', port: 0 }],
    endpoints: { httpSse: 'off' },
    access: { allowHosts: ['example.com'] },
  });
  const [only] = config.servers;
  t.is(only.listing, undefined);
  t.deepEqual(only.target, { kind: 'command', command: 'node', args: ['server.js'] });
  t.like(only, {
    limits: { requestTimeoutMs: 30_000, maxMessageBytes: 65_536 },
    tools: { include: ['read_*', 'list_*'] },
  });
  t.is(only.child.env.A, '1');
  t.false('B' in only.child.env);
});

test('single tools have settings by the names that the server gives them', async (t) => {
  const tools = { find_v2: { name: 'find', description: 'Finds it.' }, drop: { hidden: true } };
  const config = await read({ server: { ...server, portage: { tools, describeTool: { find_v2: '$' + '{x}' } } } });
  const none = { name: undefined, title: undefined, description: undefined, isHidden: false, callers: undefined };
  t.deepEqual(
    [...config.servers[0].tools.shapes],
    [
      ['find_v2', { ...none, name: 'find', description: '$' + '{x}' }],
      ['drop', { ...none, isHidden: true }],
    ],
  );
  t.not(fingerprint(config), fingerprint(await read({ server: { ...server, portage: { tools } } })));
  t.is(
    await refusal({ server: { ...server, portage: { tools: { a: { callers: ['alice'] } } } } }),
    'ERR_CONFIG_COMBINATION server.portage.tools.a: callers says who may use this tool, but callers are not authenticated; add authToken or authIssuer, or leave callers out.',
  );
});

test('how to log in is an object, with the names of the options of the command line', async (t) => {
  const login = { resource: 'none', params: { audience: 'x' }, token: 'id', tokenEndpoint: 'https://a.example/t' };
  const config = await read({ server: { url: 'https://a.example/mcp', portage: { login } } }, 'connect');
  t.like(config.servers[0].remote.login, {
    resource: { kind: 'left-out' },
    extraParameters: new Map([['audience', 'x']]),
    token: 'id',
    tokenEndpoint: new URL('https://a.example/t'),
  });
  const same = await read({ server: { url: 'https://a.example/mcp', portage: { login: {} } }, login: { token: 'id' } });
  t.is(same.servers[0].remote.login?.token, 'id');
  const refused = { server: { url: 'https://a.example/mcp', portage: { login: { params: { state: 'hunter2' } } } } };
  t.is(
    await refusal(refused, 'connect'),
    'ERR_CONFIG_OPTION server.portage.login.params: state is set by the login itself; leave it out.',
  );
});

test('variables of a file are set for the server, whoever may write to it, and those given in place win', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'read-options-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const envFile = join(folder, '.env');
  await writeFile(envFile, 'A=1\nB="two words"\n');
  await chmod(envFile, 0o664);
  const config = await read({ server: { ...server, env: { A: '3' }, envFile } });
  t.like(config.servers[0].child.env, { A: '3', B: 'two words' });
  t.regex(
    await refusal({ server: { ...server, envFile: join(folder, 'none') } }),
    /^ERR_CONFIG_OPTION server\.envFile: the file that is named here does not exist\.$/,
  );
  t.regex(await refusal({ server: { ...server, portage: { envFile } } }), /write envFile beside the command/);
});

test('what is said of one server wins over what is said of all', async (t) => {
  const config = await read({
    requestTimeout: '1m',
    servers: { a: server, b: { ...server, portage: { requestTimeout: '2m', required: true } } },
  });
  t.deepEqual(
    config.servers.map(({ listing, limits }) => [listing?.segment, listing?.isRequired, limits.requestTimeoutMs]),
    [
      ['a', false, 60_000],
      ['b', true, 120_000],
    ],
  );
});

test('texts are taken as they are, and settings of the command line in the environment are not looked at', async (t) => {
  process.env.MCP_PORTAGE_PORT = '1234';
  process.env.MCP_PORTAGE_BEARER_TOKEN = 'secret';
  t.teardown(() => {
    delete process.env.MCP_PORTAGE_PORT;
    delete process.env.MCP_PORTAGE_BEARER_TOKEN;
  });
  const config = await read({
    server: { url: new URL('https://example.com/mcp'), headers: { 'X-Text': `\${HOME}`, 'X-None': undefined } },
  });
  t.like(config.listener, { addresses: [{ kind: 'tcp', port: 8000 }] });
  t.deepEqual([...config.servers[0].remote.headers], [['x-text', `\${HOME}`]]);
});

test('no browser opens and nothing is shown of the bridge unless that is asked for', async (t) => {
  const remote = { url: 'https://example.com/mcp' };
  t.is((await read({ server: remote }, 'connect')).servers[0].remote.login, undefined);
  t.not((await read({ server: remote, login: 'on-demand' }, 'connect')).servers[0].remote.login, undefined);
  t.is((await read({ server })).observation.status, 'off');
  t.is((await read({ server, status: true })).observation.status, 'served');
});

const REFUSALS: Readonly<Record<string, readonly [options: unknown, refusal: RegExp, verb?: LibraryVerb]>> = {
  'nothing at all': [undefined, /^ERR_CONFIG_OPTION Expected an object of options/],
  'no server': [{}, /^ERR_CONFIG_OPTION Expected `server` for one server or `servers` for several; got neither\.$/],
  'one and several': [{ server, servers: { server } }, /got both\.$/],
  'none of several': [{ servers: {} }, /^ERR_CONFIG_OPTION servers: expected one at least/],
  'a name that nobody knows': [{ server, prot: 1 }, /^ERR_CONFIG_OPTION prot: .* did you mean port\?$/],
  'a value that is none': [{ server, port: 'x' }, /^ERR_CONFIG_OPTION port: expected a port number/],
  'a value of a wrong kind': [
    { server, port: {} },
    /^ERR_CONFIG_OPTION port: expected a string or a number, got an object/,
  ],
  'a function': [{ server, stateDir: () => 'x' }, /^ERR_CONFIG_OPTION stateDir: expected a string/],
  'an object that holds itself': [{ server: circular() }, /^ERR_CONFIG_OPTION server\.(again\.)+.*nested/],
  'a mistake in one of several': [
    { servers: { 'my server': { command: 'x', args: [1] }, b: { url: 'ftp://x' } } },
    /^ERR_CONFIG_OPTION servers\["my server"\]\.args\[0\]: expected a string, got a number\.\nservers\.b\.url: /,
  ],
  'a command and a URL': [
    { server: { command: 'x', url: 'http://x' } },
    /^ERR_CONFIG_OPTION server\.url: .* leave one/,
  ],
  'an option of one server for all': [
    { servers: { a: server }, bearerTokenFile: 'x' },
    /^ERR_CONFIG_OPTION bearerTokenFile: /,
  ],
  'an option of all in one server': [
    { server: { ...server, portage: { port: 1 } } },
    /^ERR_CONFIG_OPTION server\.portage\.port: /,
  ],
  'an option without meaning': [
    { server, port: 1 },
    /^ERR_CONFIG_COMBINATION port has no meaning for connect/,
    'connect',
  ],
  'options that exclude each other': [{ server, tlsCert: 'a' }, /^ERR_CONFIG_COMBINATION tlsCert needs tlsKey: /],
  'a port for everybody': [{ server, host: '0.0.0.0' }, /authToken or authIssuer,.* or pass allowAnonymous/],
  'a folder that is not there': [{ server: { ...server, cwd: '/does/not/exist' } }, /^ERR_CONFIG_OPTION server\.cwd: /],
};

function circular(): object {
  const value: Record<string, unknown> = { command: 'x' };
  value.again = value;
  return value;
}

for (const [name, [options, expected, verb]] of Object.entries(REFUSALS)) {
  test(`refuses ${name}, in the words of the library`, async (t) => {
    t.regex(await refusal(options, verb), expected);
  });
}

test('several servers are also served as one where that is said, and for a client on streams', async (t) => {
  const kindsOf = async (verb: LibraryVerb, given: object) =>
    (await readOptions(verb, given)).config.servers.map(({ target }) => target.kind);
  const servers = { a: { command: 'a', portage: { prefix: 'x', alwaysShow: ['read'] } }, b: { command: 'b' } };
  t.deepEqual(await kindsOf('serve', { servers }), ['command', 'command']);
  t.deepEqual(await kindsOf('serve', { servers, aggregate: true }), ['aggregate', 'command', 'command']);
  const { config } = await readOptions('connect', { servers, aggregate: 'search' });
  t.deepEqual(config.servers[0].target, { kind: 'aggregate', shows: 'search' });
  t.deepEqual(config.servers[1]?.listing?.membership, { prefix: 'x', alwaysShow: ['read'] });
  t.deepEqual(await kindsOf('connect', { servers }), ['aggregate', 'command', 'command']);
  await t.throwsAsync(readOptions('serve', { server: servers.b, aggregate: true }), {
    code: 'ERR_CONFIG_COMBINATION',
    message: /^aggregate: expected `servers`/,
  });
});
