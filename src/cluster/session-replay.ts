import type { Logger } from 'pino';
import { toBridgeError } from '../errors.ts';
import type { ReplayLog, ReplayRun, StoredReplay } from '../relay/sessions/session-storage.ts';
import type { LogLimits, LogStore } from '../store/store.ts';
import type { JsonRpcId } from '../wire/frame.ts';

/** Entries stored of a session's streams: as much as its own replica keeps. An entry holds one event or several. */
export const MAX_REPLAY_ENTRIES = 1000;
/** What waits to be stored; if the store is that far behind, it is left out, and whoever misses it is told so. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Stored together. */
const MAX_TOGETHER = 100;

const HEAD_BYTES = 16;
const KINDS = { run: 0, opened: 1, ended: 2 } as const;

/** The streams of one session in the store, written behind what is sent. */
export class SessionReplay implements ReplayLog {
  readonly #name: string;
  readonly #logs: LogStore;
  readonly #limits: LogLimits;
  readonly #log: Logger;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;

  constructor(name: string, logs: LogStore, limits: LogLimits, log: Logger) {
    this.#name = name;
    this.#logs = logs;
    this.#limits = limits;
    this.#log = log;
  }

  add({ stream, sequence, count, bytes }: ReplayRun): void {
    this.#append(Buffer.concat([encodeHead(KINDS.run, { stream, sequence, count }), bytes]));
  }

  opened(stream: number, requests: readonly JsonRpcId[]): void {
    const head = encodeHead(KINDS.opened, { stream, sequence: 0, count: 0 });
    this.#append(Buffer.concat([head, Buffer.from(JSON.stringify(requests))]));
  }

  ended(stream: number): void {
    this.#append(encodeHead(KINDS.ended, { stream, sequence: 0, count: 0 }));
  }

  #append(entry: Buffer): void {
    if (this.#waitingBytes + entry.length > MAX_WAITING_BYTES) return;
    this.#waiting.push(entry);
    this.#waitingBytes += entry.length;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #write(): Promise<void> {
    // What is said in one turn is stored together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const entries = this.#waiting.splice(0, MAX_TOGETHER);
      for (const { length } of entries) this.#waitingBytes -= length;
      try {
        await this.#logs.append(this.#name, entries, this.#limits);
      } catch (thrown) {
        this.#log.debug({ code: toBridgeError(thrown).code }, 'events could not be stored for clients that come back');
      }
    }
  }

  /** Resolves when all that was said until now is stored, or cannot be. */
  async flushed(): Promise<void> {
    await this.#writing;
  }

  /** What was stored under this name. */
  static async read(logs: LogStore, name: string): Promise<StoredReplay> {
    const runs: ReplayRun[] = [];
    const unended = new Map<number, readonly JsonRpcId[]>();
    for (const entry of await logs.read(name)) {
      const { kind, ...head } = decodeHead(entry);
      if (kind === KINDS.ended) unended.delete(head.stream);
      else if (kind === KINDS.run) runs.push({ ...head, bytes: entry.subarray(HEAD_BYTES) });
      else unended.set(head.stream, JSON.parse(entry.toString('utf8', HEAD_BYTES)) as JsonRpcId[]); // sealed by a replica
    }
    return { runs, unended };
  }
}

type Head = Omit<ReplayRun, 'bytes'>;

function encodeHead(kind: number, { stream, sequence, count }: Head): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(kind, 0);
  head.writeUIntBE(stream, 1, 6);
  head.writeUIntBE(sequence, 7, 6);
  head.writeUIntBE(count, 13, 3);
  return head;
}

function decodeHead(entry: Buffer): Head & { readonly kind: number } {
  return {
    kind: entry.readUInt8(0),
    stream: entry.readUIntBE(1, 6),
    sequence: entry.readUIntBE(7, 6),
    count: entry.readUIntBE(13, 3),
  };
}
