import { isAbsolute, join } from 'node:path';

/** The place of a configuration file in which a host lists its servers. */
export interface HostFile {
  readonly host: string;
  /** The absolute path. */
  readonly path: string;
  /** `folder`: of the project in the current folder. `user`: of all projects. */
  readonly scope: 'user' | 'folder';
}

export interface FilePlaces {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Undefined for a user without a home folder, as in some containers. */
  readonly home: string | undefined;
  readonly cwd: string;
}

/** Files below the home folder, in the same place on all systems. */
const AT_HOME: readonly (readonly [host: string, path: string])[] = [
  ['Claude Code', '.claude.json'],
  ['Cursor', '.cursor/mcp.json'],
  ['Windsurf', '.codeium/windsurf/mcp_config.json'],
  ['Gemini CLI', '.gemini/settings.json'],
  ['Copilot CLI', '.copilot/mcp-config.json'],
  ['Kiro', '.kiro/settings/mcp.json'],
  ['LM Studio', '.lmstudio/mcp.json'],
];

/** Files below the folder for settings of applications, which each system has elsewhere. */
const IN_APPLICATION_DATA: readonly (readonly [host: string, path: string])[] = [
  ['Claude Desktop', 'Claude/claude_desktop_config.json'],
  ['VS Code', 'Code/User/mcp.json'],
  ['VS Code Insiders', 'Code - Insiders/User/mcp.json'],
];

/** Files of programs that keep their settings below `~/.config` on macOS as well. */
const IN_CONFIG: readonly (readonly [host: string, path: string])[] = [
  ['opencode', 'opencode/opencode.json'],
  ['opencode', 'opencode/opencode.jsonc'],
  ['Zed', 'zed/settings.json'],
  ['goose', 'goose/config.yaml'],
  ['Amp', 'amp/settings.json'],
];

const IN_FOLDER: readonly (readonly [host: string, path: string])[] = [
  ['Claude Code', '.mcp.json'],
  ['Cursor', '.cursor/mcp.json'],
  ['VS Code', '.vscode/mcp.json'],
  ['Gemini CLI', '.gemini/settings.json'],
  ['Codex', '.codex/config.toml'],
  ['opencode', 'opencode.json'],
  ['opencode', 'opencode.jsonc'],
  ['Zed', '.zed/settings.json'],
  ['Kiro', '.kiro/settings/mcp.json'],
];

/** Returns where hosts keep their servers, whether the files exist or not. */
export function hostFiles({ platform, env, home, cwd }: FilePlaces): readonly HostFile[] {
  const files: HostFile[] = [];
  const add = (scope: HostFile['scope'], folder: string | undefined, names: typeof AT_HOME): void => {
    if (folder === undefined || !isAbsolute(folder)) return;
    for (const [host, path] of names) files.push({ host, scope, path: join(folder, ...path.split('/')) });
  };
  add('user', applicationData({ platform, env, home }), IN_APPLICATION_DATA);
  add('user', home, AT_HOME);
  add('user', env.CODEX_HOME || (home && join(home, '.codex')), [['Codex', 'config.toml']]);
  add('user', configFolder({ platform, env, home }), IN_CONFIG);
  // In the home folder, the files of the project are those of the user.
  const known = new Set(files.map(({ path }) => path));
  add('folder', cwd, IN_FOLDER);
  return files.filter(({ path, scope }) => scope === 'user' || !known.has(path));
}

function applicationData({ platform, env, home }: Omit<FilePlaces, 'cwd'>): string | undefined {
  if (platform === 'win32') return env.APPDATA;
  if (platform === 'darwin') return home && join(home, 'Library', 'Application Support');
  return configFolder({ platform, env, home });
}

function configFolder({ platform, env, home }: Omit<FilePlaces, 'cwd'>): string | undefined {
  if (platform === 'win32') return env.APPDATA;
  return env.XDG_CONFIG_HOME || (home && join(home, '.config'));
}
