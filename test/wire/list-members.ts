import { MemberCursor, type TakeMember } from '../../src/wire/json/scan-json.ts';

/** All that is told of an object's members. */
export interface ListedMembers {
  /** Key's start and end, value's start and end. */
  readonly offsets: readonly (readonly [number, number, number, number])[];
  readonly objectEnd: number;
}

/** Undefined: there was nothing to be visited. */
export function listVisited(visit: (take: TakeMember) => number | undefined): ListedMembers | undefined {
  const offsets: [number, number, number, number][] = [];
  const objectEnd = visit((...member) => offsets.push(member) > 0);
  return objectEnd === undefined ? undefined : { offsets, objectEnd };
}

/** The members that a cursor finds at `start`. */
export function listMembers(bytes: Buffer, start: number): ListedMembers {
  const members = new MemberCursor(bytes, start);
  const offsets: [number, number, number, number][] = [];
  while (members.next()) offsets.push([members.keyStart, members.keyEnd, members.valueStart, members.valueEnd()]);
  return { offsets, objectEnd: members.objectEnd };
}

/** Where the object at `start` stands, and those that are values of its members, down to a level; found by walking. */
export function objectsDownTo(level: number, bytes: Buffer, start = 0): readonly number[] {
  if (level === 0 || bytes[start] !== 0x7b) return [];
  const { offsets } = listMembers(bytes, start);
  return [start, ...offsets.flatMap(([, , valueStart]) => objectsDownTo(level - 1, bytes, valueStart))];
}
