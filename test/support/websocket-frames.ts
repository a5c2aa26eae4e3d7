/** Frames as a client sends them, or as none may: a test decides every bit. [RFC 6455 5.2] */
import { RawSocket } from './raw-socket.ts';

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface FrameBits {
  readonly opcode?: number;
  readonly fin?: boolean;
  readonly reserved?: number;
  readonly masked?: boolean;
  /** What the frame says its length is; default: the truth. */
  readonly length?: number;
}

export function frame(payload: string | Buffer, bits: FrameBits = {}): Buffer {
  const { opcode = OPCODES.text, fin = true, reserved = 0, masked = true } = bits;
  const data = Buffer.from(payload);
  const length = bits.length ?? data.length;
  const mask = Buffer.of(0x12, 0x34, 0x56, 0x78);
  const first = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  const maskBit = masked ? 0x80 : 0;
  const long = Buffer.alloc(8);
  long.writeBigUInt64BE(BigInt(length));
  const head =
    length < 126
      ? Buffer.of(first, maskBit | length)
      : length < 65536
        ? Buffer.of(first, maskBit | 126, length >> 8, length & 0xff)
        : Buffer.concat([Buffer.of(first, maskBit | 127), long]);
  if (!masked) return Buffer.concat([head, data]);
  return Buffer.concat([head, mask, data.map((byte, index) => byte ^ (mask[index % 4] as number))]);
}

/** A connection past its handshake, on which nothing but what the test writes goes out. */
export async function openRawWebSocket(port: number, path = '/ws'): Promise<RawSocket> {
  const raw = (await RawSocket.connect(port)).read();
  raw.request('GET', path, {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol': 'mcp',
  });
  await raw.until(/\r\n\r\n/);
  return raw;
}

/** The close frame that ends what the other side has sent; undefined: there is none. */
export function closeFrameIn(received: string): { readonly code: number; readonly reason: string } | undefined {
  const bytes = Buffer.from(received.slice(received.indexOf('\r\n\r\n') + 4), 'latin1');
  let at = 0;
  while (at + 2 <= bytes.length) {
    const opcode = (bytes[at] as number) & 0x0f;
    const short = (bytes[at + 1] as number) & 0x7f;
    const [length, start] =
      short < 126
        ? [short, at + 2]
        : short === 126
          ? [bytes.readUInt16BE(at + 2), at + 4]
          : [Number(bytes.readBigUInt64BE(at + 2)), at + 10];
    if (opcode === OPCODES.close) {
      if (length < 2) return { code: 1005, reason: '' };
      return { code: bytes.readUInt16BE(start), reason: bytes.toString('utf8', start + 2, start + length) };
    }
    at = start + length;
  }
  return undefined;
}
