import test from 'ava';
import { mistakes, plain, read, readEntry } from './read-text.ts';

/** A triangle stands before what the line is about. */
const inJson = (entry: string) => `{"mcpServers": {\n  "github": ${entry}\n}}`;

for (const [entry, line] of [
  ['{"command": ▶3}', 'mcpServers.github.command: expected a string, or an array of strings, got a number.'],
  ['{"command": ["x", ▶null]}', 'mcpServers.github.command[1]: expected a string, got null.'],
  ['{"command": "x", "args": ▶"-y"}', 'mcpServers.github.args: expected an array of strings, got a string.'],
  ['{"command": "x", "args": [▶true]}', 'mcpServers.github.args[0]: expected a string, got a boolean.'],
  [
    '{"command": "x", "env": ▶["A=b"]}',
    'mcpServers.github.env: expected an object of names and strings, got an array.',
  ],
  [
    '{"command": "x", "env": {"A": ▶{}}}',
    'mcpServers.github.env.A: expected a string, a number, or true or false, got an object.',
  ],
  [
    '{"command": "x", "env": {"A=B": ▶"c"}}',
    'mcpServers.github.env["A=B"]: expected the name of a variable, got another string.',
  ],
  ['{"command": "x", "disabled": ▶"no"}', 'mcpServers.github.disabled: expected true or false, got a string.'],
  ['{"command": "x", "timeout": ▶-1}', 'mcpServers.github.timeout: expected a number that is not negative.'],
  [
    '{"command": "x", "timeout": ▶"1s"}',
    'mcpServers.github.timeout: expected a number, or an object with the time for a request, got a string.',
  ],
  ['{"command": "x", "tools": ▶1}', 'mcpServers.github.tools: expected an array of strings, got a number.'],
  [
    '{"command": ▶"x\\u0000y"}',
    'mcpServers.github.command: has a character with the code 0, which no program and no server can be given.',
  ],
  ['{"command": ▶" "}', 'mcpServers.github.command: expected the program to start, got nothing.'],
  ['{"command": ▶[]}', 'mcpServers.github.command: expected the program to start, got nothing.'],
  ['▶{}', 'mcpServers.github: expected a command or a url, got neither.'],
  [
    '▶{"comand": "npx"}',
    'mcpServers.github: expected a command or a url, got neither. Did you mean command by "comand"?',
  ],
  [
    '▶{"URL": "https://a.example"}',
    'mcpServers.github: expected a command or a url, got neither. Did you mean url by "URL"?',
  ],
  ['▶"npx"', 'mcpServers.github: expected an object, got a string.'],
  [
    '{"command": "x", "url": ▶"https://a.example"}',
    'mcpServers.github.url: a server is either started by its command or reached by its URL; leave one of them out.',
  ],
  [
    '{"url": "https://a.example", "httpUrl": ▶"https://a.example"}',
    'mcpServers.github.httpUrl: says again where url says it is; leave one of them out.',
  ],
  [
    '{"url": ▶"a.example/secret"}',
    'mcpServers.github.url: expected a URL that begins with https://, http://, wss://, ws://, unix://, pipe://, tcp://, tls://, grpc://, grpcs://, mqtt:// or mqtts://, or with replay: for a recording.',
  ],
  [
    '{"url": ▶"pipe:///secret"}',
    'mcpServers.github.url: The URL of the server cannot be used: expected a Unix socket, like unix:///run/mcp.sock: named pipes are for Windows, with the path of the endpoint after #, as in pipe:///name#/mcp.',
  ],
  [
    '{"url": ▶"tcp://a.example"}',
    'mcpServers.github.url: The address of the server cannot be used: expected an address like tcp://127.0.0.1:9000, with a port.',
  ],
  [
    '{"type": "stream", "url": ▶"https://a.example"}',
    'mcpServers.github.url: expected the address of a byte stream, like tcp://127.0.0.1:9000 or unix:///run/mcp.sock.',
  ],
  [
    '{"type": ▶"http", "url": "tcp://127.0.0.1:9000"}',
    'mcpServers.github.type: says that HTTP is spoken, but the address is that of a byte stream; correct one of them.',
  ],
  [
    '{"httpUrl": ▶"tcp://127.0.0.1:9000"}',
    'mcpServers.github.httpUrl: is where HTTP is spoken, but this is the address of a byte stream.',
  ],
  [
    '{"type": ▶"http", "url": "ws://a.example"}',
    'mcpServers.github.type: says how HTTP is spoken, but the URL is of a WebSocket; correct one of them.',
  ],
  [
    '{"type": "ws", "url": ▶"tcp://a.example:9000"}',
    'mcpServers.github.url: expected the URL of a WebSocket, which begins with wss:// or ws://.',
  ],
  [
    '{"url": ▶"https://"}',
    'mcpServers.github.url: The URL of the server cannot be read; expected one like https://example.com/mcp.',
  ],
  [
    '{"type": ▶"amqp", "url": "https://a.example"}',
    'mcpServers.github.type: expected stdio, local, http, streamable-http, sse, ws, stream, grpc, mqtt, replay or remote, got another string.',
  ],
  [
    '{"type": ▶"http", "command": "x"}',
    'mcpServers.github.type: says that the server is reached by its URL, but it has a command; correct one of them.',
  ],
  [
    '{"type": ▶"stdio", "url": "https://a.example"}',
    'mcpServers.github.type: says that the server is started as a command, but it has a URL; correct one of them.',
  ],
  [
    '{"type": ▶"sse", "httpUrl": "https://a.example"}',
    'mcpServers.github.type: says HTTP+SSE, but httpUrl is where Streamable HTTP is spoken; correct one of them.',
  ],
  [
    '{"url": "https://a.example", "headers": {"A:": ▶"b"}}',
    'mcpServers.github.headers["A:"]: expected the name of a header, got another string.',
  ],
  [
    '{"url": "https://a.example", "headers": {"Authorization": "b"}, "bearer_token_env_var": ▶"TOKEN"}',
    'mcpServers.github.bearer_token_env_var: a header that the entry has twice; leave one of them out.',
  ],
  ['{"command": "x", ▶"command": "y"}', 'mcpServers.github.command: stands here a second time; leave one of them out.'],
  ['{"command": "x", "envFile": ▶".env"}', 'mcpServers.github.envFile: the file that is named here does not exist.'],
] as const) {
  test(`refused in one line: ${entry}`, async (t) => {
    const column = 1 + '  "github": '.length + entry.indexOf('▶');
    t.deepEqual(await mistakes(inJson(entry.replace('▶', '')), { env: { TOKEN: 'x' } }), [
      `mcp.json:2:${column}: ${line}`,
    ]);
  });
}

test('all mistakes are told at once, in the order of the file', async (t) => {
  const file = `{"portage": {"prot": 1}, "mcpServers": {
    "a": {"command": 1, "args": 2, "portage": {"maxSesions": 3}},
    "b": {"url": "x"},
    "c": {"command": "x"},
    "c": {"command": "x"},
    "d": {"command": "x", "args": ["\${NOT_SET}"], "env": {"A=B": "c"}, "envFile": "none", "disabledTools": 1},
    "e": {"url": "https://x.example", "type": "amqp", "headers": {"A:": "b"}}
  }}`;
  t.deepEqual(
    (await mistakes(file)).map((line) => line.split(': ', 2).join(' ')),
    [
      'mcp.json:1:22 portage.prot',
      'mcp.json:2:22 mcpServers.a.command',
      'mcp.json:2:33 mcpServers.a.args',
      'mcp.json:2:62 mcpServers.a.portage.maxSesions',
      'mcp.json:3:18 mcpServers.b.url',
      'mcp.json:5:5 mcpServers.c',
      'mcp.json:6:36 mcpServers.d.args[0]',
      'mcp.json:6:66 mcpServers.d.env["A=B"]',
      'mcp.json:6:83 mcpServers.d.envFile',
      'mcp.json:6:108 mcpServers.d.disabledTools',
      'mcp.json:7:47 mcpServers.e.type',
      'mcp.json:7:73 mcpServers.e.headers["A:"]',
    ],
  );
});

test('a thousand mistakes are not a thousand lines', async (t) => {
  const options = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`s${index}`, {}]));
  const lines = await mistakes({ mcpServers: {}, portage: options });
  t.is(lines.length, 21);
  t.is(lines.at(-1), '… and 980 more.');
});

const wrongEntries = {
  'a variable that is not set': { url: 'https://x.example', headers: { Authorization: 'Bearer $' + '{NOT_SET}' } },
  'a type of another gateway': { type: 'openapi', openapi: { url: 'https://x.example/o.json' } },
  'neither command nor url': { description: 'to do' },
  'a file of variables that is missing': { command: 'x', envFile: '.env.missing' },
  'a value of the wrong kind': { command: 7 },
  'an option that is not there': { command: 'x', portage: { callrs: ['alice'] } },
  'something else than an object': 'npx',
};

for (const [what, bad] of Object.entries(wrongEntries)) {
  test(`an entry with ${what} is left out with its place, and the others are read`, async (t) => {
    const { servers, leftOut } = await read({
      mcpServers: { good: { command: 'a' }, bad, 'good too': { command: 'b' } },
    });
    t.deepEqual(
      servers.map(({ name }) => name),
      ['good', 'good too'],
    );
    t.deepEqual(
      leftOut.map(({ name }) => name),
      ['bad'],
    );
    t.regex(leftOut[0]?.error.message ?? '', /^mcp\.json:1:\d+: mcpServers\.bad/);
  });
}

test('a wrong entry of a server that has to be there makes the whole file wrong', async (t) => {
  for (const bad of [
    { required: true },
    { portage: { required: true } },
    { required: false, portage: { required: true } },
  ]) {
    await t.throwsAsync(read({ mcpServers: { good: { command: 'a' }, bad } }), { code: 'ERR_CONFIG_FILE' });
  }
  const { leftOut } = await read({ mcpServers: { bad: { required: true, portage: { required: false } } } });
  t.is(leftOut.length, 1);
});

test('of two entries with one name neither is served, of two with one address the first', async (t) => {
  const { servers, leftOut } = await read(
    '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}, "b c": {"command": "x"}, "b/c": {"command": "y"}}}',
  );
  t.deepEqual(
    servers.map(({ name }) => name),
    ['b c'],
  );
  t.deepEqual(
    leftOut.map(({ name }) => name),
    ['a', 'b/c'],
  );
});

for (const [path, text, line] of [
  ['mcp.json', '', '1:1: expected a value.'],
  ['mcp.json', '// nothing', '1:11: expected a value.'],
  ['mcp.json', '{"mcpServers": {', '1:17: expected the closing } of an object.'],
  ['mcp.json', '{\n "a": secret\n}', '2:7: a word that is no JSON begins here; strings stand in double quotes.'],
  ['mcp.json', '{"a" 1}', '1:6: expected a colon.'],
  ['mcp.json', '[]', '1:1: expected an object, got an array.'],
  ['config.toml', '[mcp_servers.a]\ncommand = secret', '2:11: something that is not TOML: unexpected character.'],
  ['config.toml', '[a]\nb = 1\n[a]', '3:2: something that is not TOML: defining a key multiple times is invalid.'],
  ['mcp.json', `{"a":${'['.repeat(100_000)}`, '1:69: nested more than 64 levels deep.'],
  ['config.toml', `a = ${'['.repeat(100)}${']'.repeat(100)}`, '1:69: nested more than 64 levels deep.'],
  ['config.toml', `a${'.a'.repeat(1000)} = 1`, '1:2005: nested more than 64 levels deep.'],
] as const) {
  test(`${path}: ${JSON.stringify(text.slice(0, 40))} is refused by its language, with line and column`, async (t) => {
    t.is((await mistakes(text, { path: `/home/me/${path}` }))[0], `${path}:${line}`);
  });
}

test('a file that breaks off is refused in one line, however many brackets it lacks', async (t) => {
  t.deepEqual(await mistakes('{"mcpServers":{"a":{', { path: '/a/mcp.json' }), [
    'mcp.json:1:21: expected the closing } of an object.',
  ]);
});

test('the language is told by the end of the name, else by how the text begins', async (t) => {
  const json = '  // x\n {"mcpServers": {}}';
  const toml = '[mcp_servers.a]\ncommand = "x"';
  for (const [path, text] of [
    ['/a/config', json],
    ['/a/config', toml],
    ['/a/config.JSON', json],
    ['/a/config.TOML', toml],
    ['/a/.mcprc', `\ufeff${json}`],
    ['/a/x', '/* x */ {"servers": {}}'],
  ] as const) {
    await t.notThrowsAsync(read(text, { path }), path);
  }
});

for (const [name, segment] of [
  ['github', 'github'],
  ['Git Hub!', 'Git-Hub'],
  ['@acme/server', 'acme-server'],
  ['..secret', 'secret'],
  ['a.b_c~d-e', 'a.b_c~d-e'],
  ['größe', 'gr-e'],
  ['-.-a--', 'a'],
] as const) {
  test(`${name} is served as ${segment}`, async (t) => {
    const { servers } = await read({ mcpServers: { [name]: { command: 'x' } } });
    t.deepEqual(
      servers.map((server) => [server.name, server.segment]),
      [[name, segment]],
    );
  });
}

test('names that leave nothing, or the same, are refused', async (t) => {
  const entry = { command: 'x' };
  const file = { mcpServers: { '...': entry, 日本: entry, 'a b': entry, 'a/b': entry, ['x'.repeat(201)]: entry } };
  t.deepEqual(
    (await mistakes(file)).map((line) => line.replace(/^.*?\]: /, '')),
    [
      'nothing of this name can stand in a URL; give it letters or digits.',
      'nothing of this name can stand in a URL; give it letters or digits.',
      'would be served at /a-b like "a b"; rename one of them.',
      'a name of more than 200 characters; shorten it.',
    ],
  );
});

test('more than a thousand servers are refused', async (t) => {
  const servers = Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`s${index}`, { command: 'x' }]));
  t.deepEqual(await mistakes({ mcpServers: servers }), ['mcp.json:1:15: mcpServers: more than 1000 servers.']);
});

test('keys like those of every object are keys like any other', async (t) => {
  const file = '{"mcpServers": {"__proto__": {"command": "x", "env": {"constructor": "y"}, "__proto__": {"url": 1}}}}';
  const { servers } = await read(file);
  t.deepEqual(
    servers.map((server) => [server.name, plain(server).options.env]),
    [['__proto__', ['constructor=y']]],
  );
});

test('keys that nobody knows are told in one line, those of hosts in none', async (t) => {
  const { warnings } = await read({
    mcpServers: {
      a: { command: 'x', comand: 'y', trust: true, icon: 'i', headers: { A: 'b' } },
      b: { url: 'https://b.example', args: ['x'], env: {}, 'two words': 1 },
      c: { url: 'https://c.example', headersHelper: '/bin/x', auth: null },
    },
  });
  t.deepEqual(warnings, [
    'mcp.json: mcpServers.a.headers, mcpServers.a.comand (did you mean command?), mcpServers.b.args, mcpServers.b["two words"]: not known to any host nor to mcp-portage, or without meaning for this kind of server; left out.',
    'mcp.json: mcpServers.c.headersHelper: a program of the host that makes headers, which is not run; give the headers themselves.',
  ]);
});

test('a thousand unknown keys are one line, and not a long one', async (t) => {
  const entry = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, 1]));
  const { warnings } = await read({ mcpServers: { a: { command: 'x', ...entry } } });
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /mcpServers\.a\.k9 and 990 more: /);
});

test('what is null is not said', async (t) => {
  t.deepEqual(await readEntry({ command: 'x', url: null, args: null, cwd: null, headers: null, timeout: null }), {
    target: ['x'],
    options: { cwd: ['/home/me/project'] },
  });
});
