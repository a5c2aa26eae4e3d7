import { Frame } from './frame.ts';
import { CLOSE_BRACE, OPEN_BRACE, SPACE } from './json/ascii.ts';
import { skipValue, skipWhitespace } from './json/scan-json.ts';
import { scanEnvelope } from './scan-envelope.ts';

/**
 * The messages in what was taken for one by its beginning and its end: some servers write from several threads, and now
 * and then two messages without a line end between them. For whom several clients wait, the second may be somebody
 * else's. Undefined: it is one message, as nearly always. What is no message is left out.
 */
export function separateMessages({ bytes }: Frame): readonly Frame[] | undefined {
  if (!hasSeam(bytes) || skipValue(bytes, 0) === bytes.length) return undefined;
  const frames: Frame[] = [];
  let start = 0;
  while (bytes[start] === OPEN_BRACE) {
    const end = skipValue(bytes, start);
    if (end === -1) break;
    const text = bytes.subarray(start, end);
    const envelope = scanEnvelope(text);
    if (envelope !== undefined) frames.push(new Frame(text, envelope));
    start = skipWhitespace(bytes, end);
  }
  return frames;
}

const NEAR_BYTES = 32;

/** In JSON `}{` and `} {` stand within strings only; what ended a line may have become a space. Native looks for `}`. */
function hasSeam(bytes: Buffer): boolean {
  const last = bytes.length - 1;
  for (let at = bytes.indexOf(CLOSE_BRACE); at !== -1 && at < last; at = bytes.indexOf(CLOSE_BRACE, at)) {
    // Where one brace is others are near, and a call for each would cost more than to look.
    for (const near = Math.min(at + NEAR_BYTES, last); at < near; at++) {
      if (bytes[at] !== CLOSE_BRACE) continue;
      const next = bytes[at + 1] === SPACE ? bytes[at + 2] : bytes[at + 1];
      if (next === OPEN_BRACE) return true;
    }
  }
  return false;
}
