/** Finds the folder for data that outlives a run: logins, and usage counts. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { GivenOptions } from '../../options/given-options.ts';

/** The user's environment. */
export interface UserSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** Throws for a user without a home folder. The default asks the operating system. */
  readonly homeFolder?: (() => string) | undefined;
}

/** Returns the folder's absolute path, or undefined for a user without a home folder, as in some containers. */
export function findStateDirectory(
  given: GivenOptions,
  { env, platform, homeFolder = homedir }: UserSurroundings,
): string | undefined {
  const configured = given.get('stateDir');
  if (configured !== undefined) return configured;
  if (env.XDG_STATE_HOME) return join(env.XDG_STATE_HOME, 'mcp-portage');
  if (platform === 'win32' && env.LOCALAPPDATA) return join(env.LOCALAPPDATA, 'mcp-portage');
  try {
    return join(env.HOME || env.USERPROFILE || homeFolder(), '.mcp-portage');
  } catch {
    return undefined;
  }
}
