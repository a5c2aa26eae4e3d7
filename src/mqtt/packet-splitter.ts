import { ByteCollector, KEPT_END_BYTES, ownBytes, SkippedBytes } from '../wire/byte-collector.ts';

/** Longest fixed header: the type, and the remaining length in four bytes. [MQTT 5 2.1.4] */
const MAX_FIXED_HEADER_BYTES = 5;
/**
 * Longest variable header of a PUBLISH, and longest packet of any other type. A topic may have 64 KiB by itself, but those of
 * MCP and the properties of a broker that means well are much shorter.
 */
export const MAX_HEADER_BYTES = 32 * 1024;

const PUBLISH = 3;
const TYPE_SHIFT = 4;
const FLAGS = 0b1111;
const QOS_BITS = 0b110;
const QOS_2_BIT = 0b100;
const CONTINUES = 0x80;

/** Called by PacketSplitter, synchronously from `push`. */
export interface PacketSink {
  /** Receives a whole packet, whose bytes the receiver owns. */
  packet(bytes: Buffer): void;
  /** A PUBLISH was too long and was dropped, except for its ends. */
  oversized(packet: OversizedPacket): void;
  /** The bytes are no MQTT. Nothing more is read. */
  malformed(problem: string): void;
}

/** A PUBLISH whose payload was too long to keep. */
export interface OversizedPacket {
  /** The packet with the beginning of its payload only, and with a length that fits that. */
  readonly start: Buffer;
  /** The end of its payload. */
  readonly tail: Buffer;
  readonly payloadBytes: number;
}

/**
 * - `header`: the fixed header is incomplete; `bytes` of it have arrived.
 * - `body`: the packet is kept until it is whole.
 * - `skipping`: the packet is too long, and only its beginning and end are kept.
 * - `failed`: what arrives is ignored.
 */
type SplitterState =
  | { readonly kind: 'header'; readonly bytes: Buffer }
  | { readonly kind: 'body'; readonly parts: ByteCollector; missing: number }
  | {
      readonly kind: 'skipping';
      readonly first: number;
      readonly start: ByteCollector;
      readonly rest: SkippedBytes;
      missing: number;
    }
  | { readonly kind: 'failed' };

const NOTHING = Buffer.alloc(0);

/**
 * Splits what a broker sends into packets. A packet inside one chunk is not copied. Memory is limited to the longest message
 * and one chunk, whatever length a packet announces.
 */
export class PacketSplitter {
  readonly #sink: PacketSink;
  readonly #maxMessageBytes: number;
  #state: SplitterState = { kind: 'header', bytes: NOTHING };

  constructor(sink: PacketSink, maxMessageBytes: number) {
    this.#sink = sink;
    this.#maxMessageBytes = maxMessageBytes;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0 && this.#state.kind !== 'failed') rest = this.#take(rest);
  }

  /** Takes the beginning of the bytes, and returns what is left of them. */
  #take(bytes: Buffer): Buffer {
    const state = this.#state;
    switch (state.kind) {
      case 'header':
        return this.#takeHeader(state.bytes, bytes);
      case 'body': {
        const part = bytes.subarray(0, state.missing);
        state.parts.append(part);
        state.missing -= part.length;
        if (state.missing === 0) this.#whole(state.parts.take());
        return bytes.subarray(part.length);
      }
      case 'skipping': {
        const part = bytes.subarray(0, state.missing);
        state.missing -= part.length;
        const wanted = Math.max(0, MAX_HEADER_BYTES + KEPT_END_BYTES - state.start.byteLength);
        if (wanted > 0) state.start.append(ownBytes(part.subarray(0, wanted)));
        state.rest.append(part);
        if (state.missing === 0) this.#skipped(state.first, state.start.take(), state.rest);
        return bytes.subarray(part.length);
      }
      case 'failed':
        return NOTHING;
    }
  }

  #takeHeader(known: Buffer, bytes: Buffer): Buffer {
    const header = known.length === 0 ? bytes : Buffer.concat([known, bytes.subarray(0, MAX_FIXED_HEADER_BYTES)]);
    const [first = 0] = header;
    const isPublish = first >> TYPE_SHIFT === PUBLISH;
    // The flags of other types are fixed, and QoS 2 is not subscribed to. So text is told from packets by its first byte.
    if (isPublish ? (first & QOS_2_BIT) !== 0 : (first & FLAGS) !== 0) {
      this.#fail('bytes that are not MQTT');
      return NOTHING;
    }
    const length = readVariableInteger(header, 1);
    if (length === 'incomplete') {
      this.#state = { kind: 'header', bytes: ownBytes(header.subarray(0, MAX_FIXED_HEADER_BYTES)) };
      return NOTHING;
    }
    if (length === 'too-long') {
      this.#fail('a packet whose length has no end');
      return NOTHING;
    }
    const wholeBytes = length.end + length.value;
    const rest = bytes.subarray(length.end - known.length);
    if (!isPublish && length.value > MAX_HEADER_BYTES) {
      this.#fail(`a packet of ${wholeBytes} bytes that carries no message`);
      return NOTHING;
    }
    if (known.length === 0 && bytes.length >= wholeBytes) {
      this.#whole(bytes.subarray(0, wholeBytes));
      return bytes.subarray(wholeBytes);
    }
    if (length.value > this.#maxMessageBytes + MAX_HEADER_BYTES) {
      const kept = { first, start: new ByteCollector(), rest: new SkippedBytes() };
      this.#state = { kind: 'skipping', ...kept, missing: length.value };
      return rest;
    }
    const parts = new ByteCollector();
    parts.append(ownBytes(header.subarray(0, length.end)));
    this.#state = { kind: 'body', parts, missing: length.value };
    if (length.value === 0) this.#whole(parts.take());
    return rest;
  }

  #whole(packet: Buffer): void {
    this.#state = { kind: 'header', bytes: NOTHING };
    const [first = 0] = packet;
    if (first >> TYPE_SHIFT !== PUBLISH) return this.#sink.packet(packet);
    const length = readVariableInteger(packet, 1);
    if (typeof length === 'string') return;
    const headerBytes = headerBytesOf(first, packet.subarray(length.end));
    if (headerBytes === undefined || headerBytes > MAX_HEADER_BYTES) return this.#fail(BAD_HEADER);
    const payloadBytes = length.value - headerBytes;
    if (payloadBytes <= this.#maxMessageBytes) return this.#sink.packet(packet);
    const body = packet.subarray(length.end);
    const start = body.subarray(0, headerBytes + KEPT_END_BYTES);
    this.#sink.oversized({ start: packetOf(first, start), tail: body.subarray(-KEPT_END_BYTES), payloadBytes });
  }

  #skipped(first: number, start: Buffer, { tail, byteLength }: SkippedBytes): void {
    this.#state = { kind: 'header', bytes: NOTHING };
    const headerBytes = headerBytesOf(first, start);
    if (headerBytes === undefined || headerBytes > MAX_HEADER_BYTES) return this.#fail(BAD_HEADER);
    const kept = packetOf(first, start.subarray(0, headerBytes + KEPT_END_BYTES));
    this.#sink.oversized({ start: kept, tail, payloadBytes: byteLength - headerBytes });
  }

  #fail(problem: string): void {
    this.#state = { kind: 'failed' };
    this.#sink.malformed(problem);
  }
}

const BAD_HEADER = 'a message whose header is unreadable or longer than is allowed';

/** Length of the variable header of a PUBLISH; undefined: it is incomplete. [MQTT 5 3.3.2] */
function headerBytesOf(first: number, body: Buffer): number | undefined {
  if (body.length < 2) return undefined;
  const afterTopic = 2 + body.readUInt16BE(0) + ((first & QOS_BITS) === 0 ? 0 : 2);
  const properties = readVariableInteger(body, afterTopic);
  return typeof properties === 'string' ? undefined : properties.end + properties.value;
}

function packetOf(first: number, body: Buffer): Buffer {
  const length: number[] = [];
  for (let rest = body.length; ; rest >>= 7) {
    const isLast = rest < CONTINUES;
    length.push((rest & 0x7f) | (isLast ? 0 : CONTINUES));
    if (isLast) break;
  }
  return Buffer.concat([Buffer.of(first, ...length), body]);
}

type VariableInteger = { readonly value: number; readonly end: number } | 'incomplete' | 'too-long';

/** [MQTT 5 1.5.5] */
function readVariableInteger(bytes: Buffer, start: number): VariableInteger {
  let value = 0;
  for (let index = 0; index < 4; index += 1) {
    const byte = bytes[start + index];
    if (byte === undefined) return 'incomplete';
    value += (byte & 0x7f) * 128 ** index;
    if ((byte & CONTINUES) === 0) return { value, end: start + index + 1 };
  }
  return 'too-long';
}
