/** `mcp-portage info` as the built program; `npm test` builds it first. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { EXECUTABLE } from '../stdio-program.ts';

const SECRET = 'hunter2-secret';

interface World {
  readonly home: string;
  readonly project: string;
  write(path: string, content: string | object): string;
  info(...argv: string[]): Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number }>;
}

function world(t: ExecutionContext, env: Readonly<Record<string, string>> = {}): World {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'mcp-portage-info-')));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  const home = join(root, 'ann');
  const project = join(home, 'project');
  mkdirSync(project, { recursive: true });
  return {
    home,
    project,
    write(path, content) {
      const file = join(home, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 });
      return file;
    },
    async info(...argv) {
      const child = spawn(process.execPath, [EXECUTABLE, 'info', ...argv], {
        cwd: project,
        env: { PATH: process.env.PATH, HOME: home, NODE_DISABLE_COMPILE_CACHE: '1', ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const [stdout, stderr, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'close'),
      ]);
      return { stdout, stderr, code };
    },
  };
}

const COMMAND = { command: 'server', env: { API_KEY: SECRET } };

test('shows versions, the system, files of hosts with their servers, folders and names of variables', async (t) => {
  const { write, info } = world(t, { MCP_PORTAGE_PORT: '9', MCP_PORTAGE_BEARER_TOKEN: SECRET, MCP_PORTAGE_HOST: '' });
  write('.cursor/mcp.json', { mcpServers: { a: COMMAND, b: COMMAND, c: { ...COMMAND, disabled: true } } });
  write('.codex/config.toml', '[mcp_servers.one]\ncommand = "x"\n');
  write('.config/goose/config.yaml', 'extensions:\n  memory:\n    type: stdio\n    cmd: npx\n');
  write('.claude.json', { numStartups: 3 });
  write('project/.mcp.json', { mcpServers: { a: { url: `https://ann:${SECRET}@example.com/mcp` } } });
  write('.mcp-portage/logins/x.json', {});
  const { stdout, stderr, code } = await info();
  t.is(code, 0);
  t.is(stderr, '');
  t.regex(stdout, /^ {2}mcp-portage {2}\d+\.\d+\.\d+$/m);
  t.regex(stdout, new RegExp(`^ {2}Node +${process.versions.node} \\(V8 `, 'm'));
  t.regex(stdout, new RegExp(`^ {2}System +${process.platform} .*, ${process.arch}`, 'm'));
  t.regex(stdout, /^ {2}Cursor +~\/\.cursor\/mcp\.json: 2 servers, and 1 disabled$/m);
  t.regex(stdout, /^ {2}Codex +~\/\.codex\/config\.toml: 1 server$/m);
  t.regex(stdout, /^ {2}goose +~\/\.config\/goose\/config\.yaml: 1 server$/m);
  t.regex(stdout, /^ {2}Claude Code +~\/\.claude\.json: 0 servers$/m);
  t.regex(stdout, /^ {2}Claude Code +\.mcp\.json: 1 server$/m);
  t.regex(stdout, /^ {2}logins +~\/\.mcp-portage\/logins$/m);
  t.regex(stdout, /^ {2}usage counts +~\/\.mcp-portage\/usage \(does not exist\)$/m);
  t.regex(stdout, /^ {2}MCP_PORTAGE_BEARER_TOKEN\n {2}MCP_PORTAGE_PORT\n/m);
  t.notRegex(stdout, /MCP_PORTAGE_HOST/, 'an empty variable sets nothing');
});

test('has no secret, no value of a variable and no name of the home folder', async (t) => {
  const { home, write, info } = world(t, { MCP_PORTAGE_HEADER: `x: ${SECRET}` });
  write('.cursor/mcp.json', { mcpServers: { [SECRET]: { ...COMMAND, args: [SECRET] } } });
  write('.gemini/settings.json', `{"mcpServers": {"${SECRET}": ${SECRET}}`);
  write('.codex/config.toml', `[mcp_servers.a]\nbearer = ${SECRET}\n`);
  for (const argv of [[], ['--json']]) {
    const { stdout, stderr, code } = await info(...argv);
    t.is(code, 0);
    t.false(stdout.includes(SECRET), stdout);
    t.false(stdout.includes(home), stdout);
    t.is(stderr, '');
  }
});

test('a file that cannot be read is found, with the reason, and the others are shown', async (t) => {
  const { write, info } = world(t);
  write('.cursor/mcp.json', '{"mcpServers": {');
  write('.codex/config.toml', '[mcp_servers.one\n');
  write('.gemini/settings.json', Buffer.from([0xff, 0xfe, 0x00]).toString('latin1'));
  chmodSync(write('.copilot/mcp-config.json', { mcpServers: { a: COMMAND } }), 0o666);
  write('.kiro/settings/mcp.json/folder', '');
  write('.codeium/windsurf/mcp_config.json', { mcpServers: { a: { serverUrl: 'https://example.com' } } });
  const { stdout, code } = await info();
  t.is(code, 0);
  t.regex(stdout, /Cursor +~\/\.cursor\/mcp\.json: found, cannot be read: .*mcp\.json:1:\d+/);
  t.regex(stdout, /Codex +~\/\.codex\/config\.toml: found, cannot be read: /);
  t.regex(stdout, /Gemini CLI +~\/\.gemini\/settings\.json: found, cannot be read: /);
  t.regex(stdout, /Kiro +~\/\.kiro\/settings\/mcp\.json: found, cannot be read: .* is a directory/);
  t.regex(stdout, /Windsurf +.*: 1 server$/m);
  if (process.platform !== 'win32') t.regex(stdout, /Copilot CLI +.*: found, cannot be read: others may write to ~\//);
});

test('--json has the same for programs', async (t) => {
  const { write, info } = world(t, { MCP_PORTAGE_PORT: '9' });
  write('.cursor/mcp.json', { mcpServers: { a: COMMAND } });
  write('.vscode/mcp.json', { servers: {} });
  write('project/.vscode/mcp.json', '[');
  const { stdout } = await info('--json', '--state-dir', 'kept');
  const found = JSON.parse(stdout);
  t.like(found, {
    format: 1,
    node: process.version,
    v8: process.versions.v8,
    system: { platform: process.platform, arch: process.arch },
    variables: ['MCP_PORTAGE_PORT'],
  });
  t.deepEqual(found.hosts[0], { host: 'Cursor', file: '~/.cursor/mcp.json', servers: 1, disabled: 0, problem: null });
  t.like(found.hosts[1], { host: 'VS Code', file: join('.vscode', 'mcp.json'), servers: null, disabled: null });
  t.regex(found.hosts[1].problem, /^mcp\.json:1:\d+: /);
  t.deepEqual(found.state[0], { what: 'logins', folder: '~/project/kept/logins', exists: false });
});

test('writes nothing', async (t) => {
  const { home, project, info } = world(t);
  await info();
  t.deepEqual(readdirSync(home), ['project']);
  t.deepEqual(readdirSync(project), []);
});

for (const argv of [['https://example.com/mcp'], ['file.json'], ['--', 'server'], ['--port', '1']]) {
  test(`info refuses ${argv.join(' ')}`, async (t) => {
    const { stderr, code } = await world(t).info(...argv);
    t.is(code, 2);
    t.regex(stderr, /`?info`? (takes|describes|only describes)|is for/);
  });
}
