/**
 * Joins the messages of a recording into calls. Pure: time is that of the recording. The status page follows the same rules
 * in `messages.browser.js`.
 */
import { CANCELED } from '../../mcp/vocabulary/methods.ts';
import type { MessageFacts, RecordedDirection, RecordedMessage } from '../../recording/recorded-message.ts';
import { type AnswerOutcome, boundedText, type MessageRole, readRole } from './message-role.ts';
import { RecordedRuns } from './recorded-runs.ts';

/** A request and its answer at one side of the bridge. */
export interface Exchange extends Pick<MessageFacts, 'side' | 'direction' | 'era' | 'carrier' | 'bytes'> {
  readonly session: string | undefined;
  readonly id: string;
  readonly method: string;
  /** The name of the tool or prompt, or the URI of the resource. */
  readonly subject: string | undefined;
  readonly atMs: number;
  answer: Answer | undefined;
}

export interface Answer {
  readonly atMs: number;
  readonly bytes: number;
  readonly outcome: AnswerOutcome;
}

/** `unanswered`: the recording ends before the answer, or too many calls were open. */
export type CallOutcome = AnswerOutcome | { readonly kind: 'canceled' | 'unanswered' };

interface Peers {
  readonly server: string;
  readonly client: string | undefined;
  /** The number of the call; undefined outside of calls. */
  readonly call: number | undefined;
}

/** The lines of an entry as they were recorded, if they are kept. */
interface KeptLines {
  readonly lines: readonly string[];
  /** Number of lines that were not kept, because all open calls together had too many bytes of them. */
  readonly leftOut: number;
}

/**
 * - `call`: a request with everything that belongs to it. Outside of a client's call, it is one of the bridge or a server.
 * - `notification`: one that belongs to no call.
 * - `answer`: its request is not in the recording, or its call had ended long before.
 */
export type Entry = CallEntry | NotificationEntry | AnswerEntry;

export interface CallEntry extends Peers, KeptLines {
  readonly kind: 'call';
  readonly request: Exchange;
  readonly outcome: CallOutcome;
  /** Undefined if the call has not ended. */
  readonly durationMs: number | undefined;
  /** What the client was asked during the call, or what the server asked that was not passed on. */
  readonly questions: readonly Exchange[];
  /** Number of notifications in the call, at both sides. */
  readonly notifications: number;
}

export interface NotificationEntry extends Peers, KeptLines, Pick<MessageFacts, 'side' | 'direction' | 'bytes'> {
  readonly kind: 'notification';
  readonly atMs: number;
  readonly method: string;
}

export interface AnswerEntry extends Peers, KeptLines, Pick<MessageFacts, 'side' | 'direction' | 'bytes'> {
  readonly kind: 'answer';
  readonly atMs: number;
  readonly outcome: AnswerOutcome;
}

/** Limit of the requests in open calls. Beyond it, the oldest call is given as unanswered. */
export const MAX_OPEN_REQUESTS = 20_000;
/** Limit of the requests in one call that are told apart; a call with more has gone astray. */
export const MAX_REQUESTS_OF_CALL = 256;
/** Limit of the lines that are kept for open calls. */
export const MAX_KEPT_BYTES = 64 * 1024 * 1024;
/** Time in which the bridge tells the server that a call has ended, for instance because its time was up. */
export const SETTLE_MS = 1000;

/**
 * - `open`: it has no answer yet.
 * - `closing`: its outcome is known, but more about it may follow within `SETTLE_MS`.
 */
interface OpenCall extends Peers {
  readonly key: string;
  readonly requests: Exchange[];
  readonly lines: string[];
  keptBytes: number;
  leftOut: number;
  notifications: number;
  client: string | undefined;
  canceledAtMs: number | undefined;
  state: { readonly kind: 'open' } | { readonly kind: 'closing'; readonly untilMs: number };
}

export interface PairingOptions {
  /** Whether entries have the lines that they were made of. */
  readonly lines: 'kept' | 'dropped';
}

export class CallPairs {
  readonly #keeps: PairingOptions['lines'];
  readonly #runs = new RecordedRuns();
  /** The call that began first comes first. */
  readonly #open = new Map<string, OpenCall>();
  readonly #closing = new Set<OpenCall>();
  #requests = 0;
  #keptBytes = 0;

  constructor({ lines }: PairingOptions) {
    this.#keeps = lines;
  }

  /** Takes the next message, and returns what is complete with it, in the order of its end. */
  take(recorded: RecordedMessage, line: string): readonly Entry[] {
    const atMs = Date.parse(recorded.at);
    const done = [...this.settle(atMs)];
    const role = readRole(recorded);
    const call = this.#callOf(recorded, role, done);
    if (call === undefined) return [...done, this.#single(recorded, role, line)];
    this.#add(call, { recorded, role, line, atMs });
    if (call.state.kind === 'closing' && !hasOpenRequest(call)) done.push(this.#end(call));
    while (this.#requests > MAX_OPEN_REQUESTS && this.#open.size > 1) {
      const [oldest] = this.#open.values();
      if (oldest !== undefined) done.push(this.#end(oldest));
    }
    return done;
  }

  /** Returns the calls whose outcome has been known for so long that nothing more is expected of them. */
  settle(nowMs: number): readonly Entry[] {
    const settled = [...this.#closing].filter(({ state }) => state.kind === 'closing' && state.untilMs <= nowMs);
    return settled.map((call) => this.#end(call));
  }

  /** Returns all calls that are left, the oldest first. */
  end(): readonly Entry[] {
    return [...this.#open.values()].map((call) => this.#end(call));
  }

  /**
   * Returns the call that the message belongs to, which it may begin. Undefined if it belongs to none that is open. A call
   * that ends with this is added to `done`.
   */
  #callOf(recorded: RecordedMessage, role: MessageRole, done: Entry[]): OpenCall | undefined {
    const run = this.#runs.of(recorded.seq).number;
    const { call, direction } = recorded;
    const opposite = direction === 'in' ? 'out' : 'in';
    if (call !== undefined) {
      const key = `${run} ${call}`;
      const known = this.#open.get(key);
      if (role.kind === 'request') return known ?? this.#begin(key, recorded);
      const isExpected =
        role.kind !== 'answer' || (known !== undefined && requestOf(known, recorded, role) !== undefined);
      // A request that the bridge makes before it knows for which call has no number, and its answer may have one.
      return (isExpected ? undefined : this.#open.get(keyOf(run, recorded, opposite, role.id))) ?? known;
    }
    switch (role.kind) {
      case 'request': {
        const key = keyOf(run, recorded, direction, role.id);
        // An id that is used again, before its answer, begins another call.
        const before = this.#open.get(key);
        if (before !== undefined) done.push(this.#end(before));
        return this.#begin(key, recorded);
      }
      case 'answer':
        return this.#open.get(keyOf(run, recorded, opposite, role.id));
      case 'notification':
        if (role.method !== CANCELED || role.cancels === undefined) return undefined;
        return this.#open.get(keyOf(run, recorded, direction, role.cancels));
    }
  }

  #begin(key: string, { server, client, call }: RecordedMessage): OpenCall {
    const begun: OpenCall = {
      key,
      server: boundedText(server),
      client: client && boundedText(client),
      call,
      requests: [],
      lines: [],
      keptBytes: 0,
      leftOut: 0,
      notifications: 0,
      canceledAtMs: undefined,
      state: { kind: 'open' },
    };
    this.#open.set(key, begun);
    return begun;
  }

  #add(call: OpenCall, { recorded, role, line, atMs }: TakenMessage): void {
    this.#keep(call, line);
    call.client ??= recorded.client && boundedText(recorded.client);
    switch (role.kind) {
      case 'request':
        if (call.requests.length === MAX_REQUESTS_OF_CALL) return;
        call.requests.push(beginExchange(recorded, role, atMs));
        this.#requests += 1;
        return;
      case 'answer': {
        const request = requestOf(call, recorded, role);
        if (request !== undefined) request.answer = { atMs, bytes: recorded.bytes, outcome: role.outcome };
        if (request !== undefined && request === call.requests[0]) this.#close(call, atMs);
        return;
      }
      case 'notification':
        call.notifications += 1;
        if (role.method !== CANCELED || isToClient(recorded) || call.state.kind === 'closing') return;
        call.canceledAtMs = atMs;
        return this.#close(call, atMs);
    }
  }

  #close(call: OpenCall, atMs: number): void {
    if (call.state.kind === 'closing') return;
    call.state = { kind: 'closing', untilMs: atMs + SETTLE_MS };
    this.#closing.add(call);
  }

  #keep(call: OpenCall, line: string): void {
    if (this.#keeps === 'dropped') return;
    if (this.#keptBytes + line.length > MAX_KEPT_BYTES) {
      call.leftOut += 1;
      return;
    }
    call.lines.push(line);
    call.keptBytes += line.length;
    this.#keptBytes += line.length;
  }

  #end(call: OpenCall): Entry {
    this.#forget(call);
    const { server, client, canceledAtMs, requests, lines, leftOut, notifications } = call;
    const [request] = requests;
    if (request === undefined) throw new RangeError('a call begins with a request');
    const outcome = request.answer?.outcome ?? { kind: canceledAtMs === undefined ? 'unanswered' : 'canceled' };
    const endMs = request.answer?.atMs ?? canceledAtMs;
    const durationMs = endMs === undefined ? undefined : Math.max(0, endMs - request.atMs);
    const questions = questionsIn(requests);
    const common = { server, client, call: call.call, lines, leftOut };
    return { kind: 'call', ...common, request, outcome, durationMs, questions, notifications };
  }

  #forget(call: OpenCall): void {
    this.#open.delete(call.key);
    this.#closing.delete(call);
    this.#requests -= call.requests.length;
    this.#keptBytes -= call.keptBytes;
  }

  /** Makes an entry of a message that belongs to no open call. */
  #single(recorded: RecordedMessage, role: MessageRole, line: string): Entry {
    const { server, client, call, side, direction, bytes, at } = recorded;
    const common = {
      server: boundedText(server),
      client: client && boundedText(client),
      call,
      side,
      direction,
      bytes,
      atMs: Date.parse(at),
      lines: this.#keeps === 'kept' ? [line] : [],
      leftOut: 0,
    };
    if (role.kind === 'answer') return { kind: 'answer', ...common, outcome: role.outcome };
    return { kind: 'notification', ...common, method: role.method };
  }
}

interface TakenMessage {
  readonly recorded: RecordedMessage;
  readonly role: MessageRole;
  readonly line: string;
  readonly atMs: number;
}

function beginExchange(recorded: RecordedMessage, role: MessageRole & { kind: 'request' }, atMs: number): Exchange {
  const { side, direction, session, era, carrier, bytes } = recorded;
  const { id, method, subject } = role;
  return { side, direction, session, era, carrier, bytes, id, method, subject, atMs, answer: undefined };
}

/** Returns the request that this answers, unless it has an answer already. */
function requestOf(
  { requests }: OpenCall,
  { side, session, direction }: MessageFacts,
  { id }: MessageRole & { kind: 'answer' },
): Exchange | undefined {
  return requests.find(
    (request) =>
      request.answer === undefined &&
      request.id === id &&
      request.side === side &&
      request.session === session &&
      request.direction !== direction,
  );
}

/** Identifies a request outside of calls. @param direction that of the request */
function keyOf(run: number, { side, server, session }: MessageFacts, direction: RecordedDirection, id: string): string {
  return JSON.stringify([run, side, server, session, direction, id]);
}

/** A cancellation sent to the client, or from the server, withdraws a question and not the call. */
function isToClient({ side, direction }: MessageFacts): boolean {
  return (side === 'client') === (direction === 'out');
}

/** Returns true if something is open at the server whose end is still to come. */
function hasOpenRequest({ requests }: OpenCall): boolean {
  return requests.some(({ side, direction, answer }) => side === 'server' && direction === 'out' && !answer);
}

/**
 * Returns the questions to the client. A question of the server is the same one seen from the other side, unless the client
 * was not asked.
 */
function questionsIn([, ...requests]: readonly Exchange[]): readonly Exchange[] {
  const asked = requests.filter(({ side, direction }) => side === 'client' && direction === 'out');
  const passedOn = new Map<string, number>();
  for (const { method } of asked) passedOn.set(method, (passedOn.get(method) ?? 0) + 1);
  const kept = requests.filter(({ side, direction, method }) => {
    if (side !== 'server' || direction !== 'in') return false;
    const left = passedOn.get(method) ?? 0;
    passedOn.set(method, left - 1);
    return left <= 0;
  });
  return [...asked, ...kept].sort((one, other) => one.atMs - other.atMs);
}
