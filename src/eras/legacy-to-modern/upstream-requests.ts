import type { Clock } from '../../deps.ts';
import { findProgressOf, findProgressToken, findSubscriptionId } from '../../mcp/classify/correlators.ts';
import { CANCELLED, LISTEN, PROGRESS } from '../../mcp/vocabulary/methods.ts';
import { Exchange, type Lane } from '../../relay/exchange.ts';
import type { UpstreamLink } from '../../relay/ports.ts';
import { answersId, type Frame, type JsonRpcId, withId } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';

/** Hears what comes of a request it has sent to the server. */
export interface Asker {
  /** The server's answer; the request is over. */
  answered(frame: Frame): void;
  /** The server has ended the request without an answer. */
  withdrawn(): void;
  /** Something the server says about the request before that. */
  notified(frame: Frame): void;
}

interface OpenRequest {
  readonly exchange: Exchange;
  readonly asker: Asker;
}

/**
 * The requests one translator has open at the server. They have ids and exchanges of their own: a call of the client
 * may take several of them, and some belong to no call at all.
 */
export class UpstreamRequests {
  readonly #clock: Clock;
  readonly #open = new Map<JsonRpcId, OpenRequest>();
  #link: UpstreamLink | undefined;
  #lastId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called once, before the first request. */
  join(link: UpstreamLink): void {
    this.#link = link;
  }

  /** Gives the request an id. Its owner must know it before it is sent: the answer may come at once. */
  open(asker: Asker, request: Frame, lane: Lane): Exchange {
    // Integers, which every server echoes unchanged, and never 0, which some take for "none".
    this.#lastId += 1;
    const token = findProgressToken(request)?.value;
    const exchange = new Exchange(this.#lastId, request.method ?? '', lane, token, this.#clock.now());
    this.#open.set(exchange.id, { exchange, asker });
    return exchange;
  }

  /** Sends what was opened. False: the server's side is full. */
  send(request: Frame, exchange: Exchange): boolean {
    return this.#link?.send(withId(request, exchange.id), exchange) ?? true;
  }

  /** Notifications that belong to no request. False: the server's side is full. */
  notify(frame: Frame): boolean {
    return this.#link?.send(frame) ?? true;
  }

  /** Withdraws a request; nothing of it is heard any more. Nothing happens when it is over. */
  cancel(exchange: Exchange, reason: string): boolean {
    if (!this.#open.delete(exchange.id)) return true;
    exchange.cancel('client');
    const frame = notificationFrame(CANCELLED, { requestId: exchange.id, reason });
    return this.#link?.send(frame, exchange) ?? true;
  }

  /** Withdraws all there are. */
  cancelAll(reason: string): void {
    for (const { exchange } of [...this.#open.values()]) this.cancel(exchange, reason);
  }

  /** Ends the request that this answers. Undefined: none that is open. */
  take(id: JsonRpcId | undefined): Asker | undefined {
    const request = id === undefined ? this.#sole() : this.#open.get(id);
    if (request === undefined) return undefined;
    this.#open.delete(request.exchange.id);
    request.exchange.settle();
    return request.asker;
  }

  /** An error without id is about a request that could not be read. With one call open it was that one. */
  #sole(): OpenRequest | undefined {
    const open = [...this.#open.values()];
    const calls = open.filter(({ exchange }) => exchange.method !== LISTEN);
    const [first, second] = calls.length > 0 ? calls : open;
    return second === undefined ? first : undefined;
  }

  /** The request that a notification is about, as far as the link or the message itself tells. */
  about(frame: Frame, known: Exchange | undefined): Asker | undefined {
    if (known !== undefined) return this.#open.get(known.id)?.asker;
    if (frame.method === PROGRESS) return this.#withToken(findProgressOf(frame)?.value);
    const subscriptionId = findSubscriptionId(frame);
    return subscriptionId && this.#open.get(subscriptionId.value)?.asker;
  }

  #withToken(token: JsonRpcId | undefined): Asker | undefined {
    for (const { exchange, asker } of this.#open.values()) {
      if (token !== undefined && answersId(token, exchange.progressToken)) return asker;
    }
    return undefined;
  }

  /** Forgets everything; the link is gone. */
  clear(): void {
    this.#open.clear();
  }
}

/** How long the link stays open for the server to answer that it has withdrawn what the client left behind. */
const FINAL_REQUESTS_MS = 2_000;

/**
 * The last requests of a session whose client is gone. The link stays open until each was answered, whatever with: a
 * request that is cut off may never have been sent.
 */
export class FinalRequests implements Asker {
  readonly #done: () => void;
  readonly #stopTimer: () => void;
  #open: number;

  /** `done`: the link can be let go; called once. */
  constructor(requests: number, clock: Clock, done: () => void) {
    this.#open = requests;
    this.#done = done;
    this.#stopTimer = clock.after(FINAL_REQUESTS_MS, () => this.#end());
  }

  answered(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#end();
  }

  withdrawn(): void {
    this.answered();
  }

  notified(): void {}

  /** Stops waiting for the answers. May be called twice. */
  abandon(): void {
    this.#open = 0;
    this.#stopTimer();
  }

  #end(): void {
    this.abandon();
    this.#done();
  }
}
