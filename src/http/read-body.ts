import type { IncomingMessage } from 'node:http';
import { BridgeError } from '../errors.ts';

/**
 * Collects a request body of at most `maxBytes` and hands it over once. A declared length over the limit is refused
 * before a byte is read. A client that goes away midway gets no callback: there is nobody left to answer.
 */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  done: (error: BridgeError | undefined, body: Buffer) => void,
): void {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return done(tooLarge(maxBytes), EMPTY);
  const chunks: Buffer[] = [];
  let length = 0;
  const onData = (chunk: Buffer): void => {
    length += chunk.length;
    if (length > maxBytes) {
      stop();
      return done(tooLarge(maxBytes), EMPTY);
    }
    chunks.push(chunk);
  };
  const onEnd = (): void => {
    stop();
    done(undefined, chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
  };
  const stop = (): void => {
    request.off('data', onData).off('end', onEnd);
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
