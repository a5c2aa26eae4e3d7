import test from 'ava';
import { hostFiles } from '../../../src/cli/info/host-files.ts';

const at = (platform: NodeJS.Platform, env: Readonly<Record<string, string>>, home: string | undefined = '/home/me') =>
  hostFiles({ platform, env, home, cwd: '/project' }).map(({ host, path }) => `${host}: ${path}`);

test('on Linux, applications keep their files below ~/.config, or where XDG_CONFIG_HOME says', (t) => {
  t.true(at('linux', {}).includes('Claude Desktop: /home/me/.config/Claude/claude_desktop_config.json'));
  t.true(at('linux', {}).includes('opencode: /home/me/.config/opencode/opencode.json'));
  t.true(at('linux', { XDG_CONFIG_HOME: '/cfg' }).includes('VS Code: /cfg/Code/User/mcp.json'));
});

test('on macOS, applications keep them in Application Support, and command lines below ~/.config', (t) => {
  const files = at('darwin', {});
  t.true(files.includes('VS Code: /home/me/Library/Application Support/Code/User/mcp.json'));
  t.true(files.includes('Zed: /home/me/.config/zed/settings.json'));
});

test('on Windows, applications keep them where APPDATA says', (t) => {
  const files = at('win32', { APPDATA: '/roaming' });
  t.true(files.includes('Claude Desktop: /roaming/Claude/claude_desktop_config.json'));
  t.true(files.includes('Cursor: /home/me/.cursor/mcp.json'));
});

test('Codex has a variable for its folder', (t) => {
  t.true(at('linux', {}).includes('Codex: /home/me/.codex/config.toml'));
  t.true(at('linux', { CODEX_HOME: '/codex' }).includes('Codex: /codex/config.toml'));
});

test('the files of the project come last, once if it is the home folder, and without a home folder alone', (t) => {
  t.is(at('linux', {}).at(-1), 'Kiro: /project/.kiro/settings/mcp.json');
  const atHome = hostFiles({ platform: 'linux', env: {}, home: '/home/me', cwd: '/home/me' });
  t.deepEqual(
    atHome.filter(({ path }) => path === '/home/me/.cursor/mcp.json').map(({ scope }) => scope),
    ['user'],
  );
  t.true(
    hostFiles({ platform: 'linux', env: {}, home: undefined, cwd: '/w' }).every(({ scope }) => scope === 'folder'),
  );
});
