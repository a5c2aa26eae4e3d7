/**
 * Where a message of the bench server belongs, found with as little as a pass-through can do: the id stands in the
 * first bytes, and a notification without one is the progress of the call whose id is its token. A real bridge cannot
 * count on either; this is what it is measured against.
 */
const HEAD = 96;

export function readRoute(line) {
  const head = line.toString('latin1', 0, Math.min(line.length, HEAD));
  let start = head.indexOf('"id":');
  if (start !== -1) return { key: head.slice(start + 5, head.indexOf(',', start + 5)), isLast: true };
  start = head.indexOf('"progressToken":');
  if (start === -1) return undefined;
  return { key: head.slice(start + 16, head.indexOf(',', start + 16)), isLast: false };
}
