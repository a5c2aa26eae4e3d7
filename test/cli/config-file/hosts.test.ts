// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of files.
/** A file as the documentation of each host describes it. */
import test from 'ava';
import { read, readPlain } from './read-text.ts';

const cwd = ['/home/me/project'];

test('Claude Desktop', async (t) => {
  const file = `{
    "globalShortcut": "Ctrl+Space",
    "mcpServers": {
      "filesystem": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/notes"] },
      "weather": { "command": "uv", "args": ["run", "weather.py"], "env": { "WEATHER_KEY": "k-1" } }
    }
  }`;
  t.deepEqual(await readPlain(file), {
    filesystem: {
      target: ['npx', '-y', '@modelcontextprotocol/server-filesystem', '/home/me/notes'],
      options: { cwd },
    },
    weather: { target: ['uv', 'run', 'weather.py'], options: { env: ['WEATHER_KEY=k-1'], cwd } },
  });
});

test('Claude Code: .mcp.json', async (t) => {
  const file = {
    mcpServers: {
      db: { type: 'stdio', command: '${TOOLS:-/opt/tools}/db', args: ['--dsn', '${DSN}'], env: {} },
      tickets: { type: 'http', url: 'https://tickets.example/mcp', headers: { Authorization: 'Bearer ${TICKETS}' } },
      old: { type: 'sse', url: 'https://old.example/sse', timeout: 120_000, alwaysLoad: true },
    },
  };
  const env = { DSN: 'postgres://x', TICKETS: 't-1' };
  t.deepEqual(await readPlain(file, { env, path: '/home/me/project/.mcp.json' }), {
    db: { target: ['/opt/tools/db', '--dsn', 'postgres://x'], options: { cwd } },
    tickets: {
      target: 'https://tickets.example/mcp',
      options: { header: ['Authorization: Bearer t-1'], transport: ['streamable-http'] },
    },
    old: { target: 'https://old.example/sse', options: { transport: ['sse'], 'request-timeout': ['120000ms'] } },
  });
});

test('Cursor: .cursor/mcp.json, whose folder is the one above', async (t) => {
  const file = {
    mcpServers: {
      local: {
        type: 'stdio',
        command: 'python',
        args: ['${workspaceFolder}/tools/server.py'],
        envFile: '${workspaceFolder}/.env',
        env: { KEY: '${env:KEY}' },
      },
      remote: { url: 'https://api.example/mcp', headers: { 'X-Key': '${env:KEY}' }, auth: { CLIENT_ID: 'c' } },
    },
  };
  const path = '/home/me/project/.cursor/mcp.json';
  const files = { '/home/me/project/.env': 'MODE=fast # quick\nKEY=of-file\n' };
  t.deepEqual(await readPlain(file, { path, files, env: { KEY: 'k' } }), {
    local: {
      target: ['python', '/home/me/project/tools/server.py'],
      options: { env: ['KEY=k', 'MODE=fast'], cwd },
    },
    remote: { target: 'https://api.example/mcp', options: { header: ['X-Key: k'] } },
  });
});

test('Windsurf: serverUrl, disabledTools', async (t) => {
  const file = {
    mcpServers: {
      remote: {
        serverUrl: 'https://a.example/mcp',
        headers: { Authorization: 'Bearer ${env:TOKEN}' },
        disabledTools: ['drop_table'],
      },
      unused: { command: 'npx', disabled: true },
    },
  };
  const { servers, disabled } = await read(file, { env: { TOKEN: 'x' } });
  t.deepEqual(disabled, ['unused']);
  t.is(servers.length, 1);
  t.deepEqual(await readPlain(file, { env: { TOKEN: 'x' } }), {
    remote: {
      target: 'https://a.example/mcp',
      options: { header: ['Authorization: Bearer x'], 'exclude-tool': ['drop_table'] },
    },
  });
});

test('Gemini CLI: httpUrl, tools, and an mcp that is about something else', async (t) => {
  const file = {
    mcp: { allowed: ['web'], excluded: ['other'] },
    mcpServers: {
      web: {
        httpUrl: 'http://localhost:3000/mcp',
        timeout: 5000,
        includeTools: ['read', 'list'],
        excludeTools: ['list'],
      },
      sse: { url: 'http://localhost:3001/sse', trust: true },
      py: { command: './run.sh', cwd: './server', env: { KEY: '$KEY' }, description: 'local' },
    },
  };
  const path = '/home/me/project/.gemini/settings.json';
  t.deepEqual(await readPlain(file, { path }), {
    web: {
      target: 'http://localhost:3000/mcp',
      options: {
        transport: ['streamable-http'],
        'request-timeout': ['5000ms'],
        'include-tool': ['read', 'list'],
        'exclude-tool': ['list'],
      },
    },
    sse: { target: 'http://localhost:3001/sse', options: {} },
    py: { target: ['./run.sh'], options: { env: ['KEY=$KEY'], cwd: ['/home/me/project/server'] } },
  });
  const { warnings } = await read(file, { path });
  t.deepEqual(
    warnings.map((warning) => warning.split(': ', 2)),
    [['settings.json', 'mcpServers.py.env.KEY']],
  );
});

test('Cline and Roo Code: approvals, and seconds', async (t) => {
  const file = {
    mcpServers: {
      a: { command: 'node', args: ['a.js'], autoApprove: ['x'], disabled: false, timeout: 60 },
      b: { type: 'streamable-http', url: 'https://b.example', alwaysAllow: [], disabledTools: ['y'] },
      c: { type: 'streamableHttp', url: 'https://c.example/' },
    },
  };
  t.deepEqual(await readPlain(file), {
    a: { target: ['node', 'a.js'], options: { cwd, 'request-timeout': ['60000ms'] } },
    b: { target: 'https://b.example/', options: { transport: ['streamable-http'], 'exclude-tool': ['y'] } },
    c: { target: 'https://c.example/', options: { transport: ['streamable-http'] } },
  });
  t.deepEqual((await read(file)).warnings.length, 1);
});

const VS_CODE = `{
  // Asked for when the server starts.
  "inputs": [
    { "type": "promptString", "id": "api-key", "description": "Key", "password": true },
    { "type": "pickString", "id": "level", "description": "Level", "options": ["low", "high"], "default": "low" },
  ],
  "servers": {
    "search": {
      "type": "stdio", "command": "npx", "args": ["-y", "search", "--level", "\${input:level}"],
      "env": { "API_KEY": "\${input:api-key}", "PORT": 8080, "GONE": null }, "envFile": "\${workspaceFolder}/.env",
      "dev": { "watch": "src/**" }, "sandboxEnabled": true,
    },
    "web": { "type": "http", "url": "https://web.example/mcp", "oauth": { "clientId": "x" } },
  },
}`;

test('VS Code: .vscode/mcp.json with comments, commas at ends, and inputs from the environment', async (t) => {
  const world = {
    path: '/home/me/project/.vscode/mcp.json',
    env: { API_KEY: 'k' },
    files: { '/home/me/project/.env': 'GONE=1\nA="b c"' },
  };
  t.deepEqual(await readPlain(VS_CODE, world), {
    search: {
      target: ['npx', '-y', 'search', '--level', 'low'],
      options: { env: ['A=b c', 'API_KEY=k', 'PORT=8080'], cwd },
    },
    web: { target: 'https://web.example/mcp', options: { transport: ['streamable-http'] } },
  });
  const { included, warnings } = await read(VS_CODE, world);
  t.deepEqual(included, ['/home/me/project/.env']);
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /^mcp\.json: servers\.web\.oauth: the login of the host .*"login": "on-demand"/);
});

test('VS Code: the same in settings.json', async (t) => {
  const file = {
    'editor.fontSize': 12,
    mcp: { inputs: [{ id: 'x', default: 'y' }], servers: { a: { command: 'a', args: ['${input:x}'] } } },
  };
  t.deepEqual(await readPlain(file), { a: { target: ['a', 'y'], options: { cwd } } });
});

test('Codex: config.toml', async (t) => {
  const file = `
model = "some-model"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-server"]
env_vars = ["LOCAL_TOKEN", { name = "OTHER", source = "local" }]
cwd = "/srv/docs"
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["search"]
required = true

[mcp_servers.docs.env]
MODE = "fast"

[mcp_servers.docs.tools.search]
approval_mode = "approve"

[mcp_servers."design system"]
url = "https://design.example/mcp"
bearer_token_env_var = "DESIGN_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Tenant" = "TENANT" }
scopes = ["read"]

[mcp_servers.off]
command = "x"
enabled = false
`;
  const world = { path: '/home/me/.codex/config.toml', env: { DESIGN_TOKEN: 'd-1\n', TENANT: 'acme' } };
  t.deepEqual(await readPlain(file, world), {
    docs: {
      target: ['npx', '-y', 'docs-server'],
      options: {
        env: ['LOCAL_TOKEN', 'OTHER', 'MODE=fast'],
        cwd: ['/srv/docs'],
        'request-timeout': ['45500ms'],
        'include-tool': ['search'],
      },
    },
    'design-system': {
      target: 'https://design.example/mcp',
      options: { header: ['X-Region: eu', 'X-Tenant: acme', 'authorization: Bearer d-1'] },
    },
  });
  const { servers, disabled, warnings } = await read(file, world);
  t.deepEqual(
    servers.map(({ name, isRequired, source }) => [name, isRequired, source]),
    [
      ['docs', true, 'config.toml:4:1 (mcp_servers.docs)'],
      ['design system', false, 'config.toml:20:1 (mcp_servers["design system"])'],
    ],
  );
  t.deepEqual(disabled, ['off']);
  t.regex(warnings.join('\n'), /^config\.toml: mcp_servers\["design system"\]\.scopes: the login of the host/);
});

test('opencode 1: names under mcp, commands as lists, {env:…} and {file:…}', async (t) => {
  const file = {
    $schema: 'https://opencode.ai/config.json',
    mcp: {
      local: {
        type: 'local',
        command: ['bun', 'x', 'server'],
        environment: { KEY: '{env:KEY}', SECRET: '{file:./secret}' },
        enabled: true,
        timeout: 5000,
      },
      remote: {
        type: 'remote',
        url: 'https://r.example',
        headers: { Authorization: 'Bearer {env:KEY}' },
        oauth: false,
      },
      off: { type: 'local', command: ['x'], enabled: false },
    },
  };
  const world = { env: { KEY: 'k' }, files: { '/home/me/project/secret': ' s \n' } };
  t.deepEqual(await readPlain(file, world), {
    local: { target: ['bun', 'x', 'server'], options: { env: ['KEY=k', 'SECRET=s'], cwd } },
    remote: { target: 'https://r.example/', options: { header: ['Authorization: Bearer k'], transport: ['auto'] } },
  });
  const { included, warnings, disabled } = await read(file, world);
  t.deepEqual(included, ['/home/me/project/secret']);
  t.deepEqual(warnings, []);
  t.deepEqual(disabled, ['off']);
});

test('opencode 2: mcp.servers, disabled, times by what is waited for', async (t) => {
  const file = {
    mcp: {
      timeout: { startup: 1 },
      servers: {
        a: { type: 'local', command: ['a', 'b'], cwd: 'sub', timeout: { startup: 10_000, request: 20_000 } },
        b: { type: 'remote', url: 'https://b.example', disabled: true },
        c: { type: 'remote', url: 'https://c.example', timeout: { catalog: 1, execution: 30_000 } },
      },
    },
  };
  t.deepEqual(await readPlain(file), {
    a: { target: ['a', 'b'], options: { cwd: ['/home/me/project/sub'], 'request-timeout': ['20000ms'] } },
    c: { target: 'https://c.example/', options: { transport: ['auto'], 'request-timeout': ['30000ms'] } },
  });
});

test('a server of opencode 1 may be called servers', async (t) => {
  const file = { mcp: { servers: { type: 'local', command: ['x'] } } };
  t.deepEqual(await readPlain(file), { servers: { target: ['x'], options: { cwd } } });
});

test('Copilot CLI: tools as a list; Inspector: protocolEra', async (t) => {
  const file = {
    mcpServers: {
      a: { type: 'local', command: 'a', tools: ['*'] },
      b: { type: 'http', url: 'https://b.example', protocolEra: 'modern', tools: [] },
    },
  };
  t.deepEqual(await readPlain(file), {
    a: { target: ['a'], options: { cwd, 'include-tool': ['*'] } },
    b: {
      target: 'https://b.example/',
      options: { transport: ['streamable-http'], protocol: ['modern'], 'exclude-tool': ['*'] },
    },
  });
});

test('keys of other hosts beside mcpServers are not read, and that is said', async (t) => {
  const { servers, warnings } = await read({ mcpServers: { a: { command: 'a' } }, servers: { b: { command: 'b' } } });
  t.deepEqual(
    servers.map(({ name }) => name),
    ['a'],
  );
  t.deepEqual(warnings, ['mcp.json: servers: not read, since servers are taken from another key of this file.']);
});

test('a file without servers is a file', async (t) => {
  for (const file of [{ mcpServers: {} }, { servers: {} }, { mcp: {} }]) t.deepEqual((await read(file)).servers, []);
});

for (const file of ['{}', '{"mcp": {"allowed": ["x"]}}', '{"github": {"command": "x"}}', '[]', 'a = 1']) {
  test(`a file of nobody is refused with the keys that were looked for: ${file}`, async (t) => {
    const error = await t.throwsAsync(read(file, { path: '/home/me/config' }), { name: 'BridgeError' });
    if (file !== '[]') t.regex(error?.message ?? '', /mcpServers, servers, mcp_servers or mcp/);
  });
}
