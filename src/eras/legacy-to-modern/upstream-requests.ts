import type { Clock } from '../../deps.ts';
import { findProgressOf, findProgressToken, findSubscriptionId } from '../../mcp/classify/correlators.ts';
import { CANCELED, LISTEN, PROGRESS } from '../../mcp/vocabulary/methods.ts';
import { Call, type Lane } from '../../relay/call.ts';
import type { UpstreamLink } from '../../relay/ports.ts';
import { answersId, type Frame, type JsonRpcId, withId } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';

/** Receives the messages about a request to the server. */
export interface Asker {
  /** Called with the server's answer, after which the request is over. */
  answered(frame: Frame): void;
  /** Called when the server has ended the request without an answer. */
  withdrawn(): void;
  /** Called with a notification about the request, before its answer. */
  notified(frame: Frame): void;
}

interface OpenRequest {
  readonly call: Call;
  readonly asker: Asker;
}

/**
 * The open requests of one translator to its server. Each is a call of its own, with its own id, because one call of the
 * client may take several requests, and some requests belong to no call of the client.
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

  /**
   * Gives the request an id. Separate from `send`, because its owner must know the id first: the answer may come within
   * `send`.
   */
  open(asker: Asker, request: Frame, lane: Lane): Call {
    // Ids are integers, which every server echoes unchanged. 0 is not used, because some servers take it for a missing
    // id.
    this.#lastId += 1;
    const token = findProgressToken(request)?.value;
    const call = new Call(this.#lastId, request.method ?? '', lane, token, this.#clock.now());
    this.#open.set(call.id, { call, asker });
    return call;
  }

  /** Sends a request that was opened. Returns false if the server's side is full. */
  send(request: Frame, call: Call): boolean {
    return this.#link?.send(withId(request, call.id), call) ?? true;
  }

  /** Sends a notification that belongs to no request. Returns false if the server's side is full. */
  notify(frame: Frame): boolean {
    return this.#link?.send(frame) ?? true;
  }

  /**
   * Withdraws a request, whose asker is called no more. Does nothing if the request is over. Returns false if the
   * server's side is full.
   */
  cancel(call: Call, reason: string): boolean {
    if (!this.#open.delete(call.id)) return true;
    call.cancel('client');
    const frame = notificationFrame(CANCELED, { requestId: call.id, reason });
    return this.#link?.send(frame, call) ?? true;
  }

  /** Withdraws all open requests. */
  cancelAll(reason: string): void {
    for (const { call } of [...this.#open.values()]) this.cancel(call, reason);
  }

  /** Ends the request with this id, and returns its asker. Undefined if no such request is open. */
  take(id: JsonRpcId | undefined): Asker | undefined {
    const request = id === undefined ? this.#sole() : this.#open.get(id);
    if (request === undefined) return undefined;
    this.#open.delete(request.call.id);
    request.call.settle();
    return request.asker;
  }

  /**
   * Returns the request that an error without an id belongs to. The server could not read a request, so if only one
   * call is open, it was that call's.
   */
  #sole(): OpenRequest | undefined {
    const open = [...this.#open.values()];
    const plain = open.filter(({ call }) => call.method !== LISTEN);
    const [first, second] = plain.length > 0 ? plain : open;
    return second === undefined ? first : undefined;
  }

  /** Returns the asker of the request that a notification is about, if the link or the message itself tells. */
  about(frame: Frame, known: Call | undefined): Asker | undefined {
    if (known !== undefined) return this.#open.get(known.id)?.asker;
    if (frame.method === PROGRESS) return this.#withToken(findProgressOf(frame)?.value);
    const subscriptionId = findSubscriptionId(frame);
    return subscriptionId && this.#open.get(subscriptionId.value)?.asker;
  }

  #withToken(token: JsonRpcId | undefined): Asker | undefined {
    for (const { call, asker } of this.#open.values()) {
      if (token !== undefined && answersId(token, call.progressToken)) return asker;
    }
    return undefined;
  }

  /** Forgets all requests, because the link is gone. */
  clear(): void {
    this.#open.clear();
  }
}

/** Time in which the server can confirm the cancellations for a client that has left. The link stays open for it. */
const FINAL_REQUESTS_MS = 2_000;

/**
 * The last requests of a session whose client is gone. The link stays open until each has any answer, because a request
 * may never be sent if the link is closed at once.
 */
export class FinalRequests implements Asker {
  readonly #done: () => void;
  readonly #stopTimer: () => void;
  #open: number;

  /** @param done called once, when the link can be closed */
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
