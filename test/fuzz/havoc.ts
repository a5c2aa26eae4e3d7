/** Damage as it happens, and as it is done on purpose. */
import fc from 'fast-check';
import { createRandom } from '../wire/json-text.ts';

/** What parsers trip over, wherever it stands. */
export const TOKENS: readonly Buffer[] = [
  ...['"', '\\', '\\"', '\\\\', '{', '}', '[', ']', ',', ':', '{}', '[]', '{"', '"}', '":', ',"'],
  ...['\n', '\r', '\r\n', '\n\n', '\r\n\r\n', '\0', ' ', '\t', '\v', '\ufeff', '\u2028', '\u0085', 'é', '😀'],
  ...['"id":', '"id":1,', '"\\u0069d":2,', '"jsonrpc":"2.0",', '"method":"x",', '"result":{},', '"error":{},'],
  ...['"params":{},', '"_meta":{},', '"progressToken":1,', '"requestId":1,', '"__proto__":{},', 'null', 'true'],
  ...['1e999', '-0', '1.0', '9007199254740993', '0x1', '1E400', '\\ud800', '\\u0000', '/**/', 'NaN'],
  ...['data: ', 'data:', 'id: ', 'event: ', 'retry: ', ': ', 'data: {}\n\n', 'id: \0\n', '=?base64?', '?='],
].map((token) => Buffer.from(token));
const BYTES = Buffer.of(0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0xf4, 0x90, 0x7f, 0x1f);

/** Between one and a few dozen damages, each follows from the seed. `others` lend parts of themselves. */
export function havoc(bytes: Buffer, seed: number, others: readonly Buffer[] = []): Buffer {
  const random = createRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[below(items.length)];
  const part = (whole: Buffer): Buffer => {
    const start = below(whole.length + 1);
    return whole.subarray(start, start + below(1 + Math.min(64, whole.length - start)));
  };
  let damaged: Buffer = Buffer.from(bytes);
  const replace = (at: number, length: number, by: Buffer): void => {
    damaged = Buffer.concat([damaged.subarray(0, at), by, damaged.subarray(at + length)]);
  };
  for (let left = 1 + below(random() < 0.7 ? 4 : 30); left > 0; left -= 1) {
    const at = below(damaged.length + 1);
    switch (below(8)) {
      case 0:
        replace(at, 1, Buffer.of(below(256)));
        break;
      case 1:
        if (at < damaged.length) replace(at, 1, Buffer.of((damaged[at] as number) ^ (1 << below(8))));
        break;
      case 2:
        replace(at, below(20), Buffer.alloc(0));
        break;
      case 3:
        replace(at, 0, part(damaged));
        break;
      case 4:
        replace(at, below(8), part(pick(others) ?? damaged));
        break;
      case 5:
        replace(at, 0, Buffer.of(BYTES[below(BYTES.length)] ?? 0));
        break;
      case 6:
        damaged = damaged.subarray(0, at);
        break;
      default:
        replace(at, below(4), pick(TOKENS) ?? Buffer.alloc(0));
    }
  }
  return damaged;
}

/** The same bytes in pieces whose sizes follow from the seed; each piece is memory of its own. */
export function pieces(bytes: Buffer, seed: number): Buffer[] {
  const random = createRandom(seed);
  const usual = 1 + Math.floor(random() * random() * 200);
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = random() < 0.05 ? 0 : 1 + Math.floor(random() * usual);
    found.push(Buffer.from(bytes.subarray(at, at + length)));
    at += length;
  }
  return found;
}

export const anySeed = fc.integer({ min: 0, max: 0x7fffffff });

/** `text`, mostly damaged. */
export function damaged(text: fc.Arbitrary<string>): fc.Arbitrary<Buffer> {
  return fc
    .tuple(text, text, anySeed, fc.integer({ min: 0, max: 9 }))
    .map(([first, second, seed, luck]) =>
      luck < 2 ? Buffer.from(first) : havoc(Buffer.from(first), seed, [Buffer.from(second)]),
    );
}
