import { setImmediate as turn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { toBridgeError } from '../../errors.ts';
import { type CallPositions, type ResumableCall, withoutArguments } from '../../relay/sessions/resumable-call.ts';
import type { ReplayLog, ReplayRun, StoredReplay, UnendedStream } from '../../relay/sessions/session-storage.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';
import type { LogLimits, LogStore } from '../store/store.ts';

/**
 * Entries stored for a session's streams. Up to half of them may hold the positions of calls; the others hold as many
 * events as the session's own replica keeps, one or several per entry.
 */
export const MAX_REPLAY_ENTRIES = 2000;
/**
 * Limit of the bytes that wait to be stored. When the store is this far behind, further entries are dropped, and a
 * client that misses their events is told so. The same limit applies to what is stored again after the store has lost
 * its data.
 */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Entries stored by one append. */
const MAX_TOGETHER = 100;
/** Longest time that a stream is delayed until its entries are stored, so that a slow store does not block streams. */
const MAX_WAIT_MS = 1000;
/**
 * Age below which a stream is young and not stored yet. Most calls end sooner, and clients do not resume their streams.
 */
export const YOUNG_MS = 250;
/** Young streams are stored once their entries together exceed this size. */
const MAX_YOUNG_BYTES = 256 * 1024;

const HEAD_BYTES = 26;
/** The token of the replica where a session was opened; each later owner has the next number. */
export const FIRST_TOKEN = 1;
/** Offsets in the head of an entry: its position consists of the owner's token and a number. */
const TOKEN_AT = 16;
const NUMBER_AT = 20;
const KINDS = { run: 0, opened: 1, ended: 2, moved: 3, waits: 4, told: 5, anew: 6 } as const;
/** Head fields of entries that belong to no stream. */
const NO_STREAM = { stream: 0, sequence: 0, count: 0 };

export interface SessionReplayOptions {
  readonly name: string;
  /** Number of this owner of the session. Entries are ordered by it, so these follow those of earlier owners. */
  readonly token: number;
  readonly logs: LogStore;
  readonly limits: LogLimits;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Stores the streams of one session while they are sent. Streams of calls that another replica can continue are stored
 * at once, others when they are no longer young: before that, all that another replica could say is that the call was
 * lost.
 */
export class SessionReplay implements ReplayLog, CallPositions {
  readonly #options: SessionReplayOptions;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Positions of resumable calls, by the id of the request. */
  readonly #calls = new Map<JsonRpcId, ResumableCall>();
  /**
   * Streams on which requests are answered, by request id. A call without one has a client that cannot come back for
   * its answer.
   */
  readonly #streams = new Map<JsonRpcId, number>();
  /**
   * Streams on which several requests are answered. The store does not tell which of the requests are open, so none of
   * these calls is resumable.
   */
  readonly #batches = new Set<number>();
  /** Calls whose stored position is out of date. */
  readonly #moved = new Set<JsonRpcId>();
  /** Entries of young streams, not stored yet. */
  readonly #young = new Map<number, Buffer[]>();
  #youngBytes = 0;
  #stopTimer: (() => void) | undefined;
  /** Count of entries given to the store by this owner. */
  #numbered = 0;
  #isClosed = false;
  #writing: Promise<void> | undefined;
  /** True if the store lacks entries that are kept here. */
  #isIncomplete = false;
  kept: () => StoredReplay | undefined = () => undefined;
  resumable: (request: JsonRpcId) => void = () => {};
  hold: (stream: number, stored: Promise<void>) => void = () => {};

  constructor(options: SessionReplayOptions) {
    this.#options = options;
  }

  add(run: ReplayRun): void {
    this.#say(run.stream, encodeRun(run));
  }

  waits(message: Buffer): void {
    this.#append(encodeWaiting(message));
  }

  told(): void {
    this.#append(encodeHead(KINDS.told, NO_STREAM));
  }

  async opened(stream: number, requests: readonly JsonRpcId[]): Promise<void> {
    if (!requests.some((id) => this.#calls.has(id))) this.#young.set(stream, []);
    this.#opened(stream, requests);
    await this.#stored(stream);
  }

  /**
   * Resolves once the entries of this turn of the event loop are stored, or after MAX_WAIT_MS. Young streams, which are
   * not stored at once, are not waited for.
   */
  async #stored(stream: number): Promise<void> {
    // Only at the end of the turn is it known whether the server's events have ids.
    await turn();
    if (this.#young.has(stream) || this.#writing === undefined) return;
    const { clock } = this.#options;
    await new Promise<void>((resolve) => {
      const cancel = clock.after(MAX_WAIT_MS, resolve);
      void this.#writing?.then(() => {
        cancel();
        resolve();
      });
    });
  }

  continued(stream: number, request: JsonRpcId): void {
    this.#opened(stream, [request]);
  }

  #opened(stream: number, requests: readonly JsonRpcId[]): void {
    this.#say(stream, encodeOpened(stream, requests));
    if (requests.length > 1) this.#batches.add(stream);
    for (const id of requests) {
      this.#streams.set(id, stream);
      if (this.#calls.has(id)) this.#moved.add(id);
    }
  }

  ended(stream: number, end: 'sent' | 'unsent'): void {
    for (const [id, its] of this.#streams) if (its === stream) this.#streams.delete(id);
    this.#batches.delete(stream);
    if (end === 'sent' && this.#takeYoung(stream) !== undefined) return;
    this.#store(stream);
    this.#append(encodeHead(KINDS.ended, { stream, sequence: 0, count: 0 }));
  }

  #say(stream: number, entry: Buffer): void {
    if (this.#isClosed) return;
    const young = this.#young.get(stream);
    if (young === undefined) return this.#append(entry);
    young.push(entry);
    this.#youngBytes += entry.length;
    if (this.#youngBytes > MAX_YOUNG_BYTES) this.#storeYoung();
    else this.#stopTimer ??= this.#options.clock.after(YOUNG_MS, () => this.#storeYoung());
  }

  #takeYoung(stream: number): readonly Buffer[] | undefined {
    const entries = this.#young.get(stream);
    this.#young.delete(stream);
    for (const { length } of entries ?? []) this.#youngBytes -= length;
    return entries;
  }

  #store(stream: number): void {
    for (const entry of this.#takeYoung(stream) ?? []) this.#append(entry);
  }

  #storeYoung(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    for (const stream of this.#young.keys()) this.#store(stream);
  }

  moved(request: Frame, lastEventId: string): void {
    const id = request.id as JsonRpcId;
    const begun = this.#streams.get(id);
    if (begun !== undefined && !this.#calls.has(id)) this.hold(begun, this.#stored(begun));
    // The event's message is being sent to the client and is added in this turn, so the position is stored after it.
    process.nextTick(() => {
      this.#calls.set(id, { request, lastEventId });
      if (!this.#streams.has(id)) this.resumable(id);
      const stream = this.#streams.get(id);
      if (stream === undefined) return;
      this.#store(stream);
      this.#moved.add(id);
      this.#begin();
    });
  }

  over({ id }: Frame): void {
    process.nextTick(() => {
      this.#calls.delete(id as JsonRpcId);
      this.#moved.delete(id as JsonRpcId);
    });
  }

  isResumable(id: JsonRpcId): boolean {
    const stream = this.#streams.get(id);
    return this.#calls.has(id) && stream !== undefined && !this.#batches.has(stream);
  }

  #append(entry: Buffer): void {
    if (this.#isClosed) return;
    if (this.#waitingBytes + entry.length > MAX_WAITING_BYTES) {
      this.#isIncomplete = true;
      return;
    }
    this.#waiting.push(entry);
    this.#waitingBytes += entry.length;
    this.#begin();
  }

  #begin(): void {
    if (this.#isClosed) return;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Returns all changed positions, or none while earlier entries still wait to be stored. */
  #takePositions(): readonly Buffer[] {
    if (this.#waiting.length > 0) return [];
    const entries = [...this.#moved].map((id) => this.#encodePosition(id));
    this.#moved.clear();
    return entries.filter((entry) => entry !== undefined);
  }

  #encodePosition(id: JsonRpcId): Buffer | undefined {
    const call = this.#calls.get(id);
    const stream = this.#streams.get(id);
    if (call === undefined || stream === undefined) return undefined;
    const head = encodeHead(KINDS.moved, { stream, sequence: 0, count: 0 });
    const request = withoutArguments(call.request).bytes;
    return Buffer.concat([head, Buffer.from(JSON.stringify([call.lastEventId, request.toString()]))]);
  }

  async #write(): Promise<void> {
    // Entries added in one turn of the event loop are stored together.
    await Promise.resolve();
    while (!this.#isClosed && (this.#waiting.length > 0 || this.#moved.size > 0)) {
      const said = this.#waiting.splice(0, MAX_TOGETHER);
      for (const { length } of said) this.#waitingBytes -= length;
      const entries = [...said, ...this.#takePositions()];
      if (entries.length === 0) continue;
      for (const entry of entries) this.#number(entry);
      const { name, logs, limits, log } = this.#options;
      try {
        await logs.append(name, entries, limits);
      } catch (thrown) {
        this.#isIncomplete = true;
        log.debug({ code: toBridgeError(thrown).code }, 'events could not be stored for clients that come back');
      }
    }
  }

  /**
   * Writes the position into the entry. The store seals it together with the entry, because an attacker with write
   * access to the store could otherwise exchange two entries. Numbers are not reused, since a failed attempt may have
   * stored its entries.
   */
  #number(entry: Buffer): void {
    entry.writeUInt32BE(this.#options.token, TOKEN_AT);
    entry.writeUIntBE(this.#numbered, NUMBER_AT, 6);
    this.#numbered += 1;
  }

  /** Call this when the store has lost its data; `renew` then stores everything again. */
  forgotten(): void {
    this.#isIncomplete = this.#hasStored;
  }

  /** True if `renew` has to store entries again, beyond extending their time to live. */
  get isIncomplete(): boolean {
    return this.#isIncomplete;
  }

  /** True if this owner has stored entries, or an earlier owner may have. */
  get #hasStored(): boolean {
    return this.#numbered > 0 || this.#options.token > FIRST_TOKEN;
  }

  /**
   * Restarts the time to live of the stored entries. If the store lacks any of them, all are stored again. Resolves to
   * false if the store does not answer.
   */
  async renew(): Promise<boolean> {
    if (this.#isClosed || !this.#hasStored) return true;
    if (!this.#isIncomplete) return this.#touch();
    const kept = this.kept();
    if (kept === undefined) return true;
    this.#isIncomplete = false;
    this.#storeAgain(kept);
    await this.#writing;
    return !this.#isIncomplete;
  }

  async #touch(): Promise<boolean> {
    const { name, logs, limits } = this.#options;
    return logs.append(name, [], limits).then(
      () => true,
      () => false,
    );
  }

  /**
   * Replaces the stored and the waiting entries by what is kept here, which contains all of them. If that is too much,
   * the oldest events are left out, and a client that misses them is told so. Young streams are still not stored.
   */
  #storeAgain({ runs, waiting, unended }: StoredReplay): void {
    const requestsOf = new Map([...unended].map(([stream, { requests }]) => [stream, requests]));
    for (const [id, stream] of this.#streams) requestsOf.set(stream, [...(requestsOf.get(stream) ?? []), id]);
    const isYoung = (stream: number): boolean => this.#young.has(stream);
    const entries = [
      ...runs.filter(({ stream }) => !isYoung(stream)).map(encodeRun),
      ...[...requestsOf].flatMap(([stream, requests]) => (isYoung(stream) ? [] : encodeOpened(stream, requests))),
      ...waiting.map(encodeWaiting),
    ];
    this.#waiting = [];
    this.#waitingBytes = 0;
    for (const entry of [encodeHead(KINDS.anew, NO_STREAM), ...latestOf(entries)]) this.#append(entry);
    for (const id of this.#calls.keys()) if (this.#streams.has(id)) this.#moved.add(id);
  }

  /** Resolves when all entries added until now, young streams included, are stored or could not be. */
  async flushed(): Promise<void> {
    this.#storeYoung();
    await this.#writing;
  }

  /** Stops storing entries, because the session is over or another replica owns it. */
  close(): void {
    this.#isClosed = true;
    this.#stopTimer?.();
    this.#waiting = [];
    this.#young.clear();
  }

  /** Reads the entries stored under this name, in the order in which they were added. */
  static async read(logs: LogStore, name: string): Promise<StoredReplay> {
    let runs: ReplayRun[] = [];
    const unended = new Map<number, UnendedStream>();
    let waiting: Buffer[] = [];
    for (const entry of inOrder(await logs.read(name))) {
      const { kind, ...head } = decodeHead(entry);
      const { stream } = head;
      if (kind === KINDS.waits) waiting.push(entry.subarray(HEAD_BYTES));
      else if (kind === KINDS.told) waiting = [];
      else if (kind === KINDS.ended) unended.delete(stream);
      else if (kind === KINDS.anew) {
        [runs, waiting] = [[], []];
        unended.clear();
      } else if (kind === KINDS.run) runs.push({ ...head, bytes: entry.subarray(HEAD_BYTES) });
      else unended.set(stream, readStream(kind, entry.toString('utf8', HEAD_BYTES), unended.get(stream)));
    }
    return { runs, waiting, unended };
  }
}

/** Sorts entries by position, whatever their order in the store, and removes duplicates. */
function inOrder(entries: readonly Buffer[]): readonly Buffer[] {
  const byPosition = (one: Buffer, other: Buffer): number =>
    one.compare(other, TOKEN_AT, HEAD_BYTES, TOKEN_AT, HEAD_BYTES);
  const sorted = [...entries].sort(byPosition);
  return sorted.filter((entry, index) => index === 0 || byPosition(sorted[index - 1] as Buffer, entry) !== 0);
}

/**
 * Applies an `opened` or `moved` entry to what is known of its stream. The entry is trusted, since a replica sealed it.
 */
function readStream(kind: number, text: string, known: UnendedStream | undefined): UnendedStream {
  if (kind === KINDS.opened) return { requests: JSON.parse(text) as JsonRpcId[], call: known?.call };
  const [lastEventId, message] = JSON.parse(text) as [string, string];
  const read = readMessage(Buffer.from(message), SERVER_LIMITS);
  if (read.kind !== 'message') return known ?? NO_REQUESTS;
  const { frame: request } = read;
  // The `opened` entry may be missing, because the store drops the first entries of a long stream.
  const requests = known?.requests ?? [request.id as JsonRpcId];
  // With several requests on one stream it is unknown which are answered already, so none can be resumed.
  return { requests, call: requests.length === 1 ? { request, lastEventId } : undefined };
}

const NO_REQUESTS: UnendedStream = { requests: [], call: undefined };

type Head = Omit<ReplayRun, 'bytes'>;

function encodeHead(kind: number, { stream, sequence, count }: Head): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(kind, 0);
  head.writeUIntBE(stream, 1, 6);
  head.writeUIntBE(sequence, 7, 6);
  head.writeUIntBE(count, 13, 3);
  return head;
}

function encodeRun({ stream, sequence, count, bytes }: ReplayRun): Buffer {
  return Buffer.concat([encodeHead(KINDS.run, { stream, sequence, count }), bytes]);
}

function encodeOpened(stream: number, requests: readonly JsonRpcId[]): Buffer {
  const head = encodeHead(KINDS.opened, { stream, sequence: 0, count: 0 });
  return Buffer.concat([head, Buffer.from(JSON.stringify(requests))]);
}

function encodeWaiting(message: Buffer): Buffer {
  return Buffer.concat([encodeHead(KINDS.waits, NO_STREAM), message]);
}

/** Returns the latest entries that fit into MAX_WAITING_BYTES. */
function latestOf(entries: readonly Buffer[]): readonly Buffer[] {
  let bytes = HEAD_BYTES;
  let from = entries.length;
  for (; from > 0; from -= 1) {
    bytes += entries[from - 1]?.length ?? 0;
    if (bytes > MAX_WAITING_BYTES) break;
  }
  return entries.slice(from);
}

function decodeHead(entry: Buffer): Head & { readonly kind: number } {
  return {
    kind: entry.readUInt8(0),
    stream: entry.readUIntBE(1, 6),
    sequence: entry.readUIntBE(7, 6),
    count: entry.readUIntBE(13, 3),
  };
}
