import type { ClientRequest, IncomingMessage } from 'node:http';

/** A redirect's own page is read to its end, to keep the connection, if it is not longer than this. */
const MAX_DRAINED_BYTES = 16 * 1024;

/** A refusal gives its reason in a few lines; of a longer one the beginning is enough. */
const MAX_HELD_BYTES = 64 * 1024;

/**
 * Reads the body of a refusal that may be handed over later. Resolves when the body has ended, broken off or become too
 * long.
 */
export function holdResponse(response: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let byteLength = 0;
    const settle = (): void => resolve(Buffer.concat(chunks));
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      byteLength += chunk.length;
      if (byteLength >= MAX_HELD_BYTES) response.destroy();
    });
    response.on('error', () => {});
    response.on('close', settle);
    response.on('end', settle);
  });
}

/** Gets rid of a response that nobody needs, and keeps its connection where that is cheap. */
export function discardResponse(message: ClientRequest, response: IncomingMessage): void {
  const length = Number(response.headers['content-length'] ?? Number.NaN);
  response.on('error', () => {});
  if (length <= MAX_DRAINED_BYTES && message.writableFinished) response.resume();
  else message.destroy();
}

/**
 * Ends a request that was answered before all of it had left. A server that does not read the rest would have it kept,
 * and its connection, for as long as it likes. [RFC 9112 9.5]
 */
export function stopSending(message: ClientRequest | undefined): void {
  if (message?.writableFinished === false) message.destroy();
}
