/**
 * One end of a session of gRPC on a bare stream of HTTP/2, with the messages of the official library. That library reads on
 * whatever its user does, so that nobody is held back by it.
 */
import type { Readable } from 'node:stream';
import { prefixed } from '../downstream/grpc/raw-call.ts';
import { decodeLine, encodeLine } from './grpc-peers.ts';

/** A flag and a length before each message. [gRPC over HTTP2, Length-Prefixed-Message] */
const PREFIX_BYTES = 5;

/** A line as it is written to the stream. */
export const framedLine = (line: string): Buffer => prefixed(encodeLine(line));

export function onLine(stream: Readable, take: (line: string) => void): void {
  let parts: Buffer[] = [];
  let bytes = 0;
  let neededBytes = PREFIX_BYTES;
  stream.on('data', (chunk: Buffer) => {
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes < neededBytes) return;
    let rest = Buffer.concat(parts, bytes);
    for (;;) {
      neededBytes = rest.length < PREFIX_BYTES ? PREFIX_BYTES : PREFIX_BYTES + rest.readUInt32BE(1);
      if (rest.length < neededBytes) break;
      take(decodeLine(rest.subarray(PREFIX_BYTES, neededBytes)));
      rest = rest.subarray(neededBytes);
    }
    parts = [rest];
    bytes = rest.length;
  });
}
