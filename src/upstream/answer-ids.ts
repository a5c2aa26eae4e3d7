/** Which request of a link each response of its server answers, where servers return ids with another JSON type. */
import type { Logger } from 'pino';
import { idOfOtherType, type JsonRpcId } from '../wire/frame.ts';

/** Says once for each server what is wrong with the ids it returns: it does so with every answer. */
export class IdWarnings {
  readonly #name: string;
  readonly #log: Logger;
  #hasChanged = false;
  #hasUnknown = false;

  /** @param name that of the server */
  constructor(name: string, log: Logger) {
    this.#name = name;
    this.#log = log;
  }

  /** A response was found by the value of its id, which was sent as `requested`. */
  changed(id: JsonRpcId, requested: JsonRpcId): void {
    if (this.#hasChanged) return;
    this.#hasChanged = true;
    const how = typeof id === typeof requested ? 'a number with a fraction or exponent' : `a ${typeof id}`;
    this.#log.warn(
      `Server "${this.#name}" changes the JSON type of ids: it answered a request whose id is a ${typeof requested} with ${how}. Its answers are found by their value; other clients may wait for them in vain, so report it to whoever maintains the server, or the gateway in front of it`,
    );
  }

  /** A response has the id of no request that waits. */
  unknown(id: JsonRpcId): void {
    const level = this.#hasUnknown ? 'debug' : 'warn';
    this.#hasUnknown = true;
    this.#log[level](
      { idType: typeof id },
      `Server "${this.#name}" sent an answer that matches no open call and is dropped; its id is a ${typeof id}`,
    );
  }
}

/**
 * Requests of one link that may still be answered, those that were withdrawn included. More than all clients of a bridge
 * may have open by default; the oldest make way.
 */
const MAX_AWAITED = 16_384;
/** Longer ids are no numbers, and are not kept behind the call that has them. */
const MAX_KEPT_LENGTH = 64;

/** The ids of the requests of one link that lack their answer. */
export class AwaitedIds {
  readonly #warnings: IdWarnings;
  readonly #ids = new Set<JsonRpcId>();
  /** Not all are kept, so it cannot be said of an id that nobody waits for it. */
  #hasForgotten = false;

  constructor(warnings: IdWarnings) {
    this.#warnings = warnings;
  }

  /** A request is sent. */
  add(id: JsonRpcId): void {
    if (typeof id === 'string' && id.length > MAX_KEPT_LENGTH) {
      this.#hasForgotten = true;
      return;
    }
    this.#ids.add(id);
    if (this.#ids.size <= MAX_AWAITED) return;
    this.#hasForgotten = true;
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest);
      break;
    }
  }

  /**
   * The id of the request that a response with this id answers: the very same id, or else the one with the same value.
   * @param known what the transport says that the response answers
   */
  take(id: JsonRpcId, known: JsonRpcId | undefined): JsonRpcId {
    if (this.#ids.delete(id)) return id;
    const other = idOfOtherType(id);
    if (other !== undefined && (this.#ids.delete(other) || other === known)) {
      this.#warnings.changed(id, other);
      return other;
    }
    if (id !== known && !this.#hasForgotten) this.#warnings.unknown(id);
    return id;
  }
}
