/**
 * The messages of a link to a remote server: the order in which they are sent, and the delivery of the server's
 * messages.
 */
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { findCanceledId } from '../../mcp/classify/correlators.ts';
import type { SessionVerdict } from '../../mcp/classify/session-refusal.ts';
import { CANCELED, INITIALIZE, INITIALIZED } from '../../mcp/vocabulary/methods.ts';
import type { Call } from '../../relay/call.ts';
import type { ServerFault, ServerListener } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';
import type { LinkRequests } from '../answer-ids.ts';
import { AnswerLimit } from '../server-messages.ts';
import { NO_SESSION, type SessionKey } from './session-key.ts';

/** Limits of messages and bytes that wait to be sent. Beyond them the sender is asked to pause. */
export const MAX_WAITING_MESSAGES = 256;
export const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** Longest time that a notification or answer without a response delays the next one. */
const TURN_MS = 10_000;

interface Waiting {
  readonly frame: Frame;
  /** True from its addition until all bytes of the message have been handed to the operating system. */
  isWaiting: boolean;
}

/** Counts the messages that were accepted from the client and have not been sent. */
export class Backlog {
  #messages = 0;
  #bytes = 0;
  #isFull = false;

  /** True if the client is asked to pause, until half of the capacity is free again. */
  get isFull(): boolean {
    return this.#isFull;
  }

  add(message: Waiting): void {
    message.isWaiting = true;
    this.#messages += 1;
    this.#bytes += message.frame.bytes.length;
    this.#isFull ||= this.#messages >= MAX_WAITING_MESSAGES || this.#bytes >= MAX_WAITING_BYTES;
  }

  /**
   * Call this when the message's bytes have been sent or will not be. A second call has no effect. Returns true if the
   * client need not pause anymore.
   */
  remove(message: Waiting): boolean {
    if (!message.isWaiting) return false;
    message.isWaiting = false;
    this.#messages -= 1;
    this.#bytes -= message.frame.bytes.length;
    if (!this.#isFull || this.#messages > MAX_WAITING_MESSAGES / 2 || this.#bytes > MAX_WAITING_BYTES / 2) return false;
    this.#isFull = false;
    return true;
  }
}

export interface OutboxOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Posts a message now. `left` and `answered` are to be called for it later. From within this function only `hold` and
   * `again` may be called.
   */
  readonly post: (message: Outgoing) => void;
  /** Called when there is capacity again after `send` returned false. */
  readonly drained: () => void;
}

/**
 * Decides when each message is posted. POSTs run independently and may overtake each other, so the required order is
 * kept here: nothing overtakes `initialize`, nothing is posted before `notifications/initialized` has arrived, and
 * notifications and answers are posted one after the other. Requests run in parallel.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #answers: AnswerLimit;
  /** Messages to be posted again, before all others. */
  #again: Outgoing[] = [];
  #queue: Outgoing[] = [];
  /** Notifications and answers that may be posted, each after the one before it has arrived. */
  #line: Outgoing[] = [];
  #turn: Outgoing | undefined;
  #cancelTurn: (() => void) | undefined;
  /** The `initialize` or `notifications/initialized` message that all later messages wait for. */
  #gate: Outgoing | undefined;
  #isHeld = false;
  readonly #backlog = new Backlog();
  #isClosed = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#answers = new AnswerLimit(options.log);
  }

  /**
   * Returns false if the outbox is full; `drained` follows. The message is accepted all the same, unless it exceeds the
   * limit on answers.
   */
  send(frame: Frame, call?: Call): boolean {
    if (this.#answers.excludes(frame, this.#backlog.isFull)) return false;
    const message = new Outgoing(frame, call);
    this.#backlog.add(message);
    this.#queue.push(message);
    this.#pump();
    return !this.#backlog.isFull;
  }

  /** Stops posting until `release`. */
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

  /** Call this when the message's bytes have been sent or it will not be posted. A second call has no effect. */
  left(message: Outgoing): void {
    if (this.#backlog.remove(message) && !this.#isClosed) this.#options.drained();
  }

  /** Call this when the server has accepted the message or never will. A second call has no effect. */
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

  /** Call this when `initialize` has been answered, with a result or an error. */
  opened(): void {
    if (this.#gate?.frame.method === INITIALIZE) this.#gate = undefined;
    this.#pump();
  }

  /** Removes the request of this call if it has not been posted. Returns true if it was removed. */
  withdraw(call: Call): boolean {
    for (const list of [this.#again, this.#queue]) {
      const index = list.findIndex((message) => message.call === call && message.frame.kind === 'request');
      const [message] = index < 0 ? [] : list.splice(index, 1);
      if (message === undefined) continue;
      this.left(message);
      return true;
    }
    return false;
  }

  /** Removes and returns all messages that have not been posted. */
  takeAll(): readonly Outgoing[] {
    const all = [...this.#again, ...this.#line, ...this.#queue];
    this.#again = [];
    this.#line = [];
    this.#queue = [];
    for (const message of all) this.left(message);
    return all;
  }

  /** Drops all messages and posts no more. */
  close(): void {
    this.#cancelTurn?.();
    this.#isHeld = true;
    this.#isClosed = true;
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
 * Receives the answer to a request of the bridge's own, or the error instead of one. Called once.
 * @param verdict what a refusal says about the session
 */
export type Reply = (answer: Frame | BridgeError, verdict: SessionVerdict) => void;

/** A message on its way to a server. */
export class Outgoing {
  readonly frame: Frame;
  /** The client's call that the message belongs to, if any. */
  readonly call: Call | undefined;
  /** Set on messages of the bridge's own. */
  readonly reply: Reply | undefined;
  /** Number of times the message has been posted. */
  attempts = 0;
  /** Set by the backlog, in which messages of the bridge's own are not counted. */
  isWaiting = false;
  /**
   * Id of the event after which the answer is resumed, if the server has the message already. Undefined if the message
   * has to be posted.
   */
  resumesAfter: string | undefined = undefined;
  /** The session that the message was last posted in. */
  session: SessionKey = NO_SESSION;

  constructor(frame: Frame, call?: Call, reply?: Reply) {
    this.frame = frame;
    this.call = call;
    this.reply = reply;
  }
}

/**
 * Passes the server's messages to the listener, and tracks the server's open requests, whose ids are valid in one
 * session only.
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

  /** @param call the call on whose response the message came, or for a response, the call that it answers */
  message(said: Frame, call?: Call): void {
    if (this.#isClosed) return;
    const frame = this.#requests.received(said, call);
    if (frame === undefined) return;
    const isOpen = call?.state.kind === 'open';
    // The answer is late: the call has been canceled meanwhile.
    if (frame.isResponse && call !== undefined && !isOpen) return;
    if (frame.kind === 'request' && frame.id !== undefined) this.#questions.add(frame.id);
    if (frame.method === CANCELED) {
      const withdrawn = findCanceledId(frame);
      if (withdrawn !== undefined) this.#questions.delete(withdrawn.value);
    }
    if (isOpen) this.#listener.fromServer(frame, call);
    else this.#listener.fromServer(frame);
  }

  fault(fault: ServerFault): void {
    if (!this.#isClosed) this.#listener.serverFault(this.#requests.failed(fault));
  }

  /** Reports to the listener that a request of the client will not be answered. */
  failed({ frame, call }: Outgoing, error: BridgeError): void {
    const isAwaited = call === undefined || call.state.kind === 'open';
    if (isAwaited && frame.kind === 'request') this.fault({ error, kind: 'error', id: frame.id });
  }

  /** Call this when the client answers a request of the server. */
  answered(frame: Frame): void {
    if (frame.id !== undefined) this.#questions.delete(frame.id);
  }

  /**
   * Cancels the server's open requests, because the session is gone. A late answer could otherwise match a different
   * request in the next session.
   */
  withdrawQuestions(reason: string): void {
    const withdrawn = [...this.#questions];
    this.#questions.clear();
    for (const requestId of withdrawn) this.message(notificationFrame(CANCELED, { requestId, reason }));
  }

  close(): void {
    this.#isClosed = true;
  }
}
