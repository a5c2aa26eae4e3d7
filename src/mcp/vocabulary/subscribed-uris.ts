import { BridgeError } from '../../errors.ts';

/** Resources one client may subscribe to where the bridge has to remember which. */
export const MAX_SUBSCRIBED = 1000;
/** Characters of their URIs together. */
export const MAX_SUBSCRIBED_LENGTH = 1024 * 1024;

/** What one client has subscribed to, within limits: it chooses the URIs, and how many. */
export class SubscribedUris {
  readonly #uris = new Set<string>();
  #length = 0;

  get size(): number {
    return this.#uris.size;
  }

  has(uri: string): boolean {
    return this.#uris.has(uri);
  }

  /** False: the limit is reached. */
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
