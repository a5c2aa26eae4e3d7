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
 * What came so far is handed on at once, for streams of events; and a body that ends early is read as far as it came, as
 * the `fetch` of Node and browsers do.
 */
const ZLIB: ZlibOptions = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI: BrotliOptions = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
};

/** Method 8 in the lower half of the first byte: DEFLATE in the format of zlib. [RFC 1950 2.2] */
const ZLIB_METHOD = 8;

/**
 * The content of a response whose body is packed, which no request asked for. Its size is limited by whoever reads it,
 * as that of any other body. Undefined: packed in a way that is not read here, or more than once.
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

/** An error of the response ends its content. Content that nobody reads to its end ends the response. */
function joined(response: IncomingMessage, unpacking: Unpacking): Readable {
  response.on('error', (cause) => unpacking.destroy(cause));
  unpacking.on('close', () => response.destroy());
  return response.pipe(unpacking);
}

/** Some servers mean DEFLATE alone by `deflate`, so the first byte decides. */
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
