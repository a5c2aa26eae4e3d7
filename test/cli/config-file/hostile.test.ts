// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of files.
import test from 'ava';
import fc from 'fast-check';
import { BridgeError } from '../../../src/errors.ts';
import { read } from './read-text.ts';

const SECRET = 'hunter2-correct-horse';
const secret = fc.constant(SECRET);

/** All that is said of a file: refusals, warnings, and where things stand. */
async function saidOf(text: string, path: string): Promise<string> {
  try {
    const { warnings, servers, options } = await read(text, {
      path,
      env: { SECRET },
      files: { '/a/.env': `A=${SECRET}` },
    });
    const written = [...options.values(), ...servers.flatMap((server) => [...server.options.values()])];
    return [...warnings, ...servers.map(({ source }) => source), ...written.map(({ source }) => source)].join('\n');
  } catch (error) {
    if (error instanceof BridgeError && error.code === 'ERR_CONFIG_FILE') return error.message;
    throw error;
  }
}

const pieces = fc.constantFrom(
  ...[
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    '=',
    '"',
    "'",
    '\n',
    ' ',
    '#',
    '//',
    '/*',
    '\\',
    '.',
    '"mcpServers"',
    '[mcp_servers.a]',
  ],
  ...[
    'command',
    '"command"',
    'null',
    'true',
    '1e999',
    '-0',
    '\ufeff',
    '\0',
    '__proto__',
    '${',
    '${x}',
    '{file:',
    '\ud800',
  ],
);

for (const path of ['/a/x.json', '/a/x.toml', '/a/x']) {
  test(`${path}: whatever the text is, nothing is thrown but a refusal`, async (t) => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(pieces, { maxLength: 60 }).map((all) => all.join('')),
    );
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        await saidOf(text, path);
      }),
      { numRuns: 400 },
    );
    t.pass();
  });
}

const KEYS = [
  ...['type', 'command', 'args', 'env', 'environment', 'env_vars', 'envFile', 'cwd', 'url', 'serverUrl', 'httpUrl'],
  ...['headers', 'http_headers', 'env_http_headers', 'bearer_token_env_var', 'disabled', 'timeout', 'tool_timeout_sec'],
  ...['includeTools', 'tools', 'protocolEra', 'oauth', 'required', 'transport', 'strange'],
];
const OPTIONS = ['maxSessions', 'header', 'env', 'cwd', 'callers', 'required', 'port', 'authToken', 'isolation', 'ca'];

const texts = fc.oneof(
  secret,
  ...[
    '${SECRET}',
    `${'${NONE:-'}${SECRET}}`,
    `$\{${SECRET}:x}`,
    `https://${SECRET}`,
    `${SECRET}://x`,
    `a\0${SECRET}`,
  ].map((text) => fc.constant(text)),
  ...['.env', 'http', 'https://a.example', `https://u:${SECRET}@a.example`, 'SECRET', ''].map((text) =>
    fc.constant(text),
  ),
);
const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    texts,
    fc.constantFrom(null, true, false, 0, -1, 1.5, 1e21),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('A', 'B', '__proto__', 'x y', 'request', 'name'), tie('value'), { maxKeys: 3 }),
  ),
})).value;
const portage = fc.dictionary(fc.constantFrom(...OPTIONS), values, { maxKeys: 4 });
const entries = fc
  .tuple(fc.dictionary(fc.constantFrom(...KEYS), values, { maxKeys: 5 }), fc.option(portage), fc.constantFrom(0, 1, 2))
  .map(([entry, ours, kind]) => ({
    ...(kind === 0 ? {} : kind === 1 ? { command: SECRET } : { url: `https://a.example/${SECRET}` }),
    ...entry,
    ...(ours === null ? {} : { portage: ours }),
  }));

test('whatever an entry says, no value of it is told', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('mcpServers', 'servers', 'mcp_servers', 'mcp'),
      fc.dictionary(fc.constantFrom('a', 'b c', 'd'), entries, { minKeys: 1, maxKeys: 3 }),
      fc.option(portage),
      async (key, servers, top) => {
        const said = await saidOf(
          JSON.stringify({ [key]: servers, ...(top === null ? {} : { portage: top }) }),
          '/a/x.json',
        );
        return !said.toLowerCase().includes(SECRET.slice(0, 7));
      },
    ),
    { numRuns: 1500 },
  );
  t.pass();
});

test('a line of a refusal cannot be forged by a key', async (t) => {
  const said = await saidOf(
    JSON.stringify({ mcpServers: { 'a\nx.json:1:1: all is well\u001b[2J\u202e': {} } }),
    '/a/x.json',
  );
  t.is(said.split('\n').length, 1);
  t.false(said.includes('\u001b') || said.includes('\u202e'));
});

test('texts and keys that take long to look at are looked at once', async (t) => {
  const started = process.cpuUsage().user;
  const unclosed = JSON.stringify({ mcpServers: { a: { command: 'x', args: ['${'.repeat(1_000_000)] } } });
  t.regex(await saidOf(unclosed, '/a/x.json'), /^x\.json:1:20 \(mcpServers\.a\)/);
  const keys = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`max-sessionz${index}`, 1]));
  t.regex(await saidOf(JSON.stringify({ mcpServers: {}, portage: keys }), '/a/x.json'), /and 49980 more\.$/);
  t.true(process.cpuUsage().user - started < 10_000_000);
});
