/** Statuses that pass: overload, a gateway without its server; 409: a server that has not noticed a break yet. */
const passing: ReadonlySet<number> = new Set([408, 409, 425, 429, 500, 502, 503, 504]);

/** May the same request fare better a while later? */
export function isPassing(status: number): boolean {
  return passing.has(status);
}
