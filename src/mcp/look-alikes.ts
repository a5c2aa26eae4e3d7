/**
 * Several clients share a server only as long as the server reads what the bridge has read. Some servers match the
 * names of members without regard to case (Go's encoding/json does), and of two members with one name some take the
 * first, some the last. A client that knows this could name an id of another client where the bridge sees none.
 */
import { BACKSLASH, OPEN_BRACE } from '../wire/ascii.ts';
import { classifyKey } from '../wire/envelope-members.ts';
import type { Frame } from '../wire/frame.ts';
import { decodeString, MemberCursor, type Span } from '../wire/scan-json.ts';

const ENVELOPE_KEYS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);
/** `jsonrpc` with every letter as an escape of six characters, and its quotes. No longer token can be meant. */
const LONGEST_TOKEN = 6 * 'jsonrpc'.length + 2;
/** Sets the bit that makes a letter a small one. */
const CASE_BIT = 0x20;

/** Does the message have a member that some take for one of the envelope, but is none? */
export function hasLookAlike(frame: Frame): boolean {
  const members = new MemberCursor(frame.bytes, 0);
  while (members.next()) {
    const { keyStart, keyEnd } = members;
    if (keyEnd - keyStart > LONGEST_TOKEN || classifyKey(frame.bytes, keyStart, keyEnd) !== undefined) continue;
    const name = decodeString(frame.bytes, keyStart, keyEnd);
    if (name !== undefined && ENVELOPE_KEYS.has(fold(name))) return true;
  }
  return false;
}

/**
 * The value of the member called `key` in the object at `objectStart`. `unclear`: several members can be taken for it,
 * or the only one is not spelled like this.
 */
export function findUnmistakable(bytes: Buffer, objectStart: number, key: string): Span | 'unclear' | undefined {
  if (objectStart < 0 || bytes[objectStart] !== OPEN_BRACE) return undefined;
  const folded = fold(key);
  const initial = folded.charCodeAt(0) | CASE_BIT;
  const longestToken = 6 * key.length + 2;
  const members = new MemberCursor(bytes, objectStart);
  let found: Span | undefined;
  while (members.next()) {
    if (!mayStartWith(initial, bytes[members.keyStart + 1]) || members.keyEnd - members.keyStart > longestToken)
      continue;
    const name = decodeString(bytes, members.keyStart, members.keyEnd);
    if (name === undefined || fold(name) !== folded) continue;
    if (name !== key || found !== undefined) return 'unclear';
    found = { start: members.valueStart, end: members.valueEnd() };
  }
  return found;
}

/** Most keys are told apart by their first byte; one that is escaped or not ASCII may be anything. */
function mayStartWith(initial: number, byte: number | undefined): boolean {
  return byte !== undefined && ((byte | CASE_BIT) === initial || byte === BACKSLASH || byte >= 0x80);
}

/** Upper case first: it makes an `S` of the long s, lower case makes a `k` of the Kelvin sign. */
function fold(key: string): string {
  return key.toUpperCase().toLowerCase();
}
