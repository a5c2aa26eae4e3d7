/**
 * Several clients share a server only as long as the server reads what the bridge has read. Some servers match the
 * names of members without regard to case (Go's encoding/json does), and of two members with one name some take the
 * first, some the last. A client that knows this could name an id of another client where the bridge sees none.
 */

import { classifyKey } from '../../wire/envelope-members.ts';
import type { Frame } from '../../wire/frame.ts';
import { BACKSLASH, OPEN_BRACE } from '../../wire/json/ascii.ts';
import { visitMembers } from '../../wire/json/outline.ts';
import { decodeString, type Span } from '../../wire/json/scan-json.ts';

const ENVELOPE_KEYS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);
/** `jsonrpc` with every letter as an escape of six characters, and its quotes. No longer token can be meant. */
const LONGEST_TOKEN = 6 * 'jsonrpc'.length + 2;
/** Sets the bit that makes a letter a small one. */
const CASE_BIT = 0x20;
const SMALL_A = 0x61;
const SMALL_Z = 0x7a;

/** Does the message have a member that some take for one of the envelope, but is none? */
export function hasLookAlike(frame: Frame): boolean {
  const { bytes, outline } = frame;
  let isFound = false;
  visitMembers(bytes, 0, outline, (keyStart, keyEnd) => {
    if (keyEnd - keyStart > LONGEST_TOKEN || classifyKey(bytes, keyStart, keyEnd) !== undefined) return true;
    const name = decodeString(bytes, keyStart, keyEnd);
    isFound = name !== undefined && ENVELOPE_KEYS.has(fold(name));
    return !isFound;
  });
  return isFound;
}

/** A member's value; undefined: there is none. `unclear`: several members can be taken for it, or the only one is not spelled like this. */
export type Unmistakable = Span | 'unclear' | undefined;

/** A message, or the bytes of one of which nothing else is known. */
type MessageText = Pick<Frame, 'bytes'> & Partial<Pick<Frame, 'outline'>>;

/** The value of the member called `key` in the object at `objectStart`. */
export function findUnmistakable({ bytes, outline }: MessageText, objectStart: number, key: string): Unmistakable {
  if (objectStart < 0 || bytes[objectStart] !== OPEN_BRACE) return undefined;
  let found: Unmistakable;
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    const likeness = compareKey(bytes, keyStart, keyEnd, key);
    if (likeness !== 'other') found = foundNext(found, likeness, start, end);
    return found !== 'unclear';
  });
  return found;
}

/** Does what `findUnmistakable` does for several keys at once; the values have the order of the keys. */
export function findAllUnmistakable(
  { bytes, outline }: MessageText,
  objectStart: number,
  keys: readonly string[],
): Unmistakable[] {
  const found: Unmistakable[] = keys.map(() => undefined);
  if (objectStart < 0 || bytes[objectStart] !== OPEN_BRACE) return found;
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    for (let index = 0; index < keys.length; index++) {
      const likeness = compareKey(bytes, keyStart, keyEnd, keys[index] as string); // index < length
      if (likeness !== 'other') found[index] = foundNext(found[index], likeness, start, end);
    }
    return true;
  });
  return found;
}

/** What is known of a key after another member that is, or looks like, the one it names. */
function foundNext(
  found: Unmistakable,
  likeness: Exclude<Likeness, 'other'>,
  start: number,
  end: number,
): Unmistakable {
  return likeness === 'look-alike' || found !== undefined ? 'unclear' : { start, end };
}

type Likeness = 'same' | 'look-alike' | 'other';

/**
 * What the key token bytes[start, end) is to `key`, which is ASCII. Decodes only if it must: up to the first byte that is
 * escaped or not ASCII each byte stands for itself, whatever follows.
 */
function compareKey(bytes: Buffer, start: number, end: number, key: string): Likeness {
  const length = end - start - 2;
  const shared = Math.min(length, key.length);
  let likeness: Likeness = 'same';
  for (let index = 0; index < shared; index++) {
    const byte = bytes[start + 1 + index] as number; // within the token
    if (byte === BACKSLASH || byte >= 0x80) return compareDecoded(bytes, start, end, key);
    const expected = key.charCodeAt(index);
    if (byte === expected) continue;
    if (!isOtherCase(byte, expected)) return 'other';
    likeness = 'look-alike';
  }
  return length === key.length ? likeness : 'other';
}

function isOtherCase(byte: number, expected: number): boolean {
  const small = byte | CASE_BIT;
  return (byte ^ expected) === CASE_BIT && small >= SMALL_A && small <= SMALL_Z;
}

function compareDecoded(bytes: Buffer, start: number, end: number, key: string): Likeness {
  if (end - start > 6 * key.length + 2) return 'other';
  const name = decodeString(bytes, start, end);
  if (name === undefined || fold(name) !== fold(key)) return 'other';
  return name === key ? 'same' : 'look-alike';
}

/** Upper case first: it makes an `S` of the long s, lower case makes a `k` of the Kelvin sign. */
function fold(key: string): string {
  return key.toUpperCase().toLowerCase();
}
