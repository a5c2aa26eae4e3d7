import type { IncomingMessage } from 'node:http';
import { type CapacityShare, SharedCapacity } from '../../collections/shared-capacity.ts';
import { BridgeError } from '../../errors.ts';
import { ByteCollector } from '../../wire/byte-collector.ts';

export interface BodyLimits {
  readonly maxMessageBytes: number;
  /** Shared by all bodies that are being read. */
  readonly bodies: BodyBudget;
}

/** As with callers (http/auth/callers.ts), what is known of a request is a property of it. */
const BODY = Symbol('body');

type ProvidedRequest = IncomingMessage & { [BODY]?: Buffer };

/** The body has been read already, by somebody who did not serve the request after all. */
export function provideBody(request: IncomingMessage, body: Buffer): void {
  (request as ProvidedRequest)[BODY] = body;
}

/**
 * Collects a request body of at most `maxMessageBytes` and hands it over once. A declared length over the limit is
 * refused before a byte is read. A client that goes away midway gets no callback: there is nobody left to answer.
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
  /** Most bodies come in one chunk, which is kept as it is. */
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

/** Taken of every body without asking: most messages are no larger, and get in whoever else sends slowly. */
export const FREE_BODY_BYTES = 16 * 1024;
/** Largest messages that may be on their way in at the same time; a sender decides how long one takes. */
export const BODIES_AT_A_TIME = 16;

/** Whose a request is, where callers have several names: of one caller there may then be half of all. */
type CallerOf = ((request: IncomingMessage) => string) | undefined;

/**
 * What all messages that are still being read may hold together, whatever server they are for, as bodies of requests or
 * otherwise. Without it every connection could keep one message short of its last byte.
 */
export class BodyCapacity {
  readonly #bytes: SharedCapacity;
  readonly #byCaller = new Map<string, number>();

  constructor(maxMessageBytes: number) {
    this.#bytes = new SharedCapacity(BODIES_AT_A_TIME * maxMessageBytes);
  }

  /** The part of one server. */
  share(callerOf: CallerOf): BodyBudget {
    return new BodyBudget(this.#bytes.share(), this.#byCaller, callerOf);
  }
}

/** What the messages for one server that are still being read may hold. */
export class BodyBudget {
  readonly #share: CapacityShare;
  readonly #callerOf: CallerOf;
  /** For all servers together. */
  readonly #byCaller: Map<string, number>;
  #isClosed = false;

  constructor(share: CapacityShare, byCaller: Map<string, number>, callerOf: CallerOf) {
    this.#share = share;
    this.#byCaller = byCaller;
    this.#callerOf = callerOf;
  }

  /** The server is gone. Its part goes to the others when what is still being read for it has come to an end. */
  close(): void {
    this.#isClosed = true;
    if (this.#share.taken === 0) this.#share.close();
  }

  /** Held now, beyond what is free. */
  get bytes(): number {
    return this.#share.taken;
  }

  /** For the body of this request. False: that exceeds the limit. */
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

  /** For the messages of a connection that is kept, one after the other. */
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

/** A message that comes in on a connection in parts. */
export interface ArrivingMessage {
  /**
   * So much of it is here; 0: none is on its way, or nobody wants it any more.
   * @returns false: with those of others it exceeds the limit
   */
  holds(bytes: number): boolean;
}

/** Why a message was not read to its end. */
export const TOO_MANY_ARRIVE = new BridgeError(
  'ERR_SESSION_BUSY',
  'Too many large messages are being received at the same time; send this one again later.',
  { retryAfterMs: 1000 },
);
