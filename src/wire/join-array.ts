const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

/** Several messages as one JSON array, their bytes untouched. */
export function joinArray(messages: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  for (const bytes of messages) parts.push(parts.length === 0 ? OPEN : COMMA, bytes);
  parts.push(CLOSE);
  return Buffer.concat(parts);
}
