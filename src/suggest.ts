/**
 * Counts the edits that turn one word into the other: insert, delete, replace, or swap two neighbors, which are the
 * usual typing mistakes. The cost is the product of the lengths, so both words should be short.
 */
export function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let best = Math.min(
        at(previous, column) + 1,
        at(current, column - 1) + 1,
        at(previous, column - 1) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]) {
        best = Math.min(best, at(beforePrevious, column - 2) + 1);
      }
      current.push(best);
    }
    beforePrevious = previous;
    previous = current;
  }
  return at(previous, to.length);
}

/**
 * Returns the candidates that the user most likely meant: one at a distance of a single edit, or else those that
 * contain the word as a part (`timeout` → `session-timeout`, `request-timeout`), or else the nearest in spelling. Empty
 * if none is near.
 */
export function suggest(word: string, candidates: readonly string[]): readonly string[] {
  const wanted = word.toLowerCase();
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate);
    if (distance <= farthestSlip(wanted) && distance < (best?.distance ?? Infinity)) best = { candidate, distance };
  }
  const containing = candidates.filter((candidate) => `-${candidate}-`.includes(`-${wanted}-`)).slice(0, 3);
  if (best !== undefined && (best.distance <= 1 || containing.length === 0)) return [best.candidate];
  return containing;
}

/** Allows one edit for every three letters. A shorter word would be near to too many others, so none is allowed. */
function farthestSlip(word: string): number {
  return Math.floor(word.length / 3);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
