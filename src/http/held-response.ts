import type { IncomingMessage } from 'node:http';

/** A refusal says why in a few lines; of a longer one the beginning will do. */
const MAX_HELD_BYTES = 64 * 1024;

/** Reads a response that may still be told to somebody. Resolves when it has ended, broken off or become too long. */
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
