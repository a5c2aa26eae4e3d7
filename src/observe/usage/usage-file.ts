/** Writes the usage through to a file, and takes over the files that ended processes have left. */
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

/** What is lost at most where the process is killed. */
export const WRITE_EVERY_MS = 5000;
/** How often it is noted that the bridge still runs; well below the time after which others think that it does not. */
export const WATCH_EVERY_MS = 10 * 60_000;
/** A bridge that runs for months beside clients that start one for each conversation takes over what those leave. */
export const ADOPT_EVERY_MS = 60 * 60_000;
/** Names of clients are nobody else's business. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Files that nobody could read are kept for whoever wants to know why, the newest of them. */
const MAX_SET_ASIDE = 5;
/** A disk may hang; the end of the process does not wait for it. */
const MAX_CLOSE_MS = 3000;

export interface UsageFileOptions {
  readonly table: UsageTable;
  readonly stateDirectory: string;
  /** Default: this process. */
  readonly self?: ThisProcess;
  readonly deps: Deps;
}

/** Never throws and never rejects: where nothing can be written the log says so, and counting goes on. */
export class UsageFile {
  readonly #table: UsageTable;
  readonly #folder: string;
  readonly #self: ThisProcess;
  readonly #deps: Deps;
  readonly #timers: readonly (() => void)[];
  #id: string;
  /** How much of the table is in the file; undefined: there is no file. */
  #writtenChanges: number | undefined = undefined;
  /** Files that were taken over, by id: what they had is in the table, and they go when it is in the file. */
  readonly #claimed = new Map<string, string>();
  /** One thing at a time is done with files. */
  #work: Promise<void>;
  #waiting = 0;
  /** The log knows that it does not work, until it does. */
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

  /** Resolves when everything that was counted is in the file, as far as it can be written. */
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

  /** A slow disk must not make a queue. */
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
    // An older folder may have been made with other permissions.
    if (this.#writtenChanges === undefined) await chmod(this.#folder, FOLDER_MODE);
  }

  /**
   * Another process has taken this one for gone, as one that was stopped for hours, and has claimed its file; or a user
   * has deleted it. What was in it is not counted here any more.
   */
  async #noticeClaim(): Promise<void> {
    if (this.#writtenChanges === undefined || (await exists(this.#path))) return;
    this.#deps.log.debug('another process has taken over the usage that was counted here');
    this.#table.clear();
    // What they had went with the table, so whoever comes next has to take them over.
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
    // A process may have been killed between writing what it took over and deleting where that came from.
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

  /** Undefined: there is nothing to claim, or another process was faster. */
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
      // Before it has another name: a name of this process on an old file would look like one of a process that is gone.
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
