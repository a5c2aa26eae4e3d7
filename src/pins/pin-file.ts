import { realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Deps } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import { readSmallFile } from '../io/bounded-file.ts';
import { FileLock } from '../io/file-lock.ts';
import { replaceFile } from '../io/replace-file.ts';
import {
  arePinnedAlike,
  DamagedPins,
  formatPins,
  NO_PINS,
  noteSightings,
  type Pins,
  parsePins,
  type Sighting,
} from './pins.ts';

/** Tens of thousands of tools. */
const MAX_FILE_BYTES = 16 * 2 ** 20;
/** The interval at which a waiting process checks the lock, which others hold for milliseconds. */
const LOOK_MS = 20;
/** No process holds the lock for so long, unless its disk hangs. */
const MAX_WAIT_MS = 30_000;
/** Sightings of a moment are written together. */
const NOTE_AFTER_MS = 20;
/** Shortest time between two writes of sightings, because a server may change its tools all the time. */
const NOTE_EVERY_MS = 1000;
/** Sightings that wait to be written. Later ones are not noted; their tools are hidden all the same. */
const MAX_NOTED = 10_000;

export type PinFileDeps = Pick<Deps, 'clock' | 'randomId' | 'log'>;

/** Identifies one version of a file. Each version is another file, which takes the place of the one before. */
type Stamp = string;
const MISSING: Stamp = 'missing';

/**
 * A file with pins. Several processes may use it at a time: each reads it again when it has changed, and changes it
 * while it holds a lock, so nothing that another one has written is lost. Reading and writing are synchronous: a version
 * is read once, and written only when tools are pinned or have changed.
 */
export class PinFile {
  /** The path as it was given, for messages. */
  readonly path: string;
  /** The file itself, where the path is a link, which stays. */
  readonly #place: string;
  readonly #deps: PinFileDeps;
  readonly #lock: FileLock;
  readonly #never = new AbortController().signal;
  #pins: Pins;
  #stamp: Stamp;
  #version = 0;
  /** The latest sighting of each tool in each era, which has not been written yet. */
  readonly #sightings = new Map<string, Sighting>();
  #cancelNote: (() => void) | undefined;
  #notedAtMs = Number.NEGATIVE_INFINITY;
  /** The latest change, which the next one waits for. */
  #work: Promise<unknown> = Promise.resolve();

  /** Reads the file. A file that does not exist has no pins yet. Throws ERR_CONFIG_PINS if it is damaged. */
  constructor(path: string, deps: PinFileDeps) {
    this.path = path;
    this.#place = placeOf(path);
    this.#deps = deps;
    this.#lock = new FileLock({
      path: `${this.#place}.lock`,
      lookMs: LOOK_MS,
      makeFolder: () => {},
      onImpossible: (code) => {
        throw new BridgeError('ERR_CONFIG_PINS', `Cannot write the pins of tools into ${dirname(path)} (${code}).`);
      },
      onWait: () => (waitedMs) => {
        if (waitedMs <= MAX_WAIT_MS) return;
        throw new BridgeError(
          'ERR_CONFIG_PINS',
          `Other processes have been changing ${path} for ${MAX_WAIT_MS / 1000} s.`,
        );
      },
      deps,
    });
    this.#stamp = stampOf(this.#place);
    this.#pins = readPins(path);
  }

  /** The pins as last read. */
  get pins(): Pins {
    return this.#pins;
  }

  /** Increases with each change of what is pinned. What waits does not count. */
  get version(): number {
    return this.#version;
  }

  /**
   * Reads the file again if another process has changed it. If it cannot be used anymore, the pins that were read before
   * go on to count.
   */
  look(): void {
    const stamp = stampOf(this.#place);
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    try {
      if (stamp === MISSING) throw gone(this.path);
      this.#take(readPins(this.path));
    } catch (thrown) {
      if (!(thrown instanceof BridgeError)) throw thrown;
      const { code, message } = thrown;
      this.#deps.log.error({ code }, `${message} Until then, the pins that were read before count.`);
    }
  }

  #take(pins: Pins): void {
    if (!arePinnedAlike(pins, this.#pins)) this.#version += 1;
    this.#pins = pins;
  }

  /**
   * Changes the pins, as they are in the file at that moment. Resolves once the file is written, or needs no change.
   * Rejects with ERR_CONFIG_PINS if it cannot be written, or is damaged by now.
   */
  change(edit: (pins: Pins) => Pins): Promise<void> {
    const changed = this.#work.then(() => this.#lock.exclusively(async () => this.#change(edit), this.#never));
    this.#work = changed.catch(() => {});
    return changed;
  }

  #change(edit: (pins: Pins) => Pins): void {
    // A file that was deleted is written again with all that was in it, for its tools were pinned once.
    const before = stampOf(this.#place) === MISSING ? this.#pins : readPins(this.path);
    const after = edit(before);
    if (after !== before) writePins(this.#place, after, this.#deps.randomId);
    this.#stamp = stampOf(this.#place);
    this.#take(after);
  }

  /** Notes a definition for `pin --accept`, some time later. */
  note(sighting: Sighting): void {
    const { server, tool, era } = sighting;
    const key = JSON.stringify([server, tool, era]);
    if (this.#sightings.size >= MAX_NOTED && !this.#sightings.has(key)) return;
    this.#sightings.set(key, sighting);
    const { clock } = this.#deps;
    const delayMs = Math.max(NOTE_AFTER_MS, this.#notedAtMs + NOTE_EVERY_MS - clock.now());
    this.#cancelNote ??= clock.after(delayMs, () => void this.#writeSightings());
  }

  async #writeSightings(): Promise<void> {
    this.#cancelNote?.();
    this.#cancelNote = undefined;
    this.#notedAtMs = this.#deps.clock.now();
    const sightings = [...this.#sightings.values()];
    this.#sightings.clear();
    try {
      await this.change((pins) => noteSightings(pins, sightings));
    } catch (thrown) {
      if (!(thrown instanceof BridgeError)) throw thrown;
      this.#deps.log.error({ code: thrown.code }, thrown.message);
    }
  }

  /** Resolves when everything noted was written, as far as possible. */
  async close(): Promise<void> {
    if (this.#cancelNote !== undefined) await this.#writeSightings();
    await this.#work;
  }
}

function placeOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function stampOf(path: string): Stamp {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? MISSING : `${stats.ino} ${stats.mtimeMs} ${stats.size}`;
}

/** Throws ERR_CONFIG_PINS for a file that cannot be used. A file that does not exist has no pins. */
export function readPins(path: string): Pins {
  try {
    const text = readSmallFile(path, MAX_FILE_BYTES);
    if (isOpenToOthers(path)) throw new DamagedPins('other users can write to it, so it may not be what was pinned');
    return parsePins(text);
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    if (code === 'ENOENT') return NO_PINS;
    const reason = thrown instanceof DamagedPins ? thrown.message : `it cannot be read (${code})`;
    throw new BridgeError(
      'ERR_CONFIG_PINS',
      `The pins of tools in ${path} cannot be used: ${reason}. Restore the file, or delete it, which pins the tools anew as they are then.`,
    );
  }
}

/** Windows does not report the permissions of other users in the mode. */
function isOpenToOthers(path: string): boolean {
  return process.platform !== 'win32' && (statSync(path).mode & 0o022) !== 0;
}

function gone(path: string): BridgeError {
  return new BridgeError('ERR_CONFIG_PINS', `The pins of tools in ${path} are gone. Restore the file.`);
}

function writePins(path: string, pins: Pins, randomId: () => string): void {
  const text = formatPins(pins);
  if (Buffer.byteLength(text) > MAX_FILE_BYTES) {
    const message = `The pins of all tools would have more than ${MAX_FILE_BYTES} bytes, the most allowed in ${path}; use several files.`;
    throw new BridgeError('ERR_CONFIG_PINS', message);
  }
  try {
    replaceFile(path, text, randomId);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    throw new BridgeError('ERR_CONFIG_PINS', `Cannot write the pins of tools to ${path} (${code}).`, { cause: thrown });
  }
}
