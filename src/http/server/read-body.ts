import type { IncomingMessage } from 'node:http';
import { type CapacityShare, SharedCapacity } from '../../collections/shared-capacity.ts';
import { BridgeError } from '../../errors.ts';
import { ByteCollector } from '../../wire/byte-collector.ts';

export interface BodyLimits {
  readonly maxMessageBytes: number;
  /** Shared by all bodies that are being read. */
  readonly bodies: BodyBudget;
}

/** A body that was already read is stored as a property of the request, like its caller (http/auth/callers.ts). */
const BODY = Symbol('body');

type ProvidedRequest = IncomingMessage & { [BODY]?: Buffer };

/** Provides a body that was already read by code that then did not serve the request. */
export function provideBody(request: IncomingMessage, body: Buffer): void {
  (request as ProvidedRequest)[BODY] = body;
}

/**
 * Collects a request body of at most `maxMessageBytes` and calls `done` once. A declared length over the limit is
 * rejected before a byte is read. If the client disconnects midway, `done` is not called, because no response can be
 * sent.
 */
export function readBody(
  request: IncomingMessage,
  { maxMessageBytes, bodies }: BodyLimits,
  done: (error: BridgeError | undefined, body: Buffer) => void,
): void {
  const provided = (request as ProvidedRequest)[BODY];
  if (provided !== undefined) {
    return provided.length > maxMessageBytes ? done(tooLarge(maxMessageBytes), EMPTY) : done(undefined, provided);
  }
  if (Number(request.headers['content-length'] ?? 0) > maxMessageBytes) return done(tooLarge(maxMessageBytes), EMPTY);
  /** The body, while it has a single chunk. Most bodies do, and need no copy. */
  let only: Buffer | undefined;
  const chunks = new ByteCollector();
  let length = 0;
  let taken = 0;
  const onData = (chunk: Buffer): void => {
    length += chunk.length;
    if (length > maxMessageBytes) return refuse(tooLarge(maxMessageBytes));
    const wanted = Math.max(0, length - FREE_BODY_BYTES) - taken;
    if (wanted > 0) {
      if (!bodies.take(wanted, request)) return refuse(TOO_MANY_ARRIVE);
      if (taken === 0) request.on('close', giveBack);
      taken += wanted;
    }
    if (length === chunk.length) only = chunk;
    else {
      if (only !== undefined) chunks.append(only);
      only = undefined;
      chunks.append(chunk);
    }
  };
  const onEnd = (): void => {
    giveBack();
    done(undefined, only ?? chunks.take());
  };
  const refuse = (error: BridgeError): void => {
    request.off('data', onData).off('end', onEnd);
    giveBack();
    only = undefined;
    chunks.clear();
    done(error, EMPTY);
  };
  const giveBack = (): void => {
    bodies.give(taken, request);
    taken = 0;
  };
  request.on('data', onData).on('end', onEnd);
}

const EMPTY = Buffer.alloc(0);

function tooLarge(maxBytes: number): BridgeError {
  return new BridgeError(
    'ERR_WIRE_FRAME_TOO_LARGE',
    `The request body is larger than ${maxBytes} bytes; send less, or start mcp-portage with a larger --max-message-bytes.`,
  );
}

/**
 * Bytes of each body that count toward no limit. Most messages are smaller, and are accepted even while others send
 * large ones slowly.
 */
export const FREE_BODY_BYTES = 16 * 1024;
/**
 * Number of messages of the largest size that may be received at the same time; the sender decides how long one takes.
 */
export const BODIES_AT_A_TIME = 16;

/**
 * Returns the caller of a request. Undefined if callers do not have different names; otherwise one caller may hold at
 * most half of the capacity.
 */
type CallerOf = ((request: IncomingMessage) => string) | undefined;

/**
 * Limit of memory for all messages that are being received, for all servers, as request bodies or on other connections.
 * Without it every connection could hold a message that lacks its last byte.
 */
export class BodyCapacity {
  readonly #bytes: SharedCapacity;
  readonly #byCaller = new Map<string, number>();

  constructor(maxMessageBytes: number) {
    this.#bytes = new SharedCapacity(BODIES_AT_A_TIME * maxMessageBytes);
  }

  /** Returns the part of one server. */
  share(callerOf: CallerOf): BodyBudget {
    return new BodyBudget(this.#bytes.share(), this.#byCaller, callerOf);
  }
}

/** The part of the BodyCapacity that a single server may use. */
export class BodyBudget {
  readonly #share: CapacityShare;
  readonly #callerOf: CallerOf;
  /** Bytes held by each caller, for all servers together. */
  readonly #byCaller: Map<string, number>;
  #isClosed = false;

  constructor(share: CapacityShare, byCaller: Map<string, number>, callerOf: CallerOf) {
    this.#share = share;
    this.#byCaller = byCaller;
    this.#callerOf = callerOf;
  }

  /** Called when the server is gone. Its part is released to the others once all messages for it have ended. */
  close(): void {
    this.#isClosed = true;
    if (this.#share.taken === 0) this.#share.close();
  }

  /** Bytes held now, without the free ones. */
  get bytes(): number {
    return this.#share.taken;
  }

  /** Takes bytes for the body of this request. Returns false if that exceeds the limit. */
  take(bytes: number, request: IncomingMessage): boolean {
    return bytes === 0 || this.#take(bytes, this.#callerOf?.(request));
  }

  #take(bytes: number, caller: string | undefined): boolean {
    if (!this.#share.fits(bytes)) return false;
    if (caller !== undefined && !this.#takeFor(caller, bytes)) return false;
    this.#share.take(bytes);
    return true;
  }

  #takeFor(caller: string, bytes: number): boolean {
    const held = (this.#byCaller.get(caller) ?? 0) + bytes;
    if (held > this.#share.total / 2) return false;
    this.#byCaller.set(caller, held);
    return true;
  }

  give(bytes: number, request: IncomingMessage): void {
    if (bytes > 0) this.#give(bytes, this.#callerOf?.(request));
  }

  #give(bytes: number, caller: string | undefined): void {
    this.#share.give(bytes);
    if (this.#isClosed && this.#share.taken === 0) this.#share.close();
    if (caller === undefined) return;
    const held = (this.#byCaller.get(caller) ?? 0) - bytes;
    if (held > 0) this.#byCaller.set(caller, held);
    else this.#byCaller.delete(caller);
  }

  /** Accounts for the messages of a persistent connection, one after the other. */
  forConnection(callerName: string): ArrivingMessage {
    const caller = this.#callerOf === undefined ? undefined : callerName;
    let taken = 0;
    return {
      holds: (bytes) => {
        const wanted = Math.max(0, bytes - FREE_BODY_BYTES);
        if (wanted > taken && !this.#take(wanted - taken, caller)) return false;
        if (wanted < taken) this.#give(taken - wanted, caller);
        taken = wanted;
        return true;
      },
    };
  }
}

/** A message that arrives on a connection in parts. */
export interface ArrivingMessage {
  /**
   * Sets the number of bytes held of the message; 0 if none is incomplete, or if it was dropped.
   *
   * @returns false if the limit is exceeded
   */
  holds(bytes: number): boolean;
}

/** The error for a message that was not read to its end. */
export const TOO_MANY_ARRIVE = new BridgeError(
  'ERR_SESSION_BUSY',
  'Too many large messages are being received at the same time; send this one again later.',
  { retryAfterMs: 1000 },
);
