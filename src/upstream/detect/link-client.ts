import { ByteQueue } from '../../collections/bounded-collections.ts';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { ProbeOutcome } from '../../mcp/classify/probe-answer.ts';
import { PING } from '../../mcp/vocabulary/methods.ts';
import { METHOD_NOT_FOUND } from '../../mcp/vocabulary/rpc-codes.ts';
import { Exchange, type Lane } from '../../relay/exchange.ts';
import type { ServerFault, ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../wire/write-message.ts';
import { type Answer, answers, describeAttempt, outcomeOfError, outcomeOfResponse } from './answer.ts';
import type { FoundLink, Request } from './detecting-link.ts';

interface Pending {
  readonly exchange: Exchange;
  readonly settle: (outcome: ProbeOutcome, error?: BridgeError) => void;
}

/** A client's request that is being tried. */
interface Trial {
  readonly id: JsonRpcId | undefined;
  readonly settle: (outcome: ProbeOutcome, error?: BridgeError) => void;
}

interface Said {
  readonly bytes: number;
  readonly say: (client: ServerListener) => void;
}

/**
 * For whom the server talks.
 * - `bridge`: for the bridge alone, which asks it something. What it asks or tells is of no interest.
 * - `nobody`: a client's request is being tried. What the server says is kept, in case it becomes that client's.
 * - `client`: all that is no answer to a question of the bridge passes.
 */
type Audience =
  | { readonly kind: 'bridge' }
  | { readonly kind: 'nobody'; readonly said: ByteQueue<Said> }
  | { readonly kind: 'client'; readonly listener: ServerListener };

/** Messages a server may send before it has a client; then it is asked to wait. */
const MAX_EARLY = 100;
/** Bytes a server may send before that; a message that exceeds the limit is still taken. */
const MAX_EARLY_BYTES = 1024 * 1024;
/**
 * Ids count down from the largest that every server reads: a link that is handed on with a question still open must not
 * take the late answer for one of its new owner's, who counts up.
 */
const FIRST_ID = 2 ** 31 - 1;
const LANE: Lane = { isOpen: true };
const DONE = new BridgeError('ERR_SESSION_CLOSED', 'The detection of the server is complete.');

/**
 * A connection that is opened before it is known who will have it. The bridge can ask a few things on it, or try the
 * request of a client; then it is handed on, or closed, and that client never hears of it.
 */
export class LinkClient implements ServerListener, FoundLink {
  readonly link: UpstreamLink;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #lane: Lane;
  readonly #pending = new Map<JsonRpcId, Pending>();
  #nextId = FIRST_ID;
  #end: BridgeError | undefined;
  #trial: Trial | undefined;
  #audience: Audience = { kind: 'bridge' };
  /** It talked too much and was told so. */
  #isPaused = false;

  /**
   * Throws what `dial` throws.
   * @param headers of the client for whom the bridge asks, as far as the server is to see them
   */
  constructor(dialer: SessionDialer, clock: Clock, headers?: Lane['headers']) {
    this.#clock = clock;
    this.#name = dialer.name;
    this.#lane = headers === undefined ? LANE : { ...LANE, headers };
    this.link = dialer.dial(this);
  }

  /** Why the connection is gone, if it is. */
  get end(): BridgeError | undefined {
    return this.#end;
  }

  /** See `ServerProcess`; undefined where there is none. */
  get gone(): Promise<void> | undefined {
    return this.link.process?.gone;
  }

  // ---- questions of the bridge

  /** Never rejects. After `timeoutMs` the answer is silence; one that still comes is dropped. */
  request(method: string, params: object, timeoutMs: number): Promise<Answer<ProbeOutcome>> {
    return this.ask(requestFrame(this.takeId(), method, params), timeoutMs);
  }

  /** The id for a request whose frame the caller makes. */
  takeId(): number {
    const id = this.#nextId;
    this.#nextId -= 1;
    return id;
  }

  /** Sends a request made with `takeId`. */
  ask(frame: Frame, timeoutMs: number): Promise<Answer<ProbeOutcome>> {
    const id = frame.id as JsonRpcId;
    return this.#answer(`no answer within ${timeoutMs} ms`, (settle, startedMs) => {
      const cancelTimer = this.#clock.after(timeoutMs, () => pending.settle({ kind: 'silence' }));
      const pending: Pending = {
        exchange: new Exchange(id, frame.method ?? '', this.#lane, undefined, startedMs),
        settle: (outcome, error) => {
          cancelTimer();
          this.#pending.delete(id);
          settle(outcome, error);
        },
      };
      this.#pending.set(id, pending);
      if (this.#end !== undefined) return pending.settle(outcomeOfError(this.#end), this.#end);
      this.link.send(frame, pending.exchange);
    });
  }

  #answer(
    silence: string,
    start: (settle: (outcome: ProbeOutcome, error?: BridgeError) => void, startedMs: number) => void,
  ): Promise<Answer<ProbeOutcome>> {
    const startedMs = this.#clock.now();
    return new Promise((resolve) => {
      start((outcome, error) => {
        const summary = outcome.kind === 'silence' ? silence : describeAttempt(outcome, error, { name: this.#name });
        resolve({ outcome, head: undefined, error, summary, tookMs: this.#clock.now() - startedMs });
      }, startedMs);
    });
  }

  notify(method: string, params?: object): void {
    if (this.#end === undefined) this.link.send(notificationFrame(method, params));
  }

  // ---- the request of a client

  /**
   * Sends a client's request as it is. Its answer, and what the server says beside it, waits for `open`. There is no time
   * limit but that of the caller. Never rejects; does not resolve when the connection is closed from here.
   */
  try({ frame, exchange }: Request): Promise<Answer<ProbeOutcome>> {
    if (this.#audience.kind === 'bridge') this.#keep();
    return this.#answer('no answer', (settle) => {
      this.#trial = { id: frame.id, settle };
      this.link.send(frame, exchange);
    });
  }

  #keep(): ByteQueue<Said> {
    const said = new ByteQueue<Said>({ maxItems: MAX_EARLY, maxBytes: MAX_EARLY_BYTES }, ({ bytes }) => bytes);
    this.#audience = { kind: 'nobody', said };
    return said;
  }

  /** The listener hears first what the server has said so far to the client that tried it, and from then on all. */
  open(listener: ServerListener): UpstreamLink {
    const audience = this.#audience;
    this.#audience = { kind: 'client', listener };
    if (audience.kind !== 'nobody') return this.link;
    if (this.#isPaused) this.link.resume();
    for (const { say } of audience.said.takeAll()) say(listener);
    return this.link;
  }

  /** The client that tried it goes another way: whoever gets the connection now hears nothing of that, and no halt. */
  takeBack(): void {
    this.#audience = { kind: 'bridge' };
    this.link.resume();
  }

  /** @param reason default: everything has been asked */
  close(reason = DONE): void {
    this.#end ??= reason;
    this.link.close(reason);
    for (const { settle } of [...this.#pending.values()]) settle({ kind: 'lost' }, reason);
  }

  // ---- from the server

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (frame.isResponse && (this.#trial !== undefined || this.#nextId < FIRST_ID)) {
      if (this.#answersOwn(frame, exchange)) return;
      const trial = this.#trial;
      if (trial !== undefined && answers(frame, trial.id)) return this.#tried(trial, frame, exchange);
    }
    const audience = this.#audience;
    switch (audience.kind) {
      case 'client':
        return audience.listener.fromServer(frame, exchange);
      case 'nobody':
        return this.#add(audience.said, frame.bytes.length, (client) => client.fromServer(frame, exchange));
      case 'bridge':
        if (frame.kind === 'request') this.#refuse(frame);
    }
  }

  #answersOwn(frame: Frame, exchange: Exchange | undefined): boolean {
    const id = exchange?.id ?? frame.id ?? this.#soleId();
    if (typeof id !== 'number' || id <= this.#nextId || id > FIRST_ID) return false;
    this.#pending.get(id)?.settle(outcomeOfResponse(frame, undefined));
    return true;
  }

  /** An error without id: the server could not read a request; with one open it was that. */
  #soleId(): JsonRpcId | undefined {
    return this.#pending.size === 1 ? this.#pending.keys().next().value : undefined;
  }

  #tried(trial: Trial, frame: Frame, exchange: Exchange | undefined): void {
    this.#trial = undefined;
    this.#add(this.#said(), frame.bytes.length, (client) => client.fromServer(frame, exchange));
    trial.settle(outcomeOfResponse(frame, undefined));
  }

  #said(): ByteQueue<Said> {
    return this.#audience.kind === 'nobody' ? this.#audience.said : this.#keep();
  }

  #add(said: ByteQueue<Said>, bytes: number, say: Said['say']): void {
    said.add({ bytes, say });
    if (this.#isPaused || !said.isFull) return;
    this.#isPaused = true;
    this.link.pause();
  }

  #refuse(request: Frame): void {
    const id = request.id as JsonRpcId;
    const refusal = { code: METHOD_NOT_FOUND, message: `This client does not do ${request.method}.` };
    this.link.send(request.method === PING ? resultFrame(id, {}) : errorFrame(id, refusal));
  }

  serverFault(fault: ServerFault): void {
    const pending = fault.id === undefined ? undefined : this.#pending.get(fault.id);
    if (pending !== undefined) return pending.settle(outcomeOfError(fault.error), fault.error);
    const trial = this.#trial;
    if (trial !== undefined && (fault.id === undefined || fault.id === trial.id)) {
      this.#trial = undefined;
      this.#add(this.#said(), 0, (client) => client.serverFault(fault));
      return trial.settle(outcomeOfError(fault.error), fault.error);
    }
    if (this.#audience.kind === 'client') this.#audience.listener.serverFault(fault);
    if (this.#audience.kind === 'nobody') this.#add(this.#audience.said, 0, (client) => client.serverFault(fault));
  }

  serverDrained(): void {
    if (this.#audience.kind === 'client') this.#audience.listener.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    this.#end = reason;
    for (const { settle } of [...this.#pending.values()]) settle(outcomeOfError(reason), reason);
    const trial = this.#trial;
    this.#trial = undefined;
    if (trial !== undefined) this.#said();
    if (this.#audience.kind === 'client') this.#audience.listener.serverClosed(reason);
    if (this.#audience.kind === 'nobody') this.#add(this.#audience.said, 0, (client) => client.serverClosed(reason));
    trial?.settle(outcomeOfError(reason), reason);
  }
}
