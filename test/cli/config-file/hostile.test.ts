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
    const { warnings, servers, options, leftOut } = await read(text, {
      path,
      env: { SECRET },
      files: { '/a/.env': `A=${SECRET}` },
    });
    const written = [...options.values(), ...servers.flatMap((server) => [...server.options.values()])];
    const wrong = leftOut.map(({ error }) => error.message);
    return [...wrong, ...warnings, ...[...servers, ...written].map(({ place }) => place.text)].join('\n');
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
    'mcpServers:',
    ' - ',
    '&a ',
    '*a',
    '<<: ',
    '!!x ',
    '|\n ',
    '? ',
    '---',
    '%YAML',
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

for (const path of ['/a/x.json', '/a/x.toml', '/a/x.yaml', '/a/x']) {
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
  ...['cmd', 'uri', 'baseUrl', 'envs', 'env_keys', 'available_tools', 'active', 'isActive', 'startup', 'settings'],
  ...['includeTools', 'tools', 'protocolEra', 'requestOptions', 'oauth', 'required', 'transport', 'strange'],
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
      fc.constantFrom('mcpServers', 'servers', 'mcp_servers', 'mcp', 'context_servers', 'amp.mcpServers', 'extensions'),
      fc.dictionary(fc.constantFrom('a', 'b c', 'd'), entries, { minKeys: 1, maxKeys: 3 }),
      fc.option(portage),
      async (key, servers, top) => {
        // JSON is YAML as well.
        const path = key === 'extensions' ? '/a/x.yaml' : '/a/x.json';
        const said = await saidOf(JSON.stringify({ [key]: servers, ...(top === null ? {} : { portage: top }) }), path);
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

test.serial(
  'a few lines of YAML whose aliases name a billion values are refused, and so is an anchor within itself',
  async (t) => {
    const started = process.cpuUsage().user;
    const lines = Array.from({ length: 12 }, (_, level) => {
      const items = Array.from({ length: 10 }, () => (level === 0 ? 'lol' : `*a${level - 1}`));
      return `a${level}: &a${level} [${items.join(', ')}]`;
    });
    t.regex(
      await saidOf(lines.join('\n'), '/a/x.yaml'),
      /^x\.yaml:\d+:\d+: more than 100000 values, with those of aliases\.$/,
    );
    const merged = lines.map((line) =>
      line
        .replace('[', '{')
        .replace(']', '}')
        .replaceAll(/lol|\*a\d+/g, (item, at) => `k${at}: ${item}`),
    );
    t.regex(await saidOf(merged.join('\n'), '/a/x.yaml'), /more than 100000 values/);
    t.regex(await saidOf('mcpServers: &a\n  b: *a\n', '/a/x.yaml'), /nested more than 64 levels deep\.$/);
    t.true(process.cpuUsage().user - started < 5_000_000);
  },
);

test.serial('YAML that would take the parser long is refused by its size, or read in a few seconds', async (t) => {
  t.is(await saidOf(`# ${'x'.repeat(2 ** 18)}`, '/a/x.yaml'), 'x.yaml:1:1: a YAML file of more than 256 KiB.');
  const started = process.cpuUsage().user;
  const fill = (piece: string): string => piece.repeat(Math.floor(2 ** 18 / piece.length));
  for (const text of [
    fill('['),
    fill('- '),
    fill('? '),
    fill('a: &a {'),
    fill('!'),
    fill('"'),
    fill('a\n'),
    fill('[a,'),
  ]) {
    t.regex(await saidOf(text, '/a/x.yaml'), /^x\.yaml:\d+:\d+: /, text.slice(0, 8));
  }
  const keys = Array.from({ length: 15_000 }, (_, index) => `key${index}: 1`);
  t.regex(await saidOf(keys.join('\n'), '/a/x.yaml'), /expected servers under/);
  t.true(process.cpuUsage().user - started < 60_000_000, `${process.cpuUsage().user - started}`);
});
