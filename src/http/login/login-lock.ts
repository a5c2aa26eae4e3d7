import { renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Deps } from '../../deps.ts';
import { readSmallFile } from '../../io/bounded-file.ts';
import { hasEnded, type OwningProcess, type ThisProcess, thisProcess } from '../../io/owning-process.ts';
import { showUrl } from '../shown-url.ts';
import { loginError } from './login-error.ts';
import { FILE_MODE, makeLoginFolder } from './login-store.ts';
import { LOGIN_TIMEOUT_MS, sleep } from './patience.ts';

/** The interval at which a waiting process checks the lock. Files cannot be watched reliably on every file system. */
const LOOK_MS = 250;
/** The interval at which an owner touches its lock. */
const TOUCH_MS = 2000;
/**
 * A lock that was not touched for this long has lost its owner. The limit is several times TOUCH_MS, because an owner
 * on a busy machine may be late. The waiting process measures with its own clock, because network file systems have
 * clocks of their own, and machines sleep.
 */
export const STALE_LOCK_MS = 15_000;
/** A process that waits longer than one login takes is waiting for several failed logins in a row. */
export const MAX_LOCK_WAIT_MS = LOGIN_TIMEOUT_MS + 30_000;
/** The wait after which a message is logged. A refresh takes less time, so only waits that users notice are logged. */
const QUIET_MS = 1000;
/** Windows reports a file that is being deleted with these codes. */
const PASSING_CODES: ReadonlySet<unknown> = new Set(['EPERM', 'EBUSY']);
const MAX_PASSING_FAULTS = 4;

export type LockDeps = Pick<Deps, 'clock' | 'randomId' | 'log'>;

/** A lock that another owner holds. */
interface HeldLock {
  readonly text: string;
  readonly touchedAtMs: number;
  /** Undefined while the file is being written, or if another program wrote it. */
  readonly owner: OwningProcess | undefined;
}

/**
 * A lock file that exists while one process of a user refreshes the tokens of a login, or has its user log in. The file
 * names its owner. Other processes break the lock if its owner has ended, or has not touched it for a while.
 */
export class LoginLock {
  readonly #path: string;
  readonly #server: URL;
  readonly #deps: LockDeps;
  readonly #self: ThisProcess = thisProcess();

  constructor(path: string, server: URL, deps: LockDeps) {
    this.#path = path;
    this.#server = server;
    this.#deps = deps;
  }

  /**
   * Runs `work` while this lock is held, or without the lock if no file can be created. Rejects with the reason of the
   * signal, and with ERR_UPSTREAM_AUTH after too long a wait; in both cases `work` was not run.
   */
  async exclusively<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const release = await this.#acquire(signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  async #acquire(signal: AbortSignal): Promise<() => void> {
    const { log, randomId } = this.#deps;
    const { host, pid } = this.#self;
    const own = JSON.stringify({ host, pid, id: randomId() });
    const wait = new LockWait(this.#server, this.#deps);
    for (let faults = 0; ; ) {
      signal.throwIfAborted();
      const code = this.#create(own);
      if (code === undefined) return this.#hold(own);
      if (code !== 'EEXIST' && (!PASSING_CODES.has(code) || ++faults >= MAX_PASSING_FAULTS)) {
        // No token is kept in a folder that cannot be written to, so no other process shares the login.
        log.debug({ code }, `the login cannot be locked in ${dirname(this.#path)}`);
        return () => {};
      }
      const held = this.#look();
      if (held !== undefined && (this.#hasOwnerEnded(held) || wait.isStale(held))) this.#break(held);
      else await wait.pause(signal, held);
    }
  }

  /** Creates the lock file. Returns the error code if that fails. */
  #create(text: string): unknown {
    try {
      makeLoginFolder(dirname(this.#path));
      writeFileSync(this.#path, text, { flag: 'wx', mode: FILE_MODE });
      return undefined;
    } catch (thrown) {
      return (thrown as NodeJS.ErrnoException).code;
    }
  }

  /** Touches the lock regularly. Returns the function that releases it. */
  #hold(own: string): () => void {
    const stopTouching = this.#deps.clock.every(TOUCH_MS, () => this.#ifStillHeld(own, () => this.#touch()));
    return () => {
      stopTouching();
      this.#ifStillHeld(own, () => rmSync(this.#path, { force: true }));
    };
  }

  #touch(): void {
    const now = new Date();
    utimesSync(this.#path, now, now);
  }

  /** Runs a function if the lock is still this process's own. After a long pause, it may belong to another process. */
  #ifStillHeld(own: string, run: () => void): void {
    try {
      if (readSmallFile(this.#path) === own) run();
    } catch {
      // The lock is gone or cannot be changed. In the second case other processes break it once this process has ended.
    }
  }

  #look(): HeldLock | undefined {
    try {
      const text = readSmallFile(this.#path);
      return { text, touchedAtMs: statSync(this.#path).mtimeMs, owner: parseOwner(text) };
    } catch {
      return undefined;
    }
  }

  #hasOwnerEnded({ owner, touchedAtMs }: HeldLock): boolean {
    return owner !== undefined && hasEnded(owner, touchedAtMs, this.#self);
  }

  /**
   * Moves the lock file away, which only one process can do. If another process has just broken the lock and created
   * its own, the moved file is that one, and is put back.
   */
  #break({ text }: HeldLock): void {
    const aside = `${this.#path}.${this.#deps.randomId()}`;
    try {
      renameSync(this.#path, aside);
      const moved = readSmallFile(aside);
      if (moved !== text) writeFileSync(this.#path, moved, { flag: 'wx', mode: FILE_MODE });
      rmSync(aside, { force: true });
    } catch {
      rmSync(aside, { force: true });
    }
  }
}

/** The state of a single wait for a lock: its beginning, and the time since when the lock has not changed. */
class LockWait {
  readonly #server: URL;
  readonly #deps: LockDeps;
  readonly #beganMs: number;
  #seen: string | undefined;
  #unchangedSinceMs = 0;
  #hasSaidSo = false;

  constructor(server: URL, deps: LockDeps) {
    this.#server = server;
    this.#deps = deps;
    this.#beganMs = deps.clock.now();
  }

  isStale({ text, touchedAtMs }: HeldLock): boolean {
    const now = this.#deps.clock.now();
    const seen = `${touchedAtMs} ${text}`;
    if (seen !== this.#seen) this.#unchangedSinceMs = now;
    this.#seen = seen;
    return now - this.#unchangedSinceMs > STALE_LOCK_MS;
  }

  async pause(signal: AbortSignal, held: HeldLock | undefined): Promise<void> {
    const { clock, log } = this.#deps;
    const waitedMs = clock.now() - this.#beganMs;
    const server = showUrl(this.#server);
    if (waitedMs > MAX_LOCK_WAIT_MS) {
      const problem = `Other processes of this user have been logging in at ${server} for ${MAX_LOCK_WAIT_MS / 1000} s, one after the other`;
      throw loginError(problem, 'Nothing was done here; the next call tries again.', LOOK_MS);
    }
    if (waitedMs >= QUIET_MS && !this.#hasSaidSo) {
      this.#hasSaidSo = true;
      const pid = held?.owner?.pid;
      const who = pid === undefined ? 'another process' : `another process (${pid})`;
      log.warn(`${who} is logging in at ${server}; waiting for it instead of opening a browser`);
    }
    await sleep(clock, LOOK_MS, signal);
  }
}

function parseOwner(text: string): OwningProcess | undefined {
  try {
    const { host, pid } = JSON.parse(text);
    return typeof host === 'string' && Number.isSafeInteger(pid) && pid > 0 ? { host, pid } : undefined;
  } catch {
    return undefined;
  }
}
