/** MQTT 5 packets as values and as bytes. The package does no more than this, and keeps nothing. */
import type { Writable } from 'node:stream';
import { type Packet, parser, writeToStream } from 'mqtt-packet';

export type { Packet } from 'mqtt-packet';

const VERSION = { protocolVersion: 5 } as const;
// Without this, the package makes 65,536 buffers of all two-byte numbers with its first packet.
writeToStream.cacheNumbers = false;

/** Reads one whole packet; undefined: it is malformed. */
export function decodePacket(bytes: Buffer): Packet | undefined {
  let read: Packet | undefined;
  try {
    const packets = parser(VERSION);
    packets.on('packet', (packet) => {
      read = packet;
    });
    packets.on('error', () => {});
    return packets.parse(bytes) === 0 ? read : undefined;
  } catch {
    // The package reads behind the end of some malformed packets.
    return undefined;
  }
}

/** Larger payloads are written without a copy. */
const JOIN_BELOW_BYTES = 16 * 1024;

/**
 * Writes a packet. What is written in one turn of the event loop leaves together. Destroys the stream if the packet cannot be
 * written.
 */
export function writePacket(packet: Packet, stream: Writable): void {
  const parts = new Parts(stream);
  writeToStream(packet, parts as unknown as Writable, VERSION);
  if (stream.destroyed) return;
  stream.cork();
  for (const part of parts.joined()) stream.write(part);
  process.nextTick(uncork, stream);
}

function uncork(stream: Writable): void {
  stream.uncork();
}

/** Collects the many small parts in which the package writes a packet, each of which would cost a socket more than its bytes. */
class Parts {
  readonly #stream: Writable;
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  write(part: Buffer | string): boolean {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    this.#parts.push(bytes);
    this.#bytes += bytes.length;
    return true;
  }

  destroy(error: Error): void {
    this.#stream.destroy(error);
  }

  /** A large payload is the last part. */
  joined(): readonly Buffer[] {
    if (this.#bytes < JOIN_BELOW_BYTES) return [Buffer.concat(this.#parts, this.#bytes)];
    return [Buffer.concat(this.#parts.slice(0, -1)), ...this.#parts.slice(-1)];
  }
}
