import { type RequestMetadata, stampMetadata } from '../../mcp/classify/request-metadata.ts';
import type { ListenFilter } from '../../mcp/translate/listen-filter.ts';
import { LISTEN, LISTEN_ACKNOWLEDGED } from '../../mcp/vocabulary/methods.ts';
import type { Exchange, Lane } from '../../relay/exchange.ts';
import type { Frame } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';
import { filterParams } from './change-filter.ts';
import type { Asker, UpstreamRequests } from './upstream-requests.ts';

/** Hears what comes on a subscription. */
export interface ListenOwner {
  /** The first thing a stream says. */
  acknowledged(stream: ServerSubscription, frame: Frame): void;
  changed(stream: ServerSubscription, frame: Frame): void;
  /** The server, or the way to it, has ended the stream: with a result, with an error or by withdrawing it. */
  ended(stream: ServerSubscription, answer: Frame | undefined): void;
}

/** One `subscriptions/listen` at the server. */
export class ServerSubscription implements Asker {
  /** What it asked for. */
  readonly asked: ListenFilter;
  readonly #owner: ListenOwner;
  readonly #requests: UpstreamRequests;
  #exchange: Exchange | undefined;
  #isAcknowledged = false;

  constructor(owner: ListenOwner, requests: UpstreamRequests, asked: ListenFilter) {
    this.#owner = owner;
    this.#requests = requests;
    this.asked = asked;
  }

  open(metadata: RequestMetadata, lane: Lane): void {
    const frame = stampMetadata(requestFrame(0, LISTEN, { notifications: filterParams(this.asked) }), metadata);
    this.#exchange = this.#requests.open(this, frame, lane);
    this.#requests.send(frame, this.#exchange);
  }

  /** Nothing is heard of it any more. */
  close(): void {
    if (this.#exchange !== undefined) this.#requests.cancel(this.#exchange, 'another subscription took its place');
  }

  answered(frame: Frame): void {
    this.#owner.ended(this, frame);
  }

  /** [spec 2026-07-28 basic/patterns/cancellation] the other way for a server to end a subscription. */
  withdrawn(): void {
    this.#owner.ended(this, undefined);
  }

  notified(frame: Frame): void {
    if (frame.method !== LISTEN_ACKNOWLEDGED) return this.#owner.changed(this, frame);
    // The link below may have opened it anew; that is its own affair.
    if (this.#isAcknowledged) return;
    this.#isAcknowledged = true;
    this.#owner.acknowledged(this, frame);
  }
}
