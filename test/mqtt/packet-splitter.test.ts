import test from 'ava';
import { generate } from 'mqtt-packet';
import { decodePacket } from '../../src/mqtt/codec.ts';
import { MAX_HEADER_BYTES, type OversizedPacket, PacketSplitter } from '../../src/mqtt/packet-splitter.ts';

const MAX_MESSAGE_BYTES = 50_000;

function split(bytes: Buffer, chunkBytes: number) {
  const packets: Buffer[] = [];
  const oversized: OversizedPacket[] = [];
  const problems: string[] = [];
  const splitter = new PacketSplitter(
    {
      packet: (packet) => void packets.push(Buffer.from(packet)),
      oversized: (packet) => void oversized.push(packet),
      malformed: (problem) => void problems.push(problem),
    },
    MAX_MESSAGE_BYTES,
  );
  for (let at = 0; at < bytes.length; at += chunkBytes) splitter.push(bytes.subarray(at, at + chunkBytes));
  return { packets, oversized, problems };
}

const publish = (payload: string | Buffer, topic = 'a/b') =>
  generate(
    {
      cmd: 'publish',
      topic,
      payload,
      qos: 1,
      messageId: 7,
      dup: false,
      retain: false,
      properties: { userProperties: { a: 'b' } },
    },
    { protocolVersion: 5 },
  );
const WHOLE = 1024 * 1024;

for (const chunkBytes of [1, 2, 3, 7, WHOLE]) {
  test(`packets arrive whole, however they are cut (chunks of ${chunkBytes})`, (t) => {
    const sent = [generate({ cmd: 'pingresp' }), publish('x'), publish('y'.repeat(300)), generate({ cmd: 'pingresp' })];
    const { packets, problems } = split(Buffer.concat(sent), chunkBytes);
    t.deepEqual(packets, sent);
    t.deepEqual(problems, []);
  });

  test(`a message over the limit is reported by its ends, and what follows is read (chunks of ${chunkBytes})`, (t) => {
    const payload = Buffer.from(`{"id":1,${'x'.repeat(MAX_MESSAGE_BYTES + 100_000)},"end":true}`);
    const { packets, oversized } = split(Buffer.concat([publish(payload), publish('next')]), chunkBytes);
    t.is(packets.length, 1);
    t.is(oversized.length, 1);
    const [{ start, tail, payloadBytes } = { start: Buffer.alloc(0), tail: Buffer.alloc(0), payloadBytes: 0 }] =
      oversized;
    t.is(payloadBytes, payload.length);
    const packet = decodePacket(start);
    t.like(packet, { cmd: 'publish', topic: 'a/b', messageId: 7, properties: { userProperties: { a: 'b' } } });
    t.true(packet?.cmd === 'publish' && packet.payload.toString().startsWith('{"id":1,xxx'));
    t.true(tail.toString().endsWith('xxx,"end":true}'));
  });
}

test('a message of exactly the limit is whole, one byte more is too long', (t) => {
  t.is(split(publish('x'.repeat(MAX_MESSAGE_BYTES)), WHOLE).packets.length, 1);
  const { packets, oversized } = split(publish('x'.repeat(MAX_MESSAGE_BYTES + 1)), WHOLE);
  t.is(packets.length, 0);
  t.is(oversized[0]?.payloadBytes, MAX_MESSAGE_BYTES + 1);
});

test('a length without end is no MQTT, and nothing more is read', (t) => {
  const { packets, problems } = split(Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xd0, 0x00]), 1);
  t.deepEqual(packets, []);
  t.deepEqual(problems, ['a packet whose length has no end']);
});

test('a large packet that carries no message is refused before its bytes are kept', (t) => {
  const { problems } = split(Buffer.from([0x20, 0xff, 0xff, 0x7f]), WHOLE);
  t.is(problems.length, 1);
});

test('a header that is longer than that of any message of MCP is refused', (t) => {
  t.is(split(publish('x', 'a'.repeat(MAX_HEADER_BYTES)), 1000).problems.length, 1);
  // A length of properties that does not fit into the packet.
  t.is(split(Buffer.from([0x30, 0x07, 0x00, 0x01, 0x61, 0xff, 0xff, 0xff, 0x7f]), WHOLE).problems.length, 1);
});
