import { CR, LF, SPACE } from './ascii.ts';

/**
 * Makes one line of a JSON text, in place: every CR and LF becomes a space. JSON strings hold neither raw, so in valid
 * JSON only the space between tokens changes. The caller must own the buffer. Returns it.
 */
export function toOneLine(bytes: Buffer): Buffer {
  const firstLf = bytes.indexOf(LF);
  const firstCr = bytes.indexOf(CR);
  if (firstLf === -1 && firstCr === -1) return bytes;
  const first = firstLf === -1 || (firstCr !== -1 && firstCr < firstLf) ? firstCr : firstLf;
  for (let at = first; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === LF || byte === CR) bytes[at] = SPACE;
  }
  return bytes;
}
