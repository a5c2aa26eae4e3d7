/**
 * The messages of a link to a remote server: when each may leave, to whom what comes from the server is handed, and how
 * many responses stay open behind their last message.
 */
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { findCancelledId } from '../../mcp/classify/correlators.ts';
import type { SessionVerdict } from '../../mcp/classify/session-refusal.ts';
import { CANCELLED, INITIALIZE, INITIALIZED } from '../../mcp/vocabulary/methods.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerFault, ServerListener } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';
import type { LinkRequests } from '../answer-ids.ts';
import { AnswerLimit } from '../server-messages.ts';

/** More messages or bytes than this waiting to leave: the sender is asked to stop. */
export const MAX_WAITING_MESSAGES = 256;
export const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** A server that does not acknowledge a notification does not hold up the next one for longer than this. */
const TURN_MS = 10_000;

export interface OutboxOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Posts a message now. `left` and `answered` are called for it later; from within, only `hold` and `again`. */
  readonly post: (message: Outgoing) => void;
  /** There is capacity again after `send` returned false. */
  readonly drained: () => void;
}

/**
 * Decides when a message may leave. Over HTTP each travels by itself and may overtake others, so order is kept here
 * where it matters: nothing overtakes `initialize`, nothing leaves before `notifications/initialized` has arrived, and
 * notifications and answers go one after the other. Requests run side by side.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #answers: AnswerLimit;
  /** Messages to be posted once more; they go before all others. */
  #again: Outgoing[] = [];
  #queue: Outgoing[] = [];
  /** Notifications and answers that may leave, each after the one before it has arrived. */
  #line: Outgoing[] = [];
  #turn: Outgoing | undefined;
  #cancelTurn: (() => void) | undefined;
  /** What everything behind it waits for. */
  #gate: Outgoing | undefined;
  #isHeld = false;
  #waitingMessages = 0;
  #waitingBytes = 0;
  #isFull = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#answers = new AnswerLimit(options.log);
  }

  /** False: full; `drained` follows. The message was taken all the same, unless it is one answer too many. */
  send(frame: Frame, exchange?: Exchange): boolean {
    if (this.#answers.excludes(frame, this.#isFull)) return false;
    const message = new Outgoing(frame, exchange);
    this.#waitingMessages += 1;
    this.#waitingBytes += frame.bytes.length;
    this.#queue.push(message);
    this.#pump();
    this.#isFull ||= this.#waitingMessages >= MAX_WAITING_MESSAGES || this.#waitingBytes >= MAX_WAITING_BYTES;
    return !this.#isFull;
  }

  /** Nothing leaves until `release`. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#advance();
    this.#pump();
  }

  /** Posts the message again, before those that have not been posted yet. */
  again(message: Outgoing): void {
    if (this.#gate === message) this.#gate = undefined;
    this.#again.push(message);
    this.#endTurn(message);
    this.#pump();
  }

  /** The message's bytes are gone, or it will not be posted. May be called twice. */
  left(message: Outgoing): void {
    if (!message.isWaiting) return;
    message.isWaiting = false;
    this.#waitingMessages -= 1;
    this.#waitingBytes -= message.frame.bytes.length;
    if (!this.#isFull) return;
    if (this.#waitingMessages > MAX_WAITING_MESSAGES / 2 || this.#waitingBytes > MAX_WAITING_BYTES / 2) return;
    this.#isFull = false;
    this.#options.drained();
  }

  /** The server has taken the message, or never will. May be called twice. */
  answered(message: Outgoing): void {
    this.left(message);
    if (this.#gate === message && message.frame.method === INITIALIZED) this.#gate = undefined;
    this.#endTurn(message);
    this.#pump();
  }

  #endTurn(message: Outgoing): void {
    if (this.#turn !== message) return;
    this.#cancelTurn?.();
    this.#turn = undefined;
    this.#advance();
  }

  /** `initialize` has its answer, whatever it is. */
  opened(): void {
    if (this.#gate?.frame.method === INITIALIZE) this.#gate = undefined;
    this.#pump();
  }

  /** Takes back the request of this exchange if it has not been posted yet. */
  withdraw(exchange: Exchange): boolean {
    for (const list of [this.#again, this.#queue]) {
      const index = list.findIndex((message) => message.exchange === exchange && message.frame.kind === 'request');
      const [message] = index < 0 ? [] : list.splice(index, 1);
      if (message === undefined) continue;
      this.left(message);
      return true;
    }
    return false;
  }

  /** Everything that has not been posted. */
  takeAll(): readonly Outgoing[] {
    const all = [...this.#again, ...this.#line, ...this.#queue];
    this.#again = [];
    this.#line = [];
    this.#queue = [];
    for (const message of all) this.left(message);
    return all;
  }

  /** Forgets everything. */
  close(): void {
    this.#cancelTurn?.();
    this.#isHeld = true;
    this.#isFull = false;
    this.takeAll();
  }

  #pump(): void {
    while (!this.#isHeld && this.#gate === undefined) {
      const message = this.#again.shift() ?? this.#queue.shift();
      if (message === undefined) return;
      const { method } = message.frame;
      if (method === INITIALIZE || method === INITIALIZED) this.#gate = message;
      if (message.frame.kind === 'request') {
        this.#options.post(message);
      } else {
        this.#line.push(message);
        this.#advance();
      }
    }
  }

  #advance(): void {
    if (this.#turn !== undefined || this.#isHeld) return;
    const message = this.#line.shift();
    if (message === undefined) return;
    this.#turn = message;
    this.#cancelTurn = this.#options.clock.after(TURN_MS, () => this.answered(message));
    this.#options.post(message);
  }
}

/**
 * Takes the answer to a request of the bridge's own, or what came instead of one. Called once.
 * @param verdict what a refusal says of the session
 */
export type Reply = (answer: Frame | BridgeError, verdict: SessionVerdict) => void;

/** A message on its way to a server. */
export class Outgoing {
  readonly frame: Frame;
  /** The client's call it belongs to, if any. */
  readonly exchange: Exchange | undefined;
  /** Set on messages of the bridge's own. */
  readonly reply: Reply | undefined;
  /** How often it has been posted. */
  attempts = 0;
  /** Its bytes have not all been handed to the system. */
  isWaiting = true;
  /** The server has it, and its answer goes on after this event; undefined: it has to be posted. */
  resumesAfter: string | undefined = undefined;

  constructor(frame: Frame, exchange?: Exchange, reply?: Reply) {
    this.frame = frame;
    this.exchange = exchange;
    this.reply = reply;
  }
}

/**
 * Hands the server's messages to the listener, and knows which of the server's own requests are open: their ids mean
 * something in one session only.
 */
export class Delivery {
  readonly #listener: ServerListener;
  readonly #requests: LinkRequests;
  readonly #questions = new Set<JsonRpcId>();
  #isClosed = false;

  constructor(listener: ServerListener, requests: LinkRequests) {
    this.#listener = listener;
    this.#requests = requests;
  }

  /** `exchange`: the call on whose answer the message came; for a response, the call it answers. */
  message(said: Frame, exchange?: Exchange): void {
    if (this.#isClosed) return;
    const frame = this.#requests.received(said, exchange);
    if (frame === undefined) return;
    const isOpen = exchange?.state.kind === 'open';
    // A late answer: the call was withdrawn meanwhile.
    if (frame.isResponse && exchange !== undefined && !isOpen) return;
    if (frame.kind === 'request' && frame.id !== undefined) this.#questions.add(frame.id);
    if (frame.method === CANCELLED) {
      const withdrawn = findCancelledId(frame);
      if (withdrawn !== undefined) this.#questions.delete(withdrawn.value);
    }
    if (isOpen) this.#listener.fromServer(frame, exchange);
    else this.#listener.fromServer(frame);
  }

  fault(fault: ServerFault): void {
    if (!this.#isClosed) this.#listener.serverFault(this.#requests.failed(fault));
  }

  /** No answer to this request of the client will come. */
  failed({ frame, exchange }: Outgoing, error: BridgeError): void {
    const isAwaited = exchange === undefined || exchange.state.kind === 'open';
    if (isAwaited && frame.kind === 'request') this.fault({ error, kind: 'error', id: frame.id });
  }

  /** The client answers a request of the server. */
  answered(frame: Frame): void {
    if (frame.id !== undefined) this.#questions.delete(frame.id);
  }

  /** The session is gone, and with it whoever asked: a late answer would meet some other question of the next one. */
  withdrawQuestions(reason: string): void {
    const withdrawn = [...this.#questions];
    this.#questions.clear();
    for (const requestId of withdrawn) this.message(notificationFrame(CANCELLED, { requestId, reason }));
  }

  close(): void {
    this.#isClosed = true;
  }
}

// ---- Responses that the server does not end

export interface LingeringLimits {
  readonly count: number;
  /** Limits the bytes of the messages that the responses were opened with, which are kept with them. */
  readonly bytes: number;
  /** This many are kept, however large they are: the server may be about to end them. */
  readonly least: number;
}

interface Post {
  readonly message: Outgoing;
}

/** Responses with all that was wanted of them, which their server does not end: later ones end the first. */
export class Lingering<Kept extends Post> {
  readonly #limits: LingeringLimits;
  readonly #end: (oldest: Kept) => void;
  /** The latest is at the end. */
  #posts: Kept[] = [];
  #bytes = 0;

  /** `end` is called with each that has to go. */
  constructor(limits: LingeringLimits, end: (oldest: Kept) => void) {
    this.#limits = limits;
    this.#end = end;
  }

  add(post: Kept): void {
    this.#posts.push(post);
    this.#bytes += bytesOf(post);
    while (this.#areTooMany) {
      const [oldest] = this.#posts;
      if (oldest === undefined) return;
      this.delete(oldest);
      this.#end(oldest);
    }
  }

  get #areTooMany(): boolean {
    const { length } = this.#posts;
    const { count, bytes, least } = this.#limits;
    return length > count || (length > least && this.#bytes > bytes);
  }

  delete(post: Kept): void {
    const index = this.#posts.indexOf(post);
    if (index < 0) return;
    this.#posts.splice(index, 1);
    this.#bytes -= bytesOf(post);
  }

  clear(): void {
    this.#posts = [];
    this.#bytes = 0;
  }
}

function bytesOf({ message }: Post): number {
  return message.frame.bytes.length;
}
