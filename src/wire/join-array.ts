import type { Frame } from './frame.ts';

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

/** Several messages as one JSON array, their bytes untouched. */
export function joinArray(frames: readonly Frame[]): Buffer {
  const parts: Buffer[] = [];
  for (const frame of frames) parts.push(parts.length === 0 ? OPEN : COMMA, frame.bytes);
  parts.push(CLOSE);
  return Buffer.concat(parts);
}
