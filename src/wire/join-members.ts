const CLOSE = Buffer.from('}');
const EMPTY = Buffer.from('{}');

/** JSON texts as members of one object, in the order of the map. */
export function joinMembers(members: ReadonlyMap<string, Buffer>): Buffer {
  if (members.size === 0) return EMPTY;
  const parts: Buffer[] = [];
  for (const [key, value] of members) {
    parts.push(Buffer.from(`${parts.length === 0 ? '{' : ','}${JSON.stringify(key)}:`), value);
  }
  parts.push(CLOSE);
  return Buffer.concat(parts);
}
