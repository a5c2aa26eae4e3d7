export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** The median of the ratios of each round: a machine that is slow for a while is slow for both. */
export function medianRatio(values: readonly number[], others: readonly number[]): number {
  return median(values.slice(0, others.length).map((value, round) => value / (others[round] ?? Number.NaN)));
}

/** Of ratios, so that twice as much and half as much are equally far from no difference. */
export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}
