import { dirname } from 'node:path';
import type { Deps } from '../../deps.ts';
import { FileLock } from '../../io/file-lock.ts';
import type { OwningProcess } from '../../io/owning-process.ts';
import { showUrl } from '../shown-url.ts';
import { loginError } from './login-error.ts';
import { makeLoginFolder } from './login-store.ts';
import { LOGIN_TIMEOUT_MS } from './patience.ts';

/** The interval at which a waiting process checks the lock. */
const LOOK_MS = 250;
/** A process that waits longer than one login takes is waiting for several failed logins in a row. */
export const MAX_LOCK_WAIT_MS = LOGIN_TIMEOUT_MS + 30_000;
/** The wait after which a message is logged. A refresh takes less time, so only waits that users notice are logged. */
const QUIET_MS = 1000;

export type LockDeps = Pick<Deps, 'clock' | 'randomId' | 'log'>;

/** A lock that one process of a user holds while it refreshes the tokens of a login, or has its user log in. */
export class LoginLock {
  readonly #lock: FileLock;

  constructor(path: string, server: URL, deps: LockDeps) {
    const folder = dirname(path);
    this.#lock = new FileLock({
      path,
      lookMs: LOOK_MS,
      makeFolder: () => makeLoginFolder(folder),
      // No token is kept in a folder that cannot be written to, so no other process shares the login.
      onImpossible: (code) => deps.log.debug({ code }, `the login cannot be locked in ${folder}`),
      onWait: () => reportWait(showUrl(server), deps.log),
      deps,
    });
  }

  /**
   * Runs `work` while this lock is held, or without the lock if no file can be created. Rejects with the reason of the
   * signal, and with ERR_UPSTREAM_AUTH after too long a wait; in both cases `work` was not run.
   */
  exclusively<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#lock.exclusively(work, signal);
  }
}

/** Reports a wait once, and ends it if it takes too long. */
function reportWait(server: string, log: Deps['log']): (waitedMs: number, owner: OwningProcess | undefined) => void {
  let hasSaidSo = false;
  return (waitedMs, owner) => {
    if (waitedMs > MAX_LOCK_WAIT_MS) {
      const problem = `Other processes of this user have been logging in at ${server} for ${MAX_LOCK_WAIT_MS / 1000} s, one after the other`;
      throw loginError(problem, 'Nothing was done here; the next call tries again.', LOOK_MS);
    }
    if (waitedMs < QUIET_MS || hasSaidSo) return;
    hasSaidSo = true;
    const who = owner === undefined ? 'another process' : `another process (${owner.pid})`;
    log.warn(`${who} is logging in at ${server}; waiting for it instead of opening a browser`);
  };
}
