import { setImmediate as turn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../deps.ts';
import { toBridgeError } from '../errors.ts';
import { type CallPositions, type ResumableCall, withoutArguments } from '../relay/sessions/resumable-call.ts';
import type { ReplayLog, ReplayRun, StoredReplay, UnendedStream } from '../relay/sessions/session-storage.ts';
import type { LogLimits, LogStore } from '../store/store.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { readMessage, SERVER_LIMITS } from '../wire/read-message.ts';

/**
 * Entries stored of a session's streams. Half of them may say how far calls have come; the others hold as many events as the
 * session's own replica keeps, one each or several.
 */
export const MAX_REPLAY_ENTRIES = 2000;
/**
 * Entries that wait to be stored take no more than this; if the store is that far behind, further ones are left out, and a client
 * that misses them is told so. No more is stored again after the store has lost all.
 */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Stored together. */
const MAX_TOGETHER = 100;
/** Nobody waits longer for what is to be stored: a store that is slow holds no stream up for long. */
const MAX_WAIT_MS = 1000;
/** Most calls are over sooner, and nobody asks for what their streams have said. */
export const YOUNG_MS = 250;
/** What young streams say is stored before it takes more memory than this. */
const MAX_YOUNG_BYTES = 256 * 1024;

const HEAD_BYTES = 26;
/** The token of the replica where a session was opened; each later owner has the next number. */
export const FIRST_TOKEN = 1;
/** Where the position of an entry stands in its head. */
const TOKEN_AT = 16;
const NUMBER_AT = 20;
const KINDS = { run: 0, opened: 1, ended: 2, moved: 3, waits: 4, told: 5, anew: 6 } as const;
/** What is said on no stream. */
const NO_STREAM = { stream: 0, sequence: 0, count: 0 };

export interface SessionReplayOptions {
  readonly name: string;
  /** Which owner of the session this is. Its entries stand behind those of earlier owners. */
  readonly token: number;
  readonly logs: LogStore;
  readonly limits: LogLimits;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The streams of one session in the store, written behind what is sent. Streams of calls that can go on elsewhere are stored at
 * once, others when they are no longer young: until then another replica could only tell that the call was lost.
 */
export class SessionReplay implements ReplayLog, CallPositions {
  readonly #options: SessionReplayOptions;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** How far calls have come, by their requests. */
  readonly #calls = new Map<JsonRpcId, ResumableCall>();
  /** The streams on which requests are answered. A call without one has a client that cannot come back for its answer. */
  readonly #streams = new Map<JsonRpcId, number>();
  /** Streams on which several requests are answered: which of them were is known only from what was said, so none goes on. */
  readonly #batches = new Set<number>();
  /** Calls that have come further than is stored. */
  readonly #moved = new Set<JsonRpcId>();
  /** What young streams have said. */
  readonly #young = new Map<number, Buffer[]>();
  #youngBytes = 0;
  #stopTimer: (() => void) | undefined;
  /** Entries of this owner that were given to the store. */
  #numbered = 0;
  #isClosed = false;
  #writing: Promise<void> | undefined;
  /** Something is missing in the store that is kept here. */
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

  /** Resolves when what is said in this turn is stored, where that is done at once, or takes too long. */
  async #stored(stream: number): Promise<void> {
    // At the end of the turn it is known whether the events of the server have ids.
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
    // What the event says is on its way to the client, and is added in this turn: the position is stored behind it.
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

  /** All positions, where nothing waits that was said before them. */
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
    // What is said in one turn is stored together.
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
   * The position is sealed with the entry, since whoever can write to the store could exchange two. No number is used
   * again, as nobody knows whether an attempt that failed has stored something.
   */
  #number(entry: Buffer): void {
    entry.writeUInt32BE(this.#options.token, TOKEN_AT);
    entry.writeUIntBE(this.#numbered, NUMBER_AT, 6);
    this.#numbered += 1;
  }

  /** Called when the store has lost what it was told; `renew` stores it again. */
  forgotten(): void {
    this.#isIncomplete = this.#hasStored;
  }

  /** `renew` is not only about how long it lasts. */
  get isIncomplete(): boolean {
    return this.#isIncomplete;
  }

  /** An earlier owner of the session may have stored something, too. */
  get #hasStored(): boolean {
    return this.#numbered > 0 || this.#options.token > FIRST_TOKEN;
  }

  /**
   * Has what is stored last as long as if something were added to it. Where something is missing in the store, all of it is stored
   * again. False: the store does not answer.
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
   * Replaces what is stored, and what waits to be stored, since all of that is among what is kept. The oldest events are left out
   * where it is too much; a client that misses them is told so. Young streams stay young.
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

  /** Resolves when all that was said until now is stored, or cannot be. */
  async flushed(): Promise<void> {
    this.#storeYoung();
    await this.#writing;
  }

  /** Nothing more is stored: the session is over, or another replica's. */
  close(): void {
    this.#isClosed = true;
    this.#stopTimer?.();
    this.#waiting = [];
    this.#young.clear();
  }

  /** What was stored under this name, in the order in which it was said. */
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

/** By their positions, wherever they stand in the store; each once. */
function inOrder(entries: readonly Buffer[]): readonly Buffer[] {
  const byPosition = (one: Buffer, other: Buffer): number =>
    one.compare(other, TOKEN_AT, HEAD_BYTES, TOKEN_AT, HEAD_BYTES);
  const sorted = [...entries].sort(byPosition);
  return sorted.filter((entry, index) => index === 0 || byPosition(sorted[index - 1] as Buffer, entry) !== 0);
}

/** What an entry says of a stream of which this was known before. All of it was sealed by a replica. */
function readStream(kind: number, text: string, known: UnendedStream | undefined): UnendedStream {
  if (kind === KINDS.opened) return { requests: JSON.parse(text) as JsonRpcId[], call: known?.call };
  const [lastEventId, message] = JSON.parse(text) as [string, string];
  const read = readMessage(Buffer.from(message), SERVER_LIMITS);
  if (read.kind !== 'message') return known ?? NO_REQUESTS;
  const { frame: request } = read;
  // The store drops the first entries of a long stream.
  const requests = known?.requests ?? [request.id as JsonRpcId];
  // Which of several are answered already is not known.
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

/** Returns the latest entries that may wait together. */
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
