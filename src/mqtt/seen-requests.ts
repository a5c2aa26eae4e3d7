import { RecentNames } from '../collections/bounded-collections.ts';
import type { Envelope } from '../wire/frame.ts';

/**
 * Limits of the remembered ids. A broker repeats a message soon, if at all: when its connection to the sender has broken and was
 * opened again.
 */
const KEPT = { count: 4096, length: 64 * 1024 };

/** Recognizes requests that a broker delivers again. QoS 1 is at least once, and a tool should not run twice. */
export class SeenRequests {
  readonly #ids = new RecentNames<true>(KEPT);

  /** Notes a message. Returns true for a request whose id its sender has used before in this session. */
  isRepeated({ kind, id }: Pick<Envelope, 'kind' | 'id'>): boolean {
    if (kind !== 'request' || id === undefined) return false;
    const key = typeof id === 'number' ? `n${id}` : `s${id}`;
    if (this.#ids.has(key)) return true;
    this.#ids.set(key, true);
    return false;
  }
}
