/** Coordinates processes that change the same file, by a lock file beside it. */
import { renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import type { Deps } from '../deps.ts';
import { readSmallFile } from './bounded-file.ts';
import { hasEnded, type OwningProcess, type ThisProcess, thisProcess } from './owning-process.ts';
import { sleep } from './sleep.ts';

/** The interval at which an owner touches its lock. */
const TOUCH_MS = 2000;
/**
 * A lock that was not touched for this long has lost its owner. The limit is several times TOUCH_MS, because an owner
 * on a busy machine may be late. The waiting process measures with its own clock, because network file systems have
 * clocks of their own, and machines sleep.
 */
export const STALE_LOCK_MS = 15_000;
/** Windows reports a file that is being deleted with these codes. */
const PASSING_CODES: ReadonlySet<unknown> = new Set(['EPERM', 'EBUSY']);
const MAX_PASSING_FAULTS = 4;
/** Only the user may read a lock. */
const FILE_MODE = 0o600;

export interface FileLockOptions {
  readonly path: string;
  /** The interval at which a waiting process checks the lock. Files cannot be watched reliably on every file system. */
  readonly lookMs: number;
  /** Creates the folder of the lock file. Throws the error of the file system. */
  readonly makeFolder: () => void;
  /** Called if no lock file can be created, with the error's code. The work is done without a lock unless this throws. */
  readonly onImpossible: (code: unknown) => void;
  /** Returns a function that is called before each pause of one wait. The wait ends if it throws. */
  readonly onWait: () => (waitedMs: number, owner: OwningProcess | undefined) => void;
  readonly deps: Pick<Deps, 'clock' | 'randomId'>;
}

/** A lock that another owner holds. */
interface HeldLock {
  readonly text: string;
  readonly touchedAtMs: number;
  /** Undefined while the file is being written, or if another program wrote it. */
  readonly owner: OwningProcess | undefined;
}

/**
 * A lock file that exists while one process works. The file names its owner. Other processes break the lock if its owner
 * has ended, or has not touched it for a while.
 */
export class FileLock {
  readonly #options: FileLockOptions;
  readonly #self: ThisProcess = thisProcess();

  constructor(options: FileLockOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` while this lock is held. Rejects with the reason of the signal, and with what the functions of the
   * options throw; in both cases `work` was not run.
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
    const { deps, lookMs, onImpossible, onWait } = this.#options;
    const { host, pid } = this.#self;
    const own = JSON.stringify({ host, pid, id: deps.randomId() });
    const beganMs = deps.clock.now();
    const waits = onWait();
    const changes = new LockChanges(deps.clock);
    for (let faults = 0; ; ) {
      signal.throwIfAborted();
      const code = this.#create(own);
      if (code === undefined) return this.#hold(own);
      if (code !== 'EEXIST' && (!PASSING_CODES.has(code) || ++faults >= MAX_PASSING_FAULTS)) {
        onImpossible(code);
        return () => {};
      }
      const held = this.#look();
      if (held !== undefined && (this.#hasOwnerEnded(held) || changes.isStale(held))) {
        this.#break(held);
      } else {
        waits(deps.clock.now() - beganMs, held?.owner);
        await sleep(deps.clock, lookMs, signal);
      }
    }
  }

  /** Creates the lock file. Returns the error code if that fails. */
  #create(text: string): unknown {
    try {
      this.#options.makeFolder();
      writeFileSync(this.#options.path, text, { flag: 'wx', mode: FILE_MODE });
      return undefined;
    } catch (thrown) {
      return (thrown as NodeJS.ErrnoException).code;
    }
  }

  /** Touches the lock regularly. Returns the function that releases it. */
  #hold(own: string): () => void {
    const { path, deps } = this.#options;
    const stopTouching = deps.clock.every(TOUCH_MS, () => this.#ifStillHeld(own, () => this.#touch()));
    return () => {
      stopTouching();
      this.#ifStillHeld(own, () => rmSync(path, { force: true }));
    };
  }

  #touch(): void {
    const now = new Date();
    utimesSync(this.#options.path, now, now);
  }

  /** Runs a function if the lock is still this process's own. After a long pause, it may belong to another process. */
  #ifStillHeld(own: string, run: () => void): void {
    try {
      if (readSmallFile(this.#options.path) === own) run();
    } catch {
      // The lock is gone or cannot be changed. In the second case other processes break it once this process has ended.
    }
  }

  #look(): HeldLock | undefined {
    const { path } = this.#options;
    try {
      const text = readSmallFile(path);
      return { text, touchedAtMs: statSync(path).mtimeMs, owner: parseOwner(text) };
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
    const { path, deps } = this.#options;
    const aside = `${path}.${deps.randomId()}`;
    try {
      renameSync(path, aside);
      const moved = readSmallFile(aside);
      if (moved !== text) writeFileSync(path, moved, { flag: 'wx', mode: FILE_MODE });
      rmSync(aside, { force: true });
    } catch {
      rmSync(aside, { force: true });
    }
  }
}

/** The time since when a lock has not changed, as one waiting process sees it. */
class LockChanges {
  readonly #clock: Deps['clock'];
  #seen: string | undefined;
  #unchangedSinceMs = 0;

  constructor(clock: Deps['clock']) {
    this.#clock = clock;
  }

  isStale({ text, touchedAtMs }: HeldLock): boolean {
    const now = this.#clock.now();
    const seen = `${touchedAtMs} ${text}`;
    if (seen !== this.#seen) this.#unchangedSinceMs = now;
    this.#seen = seen;
    return now - this.#unchangedSinceMs > STALE_LOCK_MS;
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
