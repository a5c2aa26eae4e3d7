import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { generate, type Packet } from 'mqtt-packet';
import { decodePacket } from '../../../src/mqtt/codec.ts';
import { MAX_HEADER_BYTES, PacketSplitter } from '../../../src/mqtt/packet-splitter.ts';
import { anySeed, havoc, pieces } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

interface Split {
  /** Packets as hexadecimal digits. */
  readonly packets: string[];
  /** Start, tail and size of the payload. */
  readonly oversized: [string, string, number][];
  readonly problems: string[];
}

function split(chunks: readonly Buffer[], limit: number): Split {
  const found: Split = { packets: [], oversized: [], problems: [] };
  const splitter = new PacketSplitter(
    {
      packet: (bytes) => {
        insist(bytes.length <= limit + MAX_HEADER_BYTES + 5, () => `a packet of ${bytes.length} bytes`);
        found.packets.push(bytes.toString('hex'));
      },
      oversized: ({ start, tail, payloadBytes }) => {
        found.oversized.push([start.toString('hex'), tail.toString('hex'), payloadBytes]);
      },
      malformed: (problem) => void found.problems.push(problem),
    },
    limit,
  );
  for (const chunk of chunks) splitter.push(chunk);
  return found;
}

const publish = fc.tuple(fc.nat(3000), fc.constantFrom(0, 1), fc.string({ minLength: 1, maxLength: 20 })).map(
  ([length, qos, topic]): Packet => ({
    cmd: 'publish',
    topic,
    payload: 'x'.repeat(length),
    dup: false,
    retain: false,
    properties: { userProperties: { a: 'b' } },
    ...(qos === 0 ? { qos: 0 } : { qos: 1, messageId: 7 }),
  }),
);
const others = fc.constantFrom<Packet>(
  { cmd: 'connack', sessionPresent: false, reasonCode: 0, properties: { receiveMaximum: 9 } },
  { cmd: 'puback', messageId: 1, reasonCode: 16 },
  { cmd: 'suback', messageId: 2, granted: [0, 0x87] },
  { cmd: 'pingresp' },
  { cmd: 'disconnect', reasonCode: 0x8b },
);
const packets = fc
  .array(fc.oneof(publish, others), { maxLength: 8 })
  .map((list) => Buffer.concat(list.map((packet) => generate(packet, { protocolVersion: 5 }))));
const stream = fc
  .tuple(packets, packets, anySeed, fc.nat(9))
  .map(([first, second, seed, luck]) => (luck < 3 ? first : havoc(first, seed, [second])));

export const mqtt = fuzzTarget({
  name: 'mqtt',
  promise:
    'what a broker sends is split alike however it is cut, within limits, and no packet is read with an exception',
  runs: 400,
  input: fc.tuple(stream, anySeed, fc.nat(3000)),
  holds: ([bytes, seed, limit]) => {
    const whole = split([Buffer.from(bytes)], limit);
    const cut = split(pieces(bytes, seed), limit);
    insist(isDeepStrictEqual(cut, whole), () => `${JSON.stringify(cut)}\nwhole: ${JSON.stringify(whole)}`);
    insist(whole.problems.length <= 1, () => 'something was read after a mistake');
    for (const packet of whole.packets) decodePacket(Buffer.from(packet, 'hex'));
    for (const [start] of whole.oversized) decodePacket(Buffer.from(start, 'hex'));
  },
});
