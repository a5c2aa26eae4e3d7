/**
 * Takes from servers what the clients of the official SDKs take, so that everything above a link sees answers under the ids
 * that were sent, and a handshake in a revision that the server speaks.
 */
import type { Logger } from 'pino';
import { findOlderOffer } from '../mcp/classify/older-offer.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { readField } from '../mcp/vocabulary/payload.ts';
import { PARSE_ERROR } from '../mcp/vocabulary/rpc-codes.ts';
import type { Exchange } from '../relay/exchange.ts';
import type { ServerFault } from '../relay/ports.ts';
import { type Frame, hasPlainId, idOfOtherType, type JsonRpcId, withId } from '../wire/frame.ts';

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

export interface LinkRequestsOptions {
  readonly warnings: IdWarnings;
  readonly log: Logger;
  /** Sends a request to the server once more. */
  readonly send: (frame: Frame, exchange: Exchange | undefined) => void;
}

/** The requests of one link to a server, and which of them each response answers. */
export class LinkRequests {
  readonly #options: LinkRequestsOptions;
  readonly #awaited: AwaitedIds;
  /** The `initialize` that has no answer yet and has not been repeated. At most as large as a client's may be. */
  #initialize: Frame | undefined;
  #isRepeating = false;
  /**
   * An error without id may be about the latest notification until a request that was sent after it has been answered.
   * `next`: no request was sent since; undefined: there is no such notification.
   */
  #notified: 'next' | { readonly id: JsonRpcId } | undefined;

  constructor(options: LinkRequestsOptions) {
    this.#options = options;
    this.#awaited = new AwaitedIds(options.warnings);
  }

  /** A message is sent, whatever it is. */
  sent(frame: Frame): void {
    if (frame.kind === 'notification') this.#notified = 'next';
    if (frame.kind !== 'request' || frame.id === undefined) return;
    if (this.#notified === 'next') this.#notified = { id: frame.id };
    this.#awaited.add(frame.id);
    if (frame.method === INITIALIZE && !this.#isRepeating) this.#initialize = frame;
  }

  /**
   * The message of the server as it is passed on. Undefined: it is not, since the request it answers was sent again, or since
   * it answers a notification.
   * @param known the call that it is about, as the transport knows
   */
  received(frame: Frame, known: Exchange | undefined): Frame | undefined {
    if (!frame.isResponse) return frame;
    if (frame.id === undefined) return this.#answersNotification(frame) ? undefined : frame;
    const answer = this.#under(this.#awaited.take(frame.id, known?.id), frame);
    if (typeof this.#notified === 'object' && this.#notified.id === answer.id) this.#notified = undefined;
    return this.#initialize !== undefined && this.#isRepeated(this.#initialize, answer, known) ? undefined : answer;
  }

  /**
   * Some servers answer a notification as if it were a request that they do not know. Passed on, that error would be taken for
   * the answer to an open call. A notification can be read, so other errors are not about it.
   */
  #answersNotification(error: Frame): boolean {
    if (this.#notified === undefined || readField(error, 'code') === PARSE_ERROR) return false;
    this.#options.log.debug('skipped an error without id, which may answer a notification');
    return true;
  }

  /** The answer under the id that the request has. */
  #under(id: JsonRpcId, answer: Frame): Frame {
    if (id === answer.id) {
      if (hasPlainId(answer)) return answer;
      this.#options.warnings.changed(id, id);
    }
    return withId(answer, id);
  }

  /**
   * Some servers refuse a revision that they do not know instead of naming one that they do, and list those in the error.
   * [spec 2025-11-25 basic/lifecycle#error-handling] They are offered the newest of these, once.
   */
  #isRepeated(initialize: Frame, answer: Frame, known: Exchange | undefined): boolean {
    if (answer.id !== initialize.id) return false;
    this.#initialize = undefined;
    const older = answer.kind === 'error' ? findOlderOffer(initialize, readField(answer, 'data')) : undefined;
    if (older === undefined) return false;
    const { log, send } = this.#options;
    log.info(`the server refused MCP ${older.refused} and is offered ${older.revision}, which it lists`);
    this.#isRepeating = true;
    send(older.frame, known);
    this.#isRepeating = false;
    return true;
  }

  /** A message that could not be taken. */
  failed(fault: ServerFault): ServerFault {
    if (fault.id === undefined || fault.kind === 'request' || fault.kind === 'notification') return fault;
    const id = this.#awaited.take(fault.id, undefined);
    return id === fault.id ? fault : { ...fault, id };
  }
}
