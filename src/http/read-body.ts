import type { IncomingMessage } from 'node:http';
import { BridgeError } from '../errors.ts';
import { type BodyBudget, FREE_BODY_BYTES } from './body-budget.ts';

export interface BodyLimits {
  readonly maxMessageBytes: number;
  /** Shared by all bodies that are being read. */
  readonly bodies: BodyBudget;
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
  if (Number(request.headers['content-length'] ?? 0) > maxMessageBytes) return done(tooLarge(maxMessageBytes), EMPTY);
  const chunks: Buffer[] = [];
  let length = 0;
  let taken = 0;
  const onData = (chunk: Buffer): void => {
    length += chunk.length;
    if (length > maxMessageBytes) return refuse(tooLarge(maxMessageBytes));
    const wanted = Math.max(0, length - FREE_BODY_BYTES) - taken;
    if (!bodies.take(wanted, request)) return refuse(TOO_MANY);
    taken += wanted;
    chunks.push(chunk);
  };
  const onEnd = (): void => {
    stop();
    done(undefined, chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
  };
  const refuse = (error: BridgeError): void => {
    stop();
    chunks.length = 0;
    done(error, EMPTY);
  };
  const stop = (): void => {
    request.off('data', onData).off('end', onEnd).off('close', stop);
    bodies.give(taken, request);
    taken = 0;
  };
  request.on('data', onData).on('end', onEnd).on('close', stop);
}

const EMPTY = Buffer.alloc(0);

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  'Too many large messages are on their way in at the same time; send this one again later.',
  { retryAfterMs: 1000 },
);

function tooLarge(maxBytes: number): BridgeError {
  return new BridgeError(
    'ERR_WIRE_FRAME_TOO_LARGE',
    `The request body is larger than ${maxBytes} bytes; send less, or start mcp-portage with a larger --max-message-bytes.`,
  );
}
