import type { Clock } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import type { ProbeOutcome } from '../../../mcp/classify/probe-answer.ts';
import { PING } from '../../../mcp/vocabulary/methods.ts';
import { METHOD_NOT_FOUND } from '../../../mcp/vocabulary/rpc-codes.ts';
import { Exchange, type Lane } from '../../../relay/exchange.ts';
import type { ServerFault, ServerListener, UpstreamDialer, UpstreamLink } from '../../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../../wire/write-message.ts';
import { describeAttempt } from './describe-outcome.ts';
import { outcomeOfError, outcomeOfResponse } from './http-outcome.ts';

/** What became of a request. */
export interface LinkAnswer {
  readonly outcome: ProbeOutcome;
  /** The transport's own words where there was no answer. */
  readonly error: BridgeError | undefined;
  readonly words: string;
  readonly tookMs: number;
}

interface Pending {
  readonly exchange: Exchange;
  readonly settle: (outcome: ProbeOutcome, error?: BridgeError) => void;
}

/**
 * Ids count down from the largest that every server reads: a link that is handed on with a question still open must not
 * take the late answer for one of its new owner's, who counts up.
 */
const FIRST_ID = 2 ** 31 - 1;
const LANE: Lane = { isOpen: true };
const DONE = new BridgeError('ERR_SESSION_CLOSED', 'Everything that was to be asked has been asked.');

/** A client of the bridge's own on a link: asks a few things, knows nothing else. */
export class LinkClient implements ServerListener {
  readonly #clock: Clock;
  readonly #name: string;
  readonly #link: UpstreamLink;
  readonly #pending = new Map<JsonRpcId, Pending>();
  #nextId = FIRST_ID;
  #end: BridgeError | undefined;
  #heir: ServerListener | undefined;

  /** Throws what `dial` throws. */
  constructor(dialer: UpstreamDialer, clock: Clock) {
    this.#clock = clock;
    this.#name = dialer.name;
    this.#link = dialer.dial(this);
  }

  /** Why the connection is gone, if it is. */
  get end(): BridgeError | undefined {
    return this.#end;
  }

  /** See `UpstreamLink`. */
  get gone(): Promise<void> | undefined {
    return this.#link.process?.gone;
  }

  /** Never rejects. After `timeoutMs` the answer is silence; one that still comes is dropped. */
  request(method: string, params: object, timeoutMs: number): Promise<LinkAnswer> {
    return this.ask(requestFrame(this.takeId(), method, params), timeoutMs);
  }

  /** The id for a request whose frame the caller makes. */
  takeId(): number {
    const id = this.#nextId;
    this.#nextId -= 1;
    return id;
  }

  /** Sends a request made with `takeId`. */
  ask(frame: Frame, timeoutMs: number): Promise<LinkAnswer> {
    const startedMs = this.#clock.now();
    const id = frame.id as JsonRpcId;
    return new Promise((resolve) => {
      const exchange = new Exchange(id, frame.method ?? '', LANE, undefined, startedMs);
      const settle = (outcome: ProbeOutcome, error?: BridgeError): void => {
        cancelTimer();
        this.#pending.delete(id);
        const words = describeAttempt(outcome, error, { name: this.#name });
        resolve({ outcome, error, words, tookMs: this.#clock.now() - startedMs });
      };
      const cancelTimer = this.#clock.after(timeoutMs, () => settle({ kind: 'silence' }));
      this.#pending.set(id, { exchange, settle });
      if (this.#end !== undefined) return settle(outcomeOfError(this.#end), this.#end);
      this.#link.send(frame, exchange);
    });
  }

  notify(method: string, params?: object): void {
    if (this.#end === undefined) this.#link.send(notificationFrame(method, params));
  }

  /** From here on somebody else speaks on the link; what was asked before stays unanswered there. */
  handTo(heir: ServerListener): UpstreamLink {
    this.#heir = heir;
    return this.#link;
  }

  /** @param reason default: everything has been asked */
  close(reason = DONE): void {
    this.#end ??= reason;
    this.#link.close(reason);
    for (const { settle } of [...this.#pending.values()]) settle({ kind: 'lost' }, reason);
  }

  // ---- from the server

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (frame.isResponse) {
      const id = exchange?.id ?? frame.id ?? this.#soleId();
      if (typeof id === 'number' && id > this.#nextId && id <= FIRST_ID) {
        return this.#pending.get(id)?.settle(outcomeOfResponse(frame, undefined));
      }
    }
    if (this.#heir !== undefined) return this.#heir.fromServer(frame, exchange);
    if (frame.kind === 'request') this.#answer(frame);
  }

  /** An error without id: the server could not read a request; with one open it was that. */
  #soleId(): JsonRpcId | undefined {
    return this.#pending.size === 1 ? this.#pending.keys().next().value : undefined;
  }

  #answer(request: Frame): void {
    const id = request.id as JsonRpcId;
    const refusal = { code: METHOD_NOT_FOUND, message: `This client does not do ${request.method}.` };
    this.#link.send(request.method === PING ? resultFrame(id, {}) : errorFrame(id, refusal));
  }

  serverFault(fault: ServerFault): void {
    const pending = fault.id === undefined ? undefined : this.#pending.get(fault.id);
    if (pending !== undefined) return pending.settle(outcomeOfError(fault.error), fault.error);
    this.#heir?.serverFault(fault);
  }

  serverDrained(): void {
    this.#heir?.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    this.#end = reason;
    for (const { settle } of [...this.#pending.values()]) settle(outcomeOfError(reason), reason);
    this.#heir?.serverClosed(reason);
  }
}
