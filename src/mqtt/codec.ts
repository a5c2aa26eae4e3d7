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

/** Writes a packet without copying its payload. Destroys the stream if the packet cannot be written. */
export function writePacket(packet: Packet, stream: Writable): void {
  writeToStream(packet, stream, VERSION);
}
