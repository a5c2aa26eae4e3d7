/** Writes the usage to a file, and takes over files left by processes that have ended. */
import { chmod, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Deps } from '../../deps.ts';
import { makeFolder } from '../../io/make-folder.ts';
import { type ThisProcess, thisProcess } from '../../io/owning-process.ts';
import {
  codeOf,
  composeFile,
  type FileContent,
  type FileName,
  fileNameOf,
  includedIds,
  isGone,
  listFolder,
  parseFileName,
  readUsageFile,
  SET_ASIDE,
  usageFolderIn,
} from './usage-folder.ts';
import type { UsageTable } from './usage-table.ts';

/** Interval of writes, and so the longest time whose counts are lost if the process is killed. */
export const WRITE_EVERY_MS = 5000;
/**
 * Interval at which the bridge records that it still runs, well below the time after which other processes consider it
 * gone.
 */
export const WATCH_EVERY_MS = 10 * 60_000;
/**
 * Interval at which files of ended processes are taken over. A bridge may run for months beside clients that start a
 * new one for each conversation.
 */
export const ADOPT_EVERY_MS = 60 * 60_000;
/** Only the owner may read the names of clients. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Unreadable files that are kept for diagnosis, the newest ones. */
const MAX_SET_ASIDE = 5;
/** Longest wait for the last write at exit, since a disk may hang. */
const MAX_CLOSE_MS = 3000;

export interface UsageFileOptions {
  readonly table: UsageTable;
  readonly stateDirectory: string;
  /** Owner of the file; default: this process. */
  readonly self?: ThisProcess;
  readonly deps: Deps;
}

/** Never throws and never rejects: if nothing can be written, this is logged and counting continues. */
export class UsageFile {
  readonly #table: UsageTable;
  readonly #folder: string;
  readonly #self: ThisProcess;
  readonly #deps: Deps;
  readonly #timers: readonly (() => void)[];
  #id: string;
  /** Value of the table's `changes` at the latest write; undefined: there is no file. */
  #writtenChanges: number | undefined = undefined;
  /**
   * Files that were taken over, by id. Their counts are in the table; the files are deleted once the table was written.
   */
  readonly #claimed = new Map<string, string>();
  /** The latest of the file operations, which run one after another. */
  #work: Promise<void>;
  #waiting = 0;
  /** True while a failure has been logged and writing has not succeeded since. */
  #isTold = false;

  constructor({ table, stateDirectory, self = thisProcess(), deps }: UsageFileOptions) {
    this.#table = table;
    this.#folder = usageFolderIn(stateDirectory);
    this.#self = self;
    this.#deps = deps;
    this.#id = deps.randomId();
    const { clock } = deps;
    this.#work = this.#attempt(() => this.#adoptAndWrite());
    this.#timers = [
      clock.every(WRITE_EVERY_MS, () => this.#whenFree(() => this.#write())),
      clock.every(WATCH_EVERY_MS, () => table.watch()),
      clock.every(ADOPT_EVERY_MS, () => void this.#then(() => this.#adoptAndWrite())),
    ];
  }

  /** Resolves when everything counted was written, as far as possible. */
  flush(): Promise<void> {
    return this.#then(() => this.#write());
  }

  close(): Promise<void> {
    for (const stop of this.#timers) stop();
    this.#table.watch();
    return this.#withinTime(this.flush());
  }

  #withinTime(done: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(MAX_CLOSE_MS, resolve);
      void done.then(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Skips the operation if another is waiting, so that a slow disk causes no backlog. */
  #whenFree(run: () => Promise<void>): void {
    if (this.#waiting === 0) void this.#then(run);
  }

  #then(run: () => Promise<void>): Promise<void> {
    this.#waiting += 1;
    this.#work = this.#work.then(() => this.#attempt(run)).finally(() => (this.#waiting -= 1));
    return this.#work;
  }

  async #attempt(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (thrown) {
      if (this.#isTold) return;
      this.#isTold = true;
      const code = String(codeOf(thrown) ?? thrown);
      const text = `the usage cannot be kept in ${this.#folder} (${code}); the migration report will not know of it`;
      this.#deps.log.warn({ err: thrown }, text);
    }
  }

  get #ownName(): FileName {
    return { id: this.#id, host: this.#self.host, pid: this.#self.pid };
  }

  get #path(): string {
    return join(this.#folder, fileNameOf(this.#ownName, 'json'));
  }

  async #write(): Promise<void> {
    if (this.#table.changes === this.#writtenChanges && this.#claimed.size === 0) return;
    await this.#noticeClaim();
    const { changes } = this.#table;
    await this.#makeFolder();
    const aside = join(this.#folder, fileNameOf(this.#ownName, 'tmp'));
    const text = composeFile(this.#table.toJson(), [...this.#claimed.keys()]);
    try {
      await writeFile(aside, text, { mode: FILE_MODE });
      await rename(aside, this.#path);
    } catch (thrown) {
      await rm(aside, { force: true }).catch(() => undefined);
      throw thrown;
    }
    this.#writtenChanges = changes;
    this.#isTold = false;
    for (const [id, path] of this.#claimed) {
      await rm(path, { force: true });
      this.#claimed.delete(id);
    }
  }

  async #makeFolder(): Promise<void> {
    await makeFolder(this.#folder, FOLDER_MODE);
    // The folder may exist from earlier with other permissions.
    if (this.#writtenChanges === undefined) await chmod(this.#folder, FOLDER_MODE);
  }

  /**
   * Detects that the file is gone: another process claimed it because this one seemed to have ended, as after a
   * suspension of hours, or a user deleted it. Its counts are dropped here.
   */
  async #noticeClaim(): Promise<void> {
    if (this.#writtenChanges === undefined || (await exists(this.#path))) return;
    this.#deps.log.debug('another process has taken over the usage that was counted here');
    this.#table.clear();
    // The counts of claimed files went with the table, so another process has to take them over.
    this.#claimed.clear();
    this.#writtenChanges = undefined;
    this.#id = this.#deps.randomId();
  }

  async #adoptAndWrite(): Promise<void> {
    await this.#noticeClaim();
    await this.#adopt();
    await this.#write();
  }

  async #adopt(): Promise<void> {
    const claimed: (readonly [id: string, path: string])[] = [];
    for (const name of await listFolder(this.#folder)) {
      const path = await this.#claim(name);
      if (path !== undefined) claimed.push(path);
    }
    if (claimed.length === 0) return;
    // A process may have been killed after writing the counts that it took over and before deleting their source.
    const included = await includedIds(this.#folder);
    for (const [id, path] of claimed) {
      const content = await readUsageFile(path);
      if (content.kind === 'read') {
        if (!included.has(id)) this.#table.adopt(content.usage);
        this.#claimed.set(id, path);
      }
      if (content.kind === 'unusable') await this.#setAside(id, path, content);
    }
  }

  /** Claims a file; undefined: there is nothing to claim, or another process was faster. */
  async #claim(name: string): Promise<readonly [id: string, path: string] | undefined> {
    const found = parseFileName(name);
    if (found === undefined || found.id === this.#id || this.#claimed.has(found.id)) return undefined;
    const path = join(this.#folder, name);
    try {
      const { mtimeMs } = await stat(path);
      if (!isGone(found, mtimeMs, this.#self)) return undefined;
      if (found.ending === 'tmp') {
        await rm(path, { force: true });
        return undefined;
      }
      // Update the time before renaming: an old file with this process's name would look like that of an ended process.
      await utimes(path, new Date(), new Date());
      const own = join(this.#folder, fileNameOf({ ...this.#ownName, id: found.id }, 'json'));
      await rename(path, own);
      return [found.id, own];
    } catch (thrown) {
      if (codeOf(thrown) === 'ENOENT') return undefined;
      throw thrown;
    }
  }

  async #setAside(id: string, path: string, { problem }: Extract<FileContent, { kind: 'unusable' }>): Promise<void> {
    const aside = join(this.#folder, `${id}${SET_ASIDE}`);
    await rename(path, aside);
    this.#deps.log.warn(`a file of the usage cannot be used and was set aside as ${aside}: ${problem}`);
    const others = (await listFolder(this.#folder)).filter((name) => name.endsWith(SET_ASIDE));
    const aged = await Promise.all(
      others.map(async (name) => {
        const old = join(this.#folder, name);
        return { old, changedAtMs: (await stat(old)).ctimeMs };
      }),
    );
    aged.sort((one, other) => other.changedAtMs - one.changedAtMs);
    for (const { old } of aged.slice(MAX_SET_ASIDE)) await rm(old, { force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (thrown) {
    if (codeOf(thrown) === 'ENOENT') return false;
    throw thrown;
  }
}
