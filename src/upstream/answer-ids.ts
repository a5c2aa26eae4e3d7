/**
 * Accepts the irregular responses that clients of the official SDKs accept. Code above a link then sees answers under
 * the ids that were sent, and a handshake in a revision that the server speaks.
 */
import type { Logger } from 'pino';
import { findOlderOffer } from '../mcp/classify/older-offer.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { readField } from '../mcp/vocabulary/payload.ts';
import { PARSE_ERROR } from '../mcp/vocabulary/rpc-codes.ts';
import type { Call } from '../relay/call.ts';
import type { ServerFault } from '../relay/ports.ts';
import { type Frame, hasPlainId, idOfOtherType, type JsonRpcId, withId } from '../wire/frame.ts';

/** Warns once per server about irregular ids, since every answer of such a server has them. */
export class IdWarnings {
  readonly #name: string;
  readonly #log: Logger;
  #hasChanged = false;
  #hasUnknown = false;

  /** @param name name of the server */
  constructor(name: string, log: Logger) {
    this.#name = name;
    this.#log = log;
  }

  /** Warns that a response was matched by the value of its id, which was sent as `requested`. */
  changed(id: JsonRpcId, requested: JsonRpcId): void {
    if (this.#hasChanged) return;
    this.#hasChanged = true;
    const how = typeof id === typeof requested ? 'a number with a fraction or exponent' : `a ${typeof id}`;
    this.#log.warn(
      `Server "${this.#name}" changes the JSON type of ids: it answered a request whose id is a ${typeof requested} with ${how}. Its answers are found by their value; other clients may wait for them in vain, so report it to whoever maintains the server, or the gateway in front of it`,
    );
  }

  /** Warns that the id of a response belongs to no open request. */
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
 * Limit of a link's requests that may still be answered, including canceled ones. It exceeds what all clients of a
 * bridge may have open by default. Beyond it the oldest are dropped.
 */
const MAX_AWAITED = 16_384;
/** Longest id that is kept. Longer ones are not numbers and need no matching by value. */
const MAX_KEPT_LENGTH = 64;

/** The ids of a link's requests that have not been answered. */
export class AwaitedIds {
  readonly #warnings: IdWarnings;
  readonly #ids = new Set<JsonRpcId>();
  /** True once an id was not kept. From then on an unknown id may still belong to an open request. */
  #hasForgotten = false;

  constructor(warnings: IdWarnings) {
    this.#warnings = warnings;
  }

  /** Notes a request that is sent. */
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
   * Returns the id of the request that a response with this id answers: the identical id, or else the one with the same
   * value.
   * @param known id of the request that the response answers according to the transport
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
  readonly send: (frame: Frame, call: Call | undefined) => void;
}

/** Tracks the requests of one link to a server, and finds the request that each response answers. */
export class LinkRequests {
  readonly #options: LinkRequestsOptions;
  readonly #awaited: AwaitedIds;
  /**
   * The `initialize` request that has not been answered and not been repeated. Its size is limited like that of any
   * message from a client.
   */
  #initialize: Frame | undefined;
  #isRepeating = false;
  /**
   * State for errors without an id, which may be about the latest notification until a request sent after it has been
   * answered. `next` means that no request has been sent since; undefined means that there is no such notification.
   */
  #notified: 'next' | { readonly id: JsonRpcId } | undefined;

  constructor(options: LinkRequestsOptions) {
    this.#options = options;
    this.#awaited = new AwaitedIds(options.warnings);
  }

  /** Call this for each message that is sent. */
  sent(frame: Frame): void {
    if (frame.kind === 'notification') this.#notified = 'next';
    if (frame.kind !== 'request' || frame.id === undefined) return;
    if (this.#notified === 'next') this.#notified = { id: frame.id };
    this.#awaited.add(frame.id);
    if (frame.method === INITIALIZE && !this.#isRepeating) this.#initialize = frame;
  }

  /**
   * Returns the server's message as it is passed on. Returns undefined if it is dropped, because the request that it
   * answers has been sent again or because it answers a notification.
   * @param known the call that the message belongs to according to the transport
   */
  received(frame: Frame, known: Call | undefined): Frame | undefined {
    if (!frame.isResponse) return frame;
    if (frame.id === undefined) return this.#answersNotification(frame) ? undefined : frame;
    const answer = this.#under(this.#awaited.take(frame.id, known?.id), frame);
    if (typeof this.#notified === 'object' && this.#notified.id === answer.id) this.#notified = undefined;
    return this.#initialize !== undefined && this.#isRepeated(this.#initialize, answer, known) ? undefined : answer;
  }

  /**
   * True if an error without an id may answer a notification. Some servers treat a notification as an unknown request;
   * if passed on, such an error would be taken for the answer to an open call. A notification is always readable, so a
   * parse error is not about it.
   */
  #answersNotification(error: Frame): boolean {
    if (this.#notified === undefined || readField(error, 'code') === PARSE_ERROR) return false;
    this.#options.log.debug('skipped an error without id, which may answer a notification');
    return true;
  }

  /** Returns the answer with the id of the request. */
  #under(id: JsonRpcId, answer: Frame): Frame {
    if (id === answer.id) {
      if (hasPlainId(answer)) return answer;
      this.#options.warnings.changed(id, id);
    }
    return withId(answer, id);
  }

  /**
   * Repeats a rejected `initialize` with an older revision, once. Some servers reject an unknown revision instead of
   * offering one of theirs, and list their revisions in the error. [spec 2025-11-25 basic/lifecycle#error-handling] The
   * newest of these is offered.
   */
  #isRepeated(initialize: Frame, answer: Frame, known: Call | undefined): boolean {
    if (answer.id !== initialize.id) return false;
    this.#initialize = undefined;
    const older = answer.kind === 'error' ? findOlderOffer(initialize, readField(answer, 'data')) : undefined;
    if (older === undefined) return false;
    const { log, send } = this.#options;
    log.info(`the server refused MCP ${older.refused} and is now offered ${older.revision}, which it lists`);
    this.#isRepeating = true;
    send(older.frame, known);
    this.#isRepeating = false;
    return true;
  }

  /** Returns the fault with the id of the request that the unreadable message answers. */
  failed(fault: ServerFault): ServerFault {
    if (fault.id === undefined || fault.kind === 'request' || fault.kind === 'notification') return fault;
    const id = this.#awaited.take(fault.id, undefined);
    return id === fault.id ? fault : { ...fault, id };
  }
}
