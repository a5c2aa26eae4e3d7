/** Finds members of an object by their names. Keys are compared where they stand; see isStringToken. */
import { QUOTE } from './ascii.ts';
import { type Outline, visitMembers } from './outline.ts';
import { firstUnit, isStringToken, type Span } from './scan-json.ts';

/** The value of the first member called `key` in the object at `objectStart`. */
export function findMember(bytes: Buffer, objectStart: number, key: string, outline?: Outline): Span | undefined {
  let found: Span | undefined;
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    if (!isStringToken(bytes, keyStart, keyEnd, key)) return true;
    if (end !== -1) found = { start, end };
    return false;
  });
  return found;
}

/** A member that occurs twice is a `duplicate`; undefined: there is none. */
export type UniqueMember = Span | 'duplicate' | undefined;

/**
 * Like findMember, but reads the object to its end and says when the key occurs twice: parsers differ in which of the
 * two they take, so a check of one says nothing about what the other side will read.
 */
export function findUniqueMember(bytes: Buffer, objectStart: number, key: string, outline?: Outline): UniqueMember {
  let found: UniqueMember;
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    if (isStringToken(bytes, keyStart, keyEnd, key)) found = found === undefined ? spanOf(start, end) : 'duplicate';
    return found !== 'duplicate';
  });
  return found;
}

/** Finds several members as `findUniqueMember` does, in one walk; the answers are in the order of the keys. */
export function findUniqueMembers(
  bytes: Buffer,
  objectStart: number,
  keys: readonly string[],
  outline?: Outline,
): UniqueMember[] {
  const found: UniqueMember[] = keys.map(() => undefined);
  const candidates = byInitial(keys);
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    for (const index of candidates[Math.min(firstUnit(bytes, keyStart), BEYOND_ASCII)] ?? []) {
      if (!isStringToken(bytes, keyStart, keyEnd, keys[index] as string)) continue; // one of its indices
      found[index] = found[index] === undefined ? spanOf(start, end) : 'duplicate';
    }
    return true;
  });
  return found;
}

/** Stands for all first units of characters that are not ASCII. */
const BEYOND_ASCII = 0x80;

/** Which keys a key can be that begins with a unit: of many members few begin like one that is looked for. */
function byInitial(keys: readonly string[]): readonly (readonly number[] | undefined)[] {
  const table: (number[] | undefined)[] = Array.from({ length: BEYOND_ASCII + 1 });
  for (const [index, key] of keys.entries()) {
    // After the opening quote of the empty key comes the other one.
    const initial = key === '' ? QUOTE : Math.min(key.charCodeAt(0), BEYOND_ASCII);
    const indices = table[initial];
    if (indices === undefined) table[initial] = [index];
    else indices.push(index);
  }
  return table;
}

function spanOf(start: number, end: number): Span | undefined {
  return end === -1 ? undefined : { start, end };
}
