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
      options: { header: ['authorization: Bearer t-1'], transport: ['streamable-http'] },
    },
    old: { target: 'https://old.example/sse', options: { transport: ['sse'], requestTimeout: [120_000] } },
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
    remote: { target: 'https://api.example/mcp', options: { header: ['x-key: k'], oauthClientId: ['c'] } },
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
      options: { header: ['authorization: Bearer x'], excludeTool: ['drop_table'] },
    },
  });
});

test('Gemini CLI: httpUrl, tools, $NAME within texts, servers that are excluded or not allowed', async (t) => {
  const file = {
    mcp: { allowed: ['web', 'sse', 'py', 'danger'], excluded: ['danger'] },
    mcpServers: {
      web: {
        httpUrl: 'http://localhost:3000/mcp',
        timeout: 5000,
        headers: { Authorization: 'Bearer $TOKEN' },
        includeTools: ['read', 'list'],
        excludeTools: ['list'],
      },
      sse: { url: 'http://localhost:3001/sse', trust: true },
      py: {
        command: './run.sh',
        args: ['--key', '$KEY', '$5'],
        cwd: './server',
        env: { KEY: '$KEY', URL: 'https://$HOST_OF_MINE/v1', UNSET: 'pa$WORD' },
        description: 'local',
      },
      danger: { command: 'x' },
      other: { command: 'x' },
    },
  };
  const world = { path: '/home/me/project/.gemini/settings.json', env: { TOKEN: 't', KEY: 'k', HOST_OF_MINE: 'h' } };
  t.deepEqual(await readPlain(file, world), {
    web: {
      target: 'http://localhost:3000/mcp',
      options: {
        transport: ['streamable-http'],
        header: ['authorization: Bearer t'],
        requestTimeout: [5000],
        includeTool: ['read', 'list'],
        excludeTool: ['list'],
      },
    },
    sse: { target: 'http://localhost:3001/sse', options: {} },
    py: {
      target: ['./run.sh', '--key', 'k', '$5'],
      options: { env: ['KEY=k', 'URL=https://h/v1', 'UNSET=pa$WORD'], cwd: ['/home/me/project/server'] },
    },
  });
  const { warnings, disabled } = await read(file, world);
  t.deepEqual(
    warnings.map((warning) => warning.split(': ', 2)),
    [['settings.json', 'mcpServers.py.env.UNSET']],
  );
  t.deepEqual(disabled, ['danger', 'other']);
});

test('Gemini CLI: older names of the lists, and its keys in another file', async (t) => {
  const servers = {
    a: { httpUrl: 'http://localhost/mcp', headers: { A: '$KEY' } },
    b: { command: 'b' },
    c: { command: 'c' },
  };
  const file = { allowMCPServers: ['a', 'b'], excludeMCPServers: ['b'], mcpServers: servers };
  const found = await readPlain(file, { env: { KEY: 'k' } });
  t.deepEqual(Object.keys(found), ['a']);
  t.deepEqual(found.a?.options.header, ['a: k']);
});

test('other hosts: $NAME stays as it is, and that is told', async (t) => {
  const file = {
    mcpServers: {
      a: { command: 'a', env: { A: 'https://$KEY/x', B: 'pa$word' } },
      b: { url: 'https://b.example', headers: { C: 'Bearer $KEY' } },
    },
  };
  const world = { env: { KEY: 'k' } };
  t.deepEqual((await readPlain(file, world)).a?.options.env, ['A=https://$KEY/x', 'B=pa$word']);
  t.regex(
    (await read(file, world)).warnings.join(),
    /^mcp\.json: mcpServers\.a\.env\.A, mcpServers\.b\.headers\.C: has what looks like/,
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
    a: { target: ['node', 'a.js'], options: { cwd, requestTimeout: [60_000] } },
    b: { target: 'https://b.example/', options: { transport: ['streamable-http'], excludeTool: ['y'] } },
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
    // VS Code tries HTTP+SSE where Streamable HTTP is refused.
    web: { target: 'https://web.example/mcp', options: { transport: ['auto'], oauthClientId: ['x'] } },
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
  const world = {
    path: '/home/me/.codex/config.toml',
    env: { DESIGN_TOKEN: 'd-1\n', TENANT: 'acme', LOCAL_TOKEN: 'l', OTHER: 'o' },
  };
  t.deepEqual(await readPlain(file, world), {
    docs: {
      target: ['npx', '-y', 'docs-server'],
      options: {
        env: ['LOCAL_TOKEN', 'OTHER', 'MODE=fast'],
        cwd: ['/srv/docs'],
        requestTimeout: [45_500],
        includeTool: ['search'],
      },
    },
    'design-system': {
      target: 'https://design.example/mcp',
      options: {
        header: ['x-region: eu', 'x-tenant: acme', 'authorization: Bearer d-1'],
        oauthScope: [['read']],
      },
    },
  });
  const { servers, disabled, warnings } = await read(file, world);
  t.deepEqual(
    servers.map(({ name, isRequired, place }) => [name, isRequired, place.text]),
    [
      ['docs', true, 'config.toml:4:1 (mcp_servers.docs)'],
      ['design system', false, 'config.toml:20:1 (mcp_servers["design system"])'],
    ],
  );
  t.deepEqual(disabled, ['off']);
  t.regex(warnings.join('\n'), /^config\.toml: mcp_servers\["design system"\]\.scopes: the login of the host/);
});

test('Codex: variables that are not set are left out, tools are switched off, and a token has to be there', async (t) => {
  const file = `
[mcp_servers.local]
command = "npx"
env_vars = ["SET", "NOT_SET"]
[mcp_servers.local.tools.delete_file]
enabled = false
[mcp_servers.local.tools.read_file]
enabled = true
approval_mode = "approve"

[mcp_servers.remote]
url = "https://r.example/mcp"
http_headers = { "X-Static" = "s" }
env_http_headers = { "X-Key" = "NOT_SET", "X-Other" = "SET" }

[mcp_servers.token]
url = "https://t.example/mcp"
bearer_token_env_var = "NOT_SET"
`;
  const world = { path: '/home/me/.codex/config.toml', env: { SET: 'x' } };
  t.deepEqual(await readPlain(file, world), {
    local: { target: ['npx'], options: { env: ['SET'], cwd: ['/home/me'], excludeTool: ['delete_file'] } },
    remote: { target: 'https://r.example/mcp', options: { header: ['x-static: s', 'x-other: x'] } },
  });
  const { warnings, leftOut } = await read(file, world);
  t.deepEqual(warnings, [
    'config.toml: mcp_servers.local.env_vars[1], mcp_servers.remote.env_http_headers.X-Key: names variables that are not set here; they are left out.',
  ]);
  t.regex(leftOut[0]?.error.message ?? '', /mcp_servers\.token\.bearer_token_env_var: the variable NOT_SET is not set/);
});

test('Claude Code: ~/.claude.json with servers for all and for single projects', async (t) => {
  const file = {
    numStartups: 7,
    mcpServers: { search: { type: 'http', url: 'https://s.example/mcp' }, db: { command: 'db', args: ['--all'] } },
    projects: {
      '/home/me/one': {
        allowedTools: [],
        mcpServers: {
          db: { command: 'db', args: ['${workspaceFolder}'] },
          notes: { command: 'notes' },
          off: { command: 'x' },
        },
        disabledMcpServers: ['off'],
      },
      '/home/me/two': { mcpServers: { notes: { command: 'notes' }, db: { command: 'db', args: ['--two'] } } },
      '/home/me/three': { mcpServers: {}, lastCost: 1 },
    },
  };
  const at = (cwd: string) => ({ path: '/home/me/.claude.json', around: { cwd } });
  t.deepEqual(await readPlain(file, at('/')), {
    search: { target: 'https://s.example/mcp', options: { transport: ['streamable-http'] } },
    db: { target: ['db', '--all'], options: { cwd: ['/home/me'] } },
    notes: { target: ['notes'], options: { cwd: ['/home/me/one'] } },
  });
  const { warnings, disabled, leftOut } = await read(file, at('/'));
  t.deepEqual(warnings, [
    '.claude.json: projects["/home/me/one"].mcpServers.db, projects["/home/me/two"].mcpServers.db: not served, since another server with this name is.',
  ]);
  t.deepEqual(disabled, ['off']);
  t.deepEqual(leftOut, []);
  // In the folder of a project its own servers have precedence.
  t.deepEqual((await readPlain(file, at('/home/me/one'))).db, {
    target: ['db', '/home/me/one'],
    options: { cwd: ['/home/me/one'] },
  });
  const { mcpServers: _, ...projectsAlone } = file;
  t.deepEqual(Object.keys(await readPlain(projectsAlone, at('/'))), ['db', 'notes']);
});

test('Zed: context_servers among its settings, and what its extensions start is left out', async (t) => {
  const file = `{
    // Settings of the editor.
    "theme": "One Dark",
    "context_servers": {
      "local": { "source": "custom", "command": "npx", "args": ["-y", "x"], "env": { "A": "1" }, "settings": {} },
      "older": { "command": { "path": "uvx", "args": ["y"], "env": { "B": "2" } }, "settings": null },
      "remote": { "url": "https://z.example/mcp", "headers": { "X": "1" } },
      "from-extension": { "source": "extension", "enabled": true, "settings": { "token": "secret" } },
      "off": { "command": "x", "enabled": false },
    },
  }`;
  t.deepEqual(await readPlain(file), {
    local: { target: ['npx', '-y', 'x'], options: { env: ['A=1'], cwd } },
    older: { target: ['uvx', 'y'], options: { env: ['B=2'], cwd } },
    remote: { target: 'https://z.example/mcp', options: { header: ['x: 1'] } },
  });
  const { warnings, disabled, leftOut } = await read(file);
  t.deepEqual(warnings, [
    'mcp.json: context_servers.from-extension: a part of the host itself and no server that can be started; left out.',
  ]);
  t.deepEqual([disabled, leftOut], [['off'], []]);
});

test('Amp and editors: keys with dots', async (t) => {
  const servers = { a: { command: 'a', env: { KEY: '${KEY}' } }, b: { url: 'https://b.example/mcp' } };
  const env = { KEY: 'k' };
  const expected = {
    a: { target: ['a'], options: { env: ['KEY=k'], cwd } },
    b: { target: 'https://b.example/mcp', options: {} },
  };
  for (const key of ['amp.mcpServers', 'mcp.servers', 'some.editor.context_servers']) {
    t.deepEqual(await readPlain({ 'editor.fontSize': 12, [key]: servers }, { env }), expected, key);
  }
  const { warnings } = await read({ 'amp.mcpServers': servers, 'amp.tools.disable': ['mcp__a__*'] }, { env });
  t.regex(
    warnings.join(),
    /^mcp\.json: \["?"?amp\.tools\.disable.*switches off servers or tools of the host, and is not read;/,
  );
});

test('Kiro: .kiro/settings/mcp.json, whose workspace is two folders above', async (t) => {
  const file = {
    mcpServers: { a: { command: 'a', args: ['${workspaceFolder}'], autoApprove: ['x'], disabledTools: ['y'] } },
  };
  t.deepEqual((await readPlain(file, { path: '/home/me/project/.kiro/settings/mcp.json' })).a, {
    target: ['a', '/home/me/project'],
    options: { cwd, excludeTool: ['y'] },
  });
  const elsewhere = await readPlain(file, { path: '/home/me/.config/settings/mcp.json' });
  t.deepEqual(elsewhere.a?.options.cwd, ['/home/me']);
  t.deepEqual((await readPlain(file, { path: '/srv/settings/mcp.json' })).a?.options.cwd, ['/srv/settings']);
});

test('Jan and Cherry Studio: active and isActive switch servers off, baseUrl is a URL', async (t) => {
  const file = {
    mcpServers: {
      jan: { command: 'a', active: true, official: true },
      'jan-off': { command: 'a', active: false },
      cherry: { isActive: true, type: 'streamableHttp', baseUrl: 'https://c.example/mcp', name: 'Cherry', tags: [] },
      'cherry-off': { isActive: false, type: 'streamableHttp', baseUrl: '' },
      memory: { isActive: true, type: 'inMemory', command: '' },
    },
  };
  t.deepEqual(await readPlain(file), {
    jan: { target: ['a'], options: { cwd } },
    cherry: { target: 'https://c.example/mcp', options: { transport: ['streamable-http'] } },
  });
  const { disabled, warnings, leftOut } = await read(file);
  t.deepEqual([disabled, leftOut], [['jan-off', 'cherry-off'], []]);
  t.regex(warnings.join('\n'), /mcpServers\.memory: a part of the host itself/);
});

test('opencode: tools that are switched off outside of the entries are told', async (t) => {
  const { warnings } = await read({ mcp: { a: { type: 'local', command: ['a'] } }, tools: { 'a_*': false } });
  t.regex(warnings.join(), /^mcp\.json: tools: switches off servers or tools of the host/);
});

test('LibreChat: librechat.yaml', async (t) => {
  const file = `
version: 1.2.8
mcpServers:
  everything:
    url: http://localhost:3001/sse
    timeout: 60000
  sheets:
    type: sse
    url: https://mcp.example/sheets
    headers:
      X-User-ID: "{{LIBRECHAT_USER_ID}}"
      X-API-Key: "\${SOME_API_KEY}"
    serverInstructions: true
    startup: false
    chatMenu: false
  puppeteer:
    type: stdio
    command: npx
    args:
      - -y
      - "@modelcontextprotocol/server-puppeteer"
    env: { PORT: 8080, HEADLESS: true }
    iconPath: /icons/a.svg
endpoints:
  custom: []
`;
  const world = { path: '/home/me/project/librechat.yaml', env: { SOME_API_KEY: 'k' } };
  t.deepEqual(await readPlain(file, world), {
    everything: { target: 'http://localhost:3001/sse', options: { requestTimeout: [60_000] } },
    sheets: {
      target: 'https://mcp.example/sheets',
      options: { header: ['x-user-id: {{LIBRECHAT_USER_ID}}', 'x-api-key: k'], transport: ['sse'] },
    },
    puppeteer: {
      target: ['npx', '-y', '@modelcontextprotocol/server-puppeteer'],
      options: { env: ['PORT=8080', 'HEADLESS=true'], cwd },
    },
  });
  const { warnings, servers } = await read(file, world);
  t.deepEqual(
    warnings.map((warning) => warning.slice(0, 75)),
    [
      'librechat.yaml: mcpServers.sheets.headers.X-User-ID: has {{…}}, which only the',
      'librechat.yaml: mcpServers.sheets.startup: false, so the host does not start',
    ].map((warning) => warning.slice(0, 75)),
  );
  t.is(servers[2]?.place.text, 'librechat.yaml:17:5 (mcpServers.puppeteer)');
});

test('goose: config.yaml', async (t) => {
  const file = `
GOOSE_PROVIDER: anthropic
extensions:
  developer: { enabled: true, type: builtin, name: developer, timeout: 300, bundled: true }
  todo: { enabled: true, type: platform, name: todo, description: null }
  github:
    enabled: true
    type: stdio
    name: GitHub
    cmd: npx
    args: [-y, "@modelcontextprotocol/server-github"]
    envs: { MODE: fast }
    env_keys: [GITHUB_TOKEN, NOT_SET]
    timeout: 300
    available_tools: []
  remote:
    enabled: true
    type: streamable_http
    name: remote
    uri: https://r.example/mcp
    headers: { Authorization: Bearer $TOKEN }
    available_tools: [search]
  off: { enabled: false, type: stdio, name: off, cmd: x, args: [] }
`;
  const world = { path: '/home/me/.config/goose/config.yaml', env: { GITHUB_TOKEN: 'g', TOKEN: 't' } };
  t.deepEqual(await readPlain(file, world), {
    github: {
      target: ['npx', '-y', '@modelcontextprotocol/server-github'],
      options: { env: ['GITHUB_TOKEN', 'MODE=fast'], cwd: ['/home/me/.config/goose'], requestTimeout: [300_000] },
    },
    remote: {
      target: 'https://r.example/mcp',
      options: { transport: ['streamable-http'], header: ['authorization: Bearer t'], includeTool: ['search'] },
    },
  });
  const { warnings, disabled } = await read(file, world);
  t.deepEqual(disabled, ['off']);
  t.deepEqual(
    warnings.map((warning) => warning.split(': ', 2)[1]),
    ['extensions.developer, extensions.todo', 'extensions.github.env_keys[1]'],
  );
});

test('Continue: config.yaml with a list of servers, and config.json with one', async (t) => {
  const file = `name: Mine
version: 0.0.1
schema: v1
mcpServers:
  - name: SQLite MCP
    command: npx
    args: ["-y", "mcp-sqlite", "\${{ secrets.DB }}"]
    env: &common
      MODE: fast
    connectionTimeout: 5000
  - name: Second
    command: b
    env:
      <<: *common
      OTHER: x
  - name: web
    type: streamable-http
    url: https://w.example/mcp
    requestOptions:
      headers: { Authorization: "Bearer \${{ secrets.TOKEN }}" }
  - command: nameless
`;
  const world = { path: '/home/me/project/.continue/mcpServers/x.yaml', env: { DB: '/db', TOKEN: 't' } };
  const expected = {
    'SQLite-MCP': { target: ['npx', '-y', 'mcp-sqlite', '/db'], options: { env: ['MODE=fast'], cwd } },
    Second: { target: ['b'], options: { env: ['OTHER=x', 'MODE=fast'], cwd } },
    web: {
      target: 'https://w.example/mcp',
      options: { header: ['authorization: Bearer t'], transport: ['streamable-http'] },
    },
  };
  t.deepEqual(await readPlain(file, world), expected);
  const { leftOut, warnings } = await read(file, world);
  t.deepEqual(
    leftOut.map(({ error }) => error.message),
    ['x.yaml:21:5: mcpServers[3]: expected a name, got none.'],
  );
  t.deepEqual(warnings, []);
  const list = [{ name: 'a', command: 'a' }];
  t.deepEqual(await readPlain({ models: [], mcpServers: list }), { a: { target: ['a'], options: { cwd } } });
});

test('Hermes: config.yaml with mcp_servers, seconds, and tools to include or else to exclude', async (t) => {
  const file = `
model: x
mcp_servers:
  github:
    command: npx
    args: ["-y", "github"]
    timeout: 120
    connect_timeout: 60
    tools: { include: [create_issue, list_issues], exclude: [create_issue], resources: false }
  web:
    url: "https://w.example/mcp"
    headers: { Authorization: "Bearer \${TOKEN}" }
    tools: { exclude: delete_all, prompts: false }
  off: { command: x, enabled: false }
`;
  const world = { path: '/home/me/.hermes/config.yaml', env: { TOKEN: 't' } };
  t.deepEqual(await readPlain(file, world), {
    github: {
      target: ['npx', '-y', 'github'],
      options: { cwd: ['/home/me'], requestTimeout: [120_000], includeTool: ['create_issue', 'list_issues'] },
    },
    web: {
      target: 'https://w.example/mcp',
      options: { header: ['authorization: Bearer t'], excludeTool: ['delete_all'] },
    },
  });
  const { warnings, disabled } = await read(file, world);
  t.deepEqual([warnings, disabled], [[], ['off']]);
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
    remote: { target: 'https://r.example/', options: { header: ['authorization: Bearer k'], transport: ['auto'] } },
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
    a: { target: ['a', 'b'], options: { cwd: ['/home/me/project/sub'], requestTimeout: [20_000] } },
    c: { target: 'https://c.example/', options: { transport: ['auto'], requestTimeout: [30_000] } },
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
    a: { target: ['a'], options: { cwd, includeTool: ['*'] } },
    b: {
      target: 'https://b.example/',
      options: { transport: ['streamable-http'], protocol: ['modern'], excludeTool: ['*'] },
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
