/** Who may have written a file whose commands are going to be run: ssh's rule for its own configuration. */
import type { Stats } from 'node:fs';

export interface PermissionSources {
  readonly platform: NodeJS.Platform;
  /** Of the user who runs us; undefined: the system has none. */
  readonly uid: number | undefined;
}

/** Why the file is not to be trusted, as the rest of a sentence that begins with its name; undefined: it is. */
export function distrust(
  { mode, uid }: Pick<Stats, 'mode' | 'uid'>,
  { platform, uid: ours }: PermissionSources,
): string | undefined {
  if (platform === 'win32' || ours === undefined) return undefined;
  if (uid !== ours && uid !== 0) {
    return `belongs to another user (${uid}), who could have any command run here; it must belong to you or to root`;
  }
  if ((mode & 0o022) === 0) return undefined;
  const who = (mode & 0o002) === 0 ? 'its group' : 'everybody';
  return `can be written by ${who}, who could have any command run here; chmod go-w makes it yours alone`;
}
