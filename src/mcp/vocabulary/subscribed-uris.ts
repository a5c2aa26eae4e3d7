import { BridgeError } from '../../errors.ts';

/** Limit of resources that one client may subscribe to if the bridge must remember them. */
export const MAX_SUBSCRIBED = 1000;
/** Limit in characters for all URIs of one client together. */
export const MAX_SUBSCRIBED_LENGTH = 1024 * 1024;

/** The resource subscriptions of one client. Limited, because the client chooses the URIs and their number. */
export class SubscribedUris {
  readonly #uris = new Set<string>();
  #length = 0;

  get size(): number {
    return this.#uris.size;
  }

  has(uri: string): boolean {
    return this.#uris.has(uri);
  }

  /** Returns false if the limit is reached. */
  add(uri: string): boolean {
    if (this.#uris.has(uri)) return true;
    if (this.#uris.size >= MAX_SUBSCRIBED || this.#length + uri.length > MAX_SUBSCRIBED_LENGTH) return false;
    this.#uris.add(uri);
    this.#length += uri.length;
    return true;
  }

  delete(uri: string): boolean {
    const isGone = this.#uris.delete(uri);
    if (isGone) this.#length -= uri.length;
    return isGone;
  }

  clear(): void {
    this.#uris.clear();
    this.#length = 0;
  }

  [Symbol.iterator](): IterableIterator<string> {
    return this.#uris.values();
  }
}

export const TOO_MANY_SUBSCRIBED = new BridgeError(
  'ERR_SESSION_BUSY',
  `This client has subscribed to as many resources as it may, ${MAX_SUBSCRIBED} or 1 MiB of URIs; unsubscribe from some.`,
);
