import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import {
  type BrotliOptions,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type ZlibOptions,
} from 'node:zlib';

/**
 * Decompressed bytes are passed on at once, because event streams cannot wait for a whole block. A body that ends early
 * is read up to that point, as `fetch` does in Node and in browsers.
 */
const ZLIB: ZlibOptions = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI: BrotliOptions = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
};

/** Method 8 in the lower half of the first byte means DEFLATE in the zlib format. [RFC 1950 2.2] */
const ZLIB_METHOD = 8;

/**
 * Returns the decompressed body of a response, although no request asks for compression. Returns undefined for an
 * unsupported encoding and for several encodings in a row. The reader limits the size, as for any other body.
 */
export function unpack(response: IncomingMessage, packing: string): Readable | undefined {
  switch (packing.trim().toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return joined(response, createGunzip(ZLIB));
    case 'br':
      return joined(response, createBrotliDecompress(BROTLI));
    case 'deflate':
      return inflated(response);
    default:
      return undefined;
  }
}

type Unpacking = ReturnType<typeof createGunzip | typeof createBrotliDecompress>;

/**
 * Pipes a response through a decompressor. An error of the response destroys the decompressor. A reader that stops
 * early destroys both, so the response ends as well.
 */
function joined(response: IncomingMessage, unpacking: Unpacking): Readable {
  response.on('error', (cause) => unpacking.destroy(cause));
  unpacking.on('close', () => response.destroy());
  return response.pipe(unpacking);
}

/** Decompresses `deflate`. Some servers send raw DEFLATE without the zlib format, so the first byte decides. */
function inflated(response: IncomingMessage): Readable {
  const content = new PassThrough();
  const fail = (cause: Error): void => void content.destroy(cause);
  const finish = (): void => void content.end();
  response.on('error', fail);
  response.once('end', finish);
  response.once('data', (first: Buffer) => {
    response.off('end', finish);
    response.pause();
    const isZlib = ((first[0] ?? 0) & 0x0f) === ZLIB_METHOD;
    const unpacking = isZlib ? createInflate(ZLIB) : createInflateRaw(ZLIB);
    unpacking.on('error', fail);
    unpacking.write(first);
    joined(response, unpacking).pipe(content);
    content.on('close', () => unpacking.destroy());
  });
  return content;
}
