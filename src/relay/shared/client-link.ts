/** The senders of messages to a shared server, and what waits while the server takes nothing. */
import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import { ListMember } from '../../collections/short-lived-values.ts';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { type Frame, idToken } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Exchange } from '../exchange.ts';
import { ModernCall } from '../modern-call.ts';
import type { ServerListener, UpstreamLink } from '../ports.ts';

/**
 * A client of a shared server, in whose list it is from when it joins until it leaves. `state` is what the era of the
 * server keeps of the client, and `openCalls` counts the client's calls that the server is at work on.
 */
export interface SharedClient<State> extends ListMember {
  readonly listener: ServerListener;
  readonly state: State;
  openCalls: number;
}

/**
 * The sender of a message to a shared server, which gets the answer: a client that has joined, or a modern call, which
 * comes alone and belongs to no client here. Only modern servers take calls. Each is in a list, and leaves it when the
 * client has left or the call is over.
 */
type AnySender = SharedClient<unknown> | ModernCall;

interface SentRequest {
  readonly sender: AnySender;
  readonly exchange: Exchange | undefined;
}

/** Passes a message of the server to the sender of the request that it is about. */
export function deliver({ sender, exchange }: SentRequest, frame: Frame): void {
  if (sender instanceof ModernCall) sender.fromServer(frame);
  else sender.listener.fromServer(frame, exchange);
}

/** A shared server as a client link sees it. */
export interface ClientLinkHost<State> {
  /** False: the server's pipe is full. */
  send(message: SentMessage<SharedClient<State>>): boolean;
  /** Withdraws what the client has open at the server. */
  leave(client: SharedClient<State>): void;
}

/** A client that is the link of a relay: to the relay a link like any other. */
export class ClientLink<State> extends ListMember implements SharedClient<State>, UpstreamLink {
  listener: ServerListener;
  readonly state: State;
  readonly #host: ClientLinkHost<State>;
  openCalls = 0;
  #hasLeft = false;

  constructor(host: ClientLinkHost<State>, listener: ServerListener, state: State) {
    super();
    this.#host = host;
    this.listener = listener;
    this.state = state;
  }

  /** The server's process serves other clients as well. */
  get process(): undefined {
    return undefined;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    return this.#hasLeft || this.#host.send({ sender: this, frame, exchange });
  }

  /**
   * The server is not paused, because that would stop it for every client. The transport of a slow client bounds what
   * the client has not read, and meanwhile holds back the client's own messages.
   */
  pause(): void {}
  resume(): void {}

  close(_reason: BridgeError): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#host.leave(this);
  }
}

// ---- Messages that wait for the server

/** Messages that may wait while the server starts. Each client is held back from its first one on. */
const MAX_HELD = 1024;
/** The first of each client may be as large as messages get. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;

/** A message to the server, its sender, and the exchange that the message begins or is about. */
export interface SentMessage<Sender> {
  readonly sender: Sender;
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

export interface RequestMessage<Sender> extends SentMessage<Sender> {
  readonly exchange: Exchange;
}

/** Checks that a request has its exchange, as every request has. */
export function checkExchange<Sender>(message: SentMessage<Sender>): asserts message is RequestMessage<Sender> {
  if (message.exchange === undefined) throw new Error('a request was sent without its exchange');
}

/** A client that wants to know when the server serves. Exactly one of the functions is called, once. */
export interface WaitingClient<Sender> {
  readonly sender: Sender;
  readonly ready: () => void;
  readonly refused: (reason: BridgeError) => void;
}

export type Held<Sender> = SentMessage<Sender> | WaitingClient<Sender>;

function heldBytes(held: Held<unknown>): number {
  return 'frame' in held ? frameBytes(held) : 0;
}

/** Messages, and clients, that wait while the server takes nothing. */
export class HeldMessages<Sender extends AnySender> {
  /** Undefined while nothing has to wait, which is nearly always. */
  #held: ByteQueue<Held<Sender>> | undefined;

  get isEmpty(): boolean {
    return (this.#held?.length ?? 0) === 0;
  }

  get isFull(): boolean {
    return this.#held?.isFull ?? false;
  }

  add(held: Held<Sender>): void {
    this.#held ??= new ByteQueue<Held<Sender>>({ maxItems: MAX_HELD, maxBytes: MAX_HELD_BYTES }, heldBytes);
    this.#held.add(held);
  }

  /** Takes everything that waits, in its order. */
  takeAll(): readonly Held<Sender>[] {
    const held = this.#held?.takeAll() ?? [];
    this.#held = undefined;
    return held;
  }

  /** Passes on what has waited and is still wanted. False: the server is full. `send` says whether it is not. */
  passOn(send: (message: SentMessage<Sender>) => boolean): boolean {
    let hasCapacity = true;
    for (const held of this.takeAll()) {
      if (!held.sender.isListed) continue;
      if (!('frame' in held)) held.ready();
      else if (!isOver(held)) hasCapacity = send(held) && hasCapacity;
    }
    return hasCapacity;
  }

  /** Refuses all that has waited. */
  refuseAll(reason: BridgeError): void {
    for (const held of this.takeAll()) refuse(held, reason);
  }

  dropOf(sender: Sender): void {
    this.#held?.removeAll((held) => held.sender === sender);
  }
}

/**
 * Answers a request with the reason; no other message has an answer. Returns what its sender's `send` returns: the
 * server's pipe is no fuller than before.
 */
export function refuse(held: Held<AnySender>, reason: BridgeError): true {
  if (!('frame' in held)) held.refused(reason);
  else if (held.frame.kind === 'request' && !isOver(held)) {
    deliver(held, errorFrame(idToken(held.frame), rpcErrorOf(reason)));
  }
  return true;
}

/** Returns true if the call of the message was answered or withdrawn meanwhile. */
function isOver({ exchange }: SentMessage<unknown>): boolean {
  return exchange !== undefined && exchange.state.kind !== 'open';
}

/** More than that is nobody's change of mind: a server that takes nothing is asked for more and more in vain. */
export const MAX_WITHDRAWN_BYTES = 64 * 1024 * 1024;
/** Beyond it one small request goes on now and then: only a call that is given up shows that a server hangs. */
export const TRIAL_MS = 1000;
export const MAX_TRIAL_BYTES = 16 * 1024;

/**
 * Requests that were withdrawn before a full server has taken them. They wait to be written all the same, and count as
 * nobody's open call any more.
 */
export class WithdrawnRequests {
  readonly #clock: Clock;
  #isFull = false;
  #bytes = 0;
  #nextTrialMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes what the server's link has said to a message, and passes it on. */
  sent(hasCapacity: boolean): boolean {
    this.#isFull ||= !hasCapacity;
    return hasCapacity;
  }

  add(bytes: number): void {
    if (this.#isFull) this.#bytes += bytes;
  }

  /** The server has capacity again, or is another one. */
  clear(): void {
    this.#isFull = false;
    this.#bytes = 0;
  }

  /** Why the server is not asked for this, of so many bytes; undefined: it is. */
  refusalOf(requestBytes: number): BridgeError | undefined {
    if (this.#bytes < MAX_WITHDRAWN_BYTES) return undefined;
    const nowMs = this.#clock.now();
    if (requestBytes > MAX_TRIAL_BYTES || nowMs < this.#nextTrialMs) return TOO_MUCH;
    this.#nextTrialMs = nowMs + TRIAL_MS;
    return undefined;
  }
}

const TOO_MUCH = new BridgeError(
  'ERR_SESSION_BUSY',
  `The server reads nothing, and ${MAX_WITHDRAWN_BYTES} bytes of cancelled requests wait for it; try again later.`,
  { retryAfterMs: 1000 },
);
