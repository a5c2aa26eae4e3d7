import parsePrometheusText from 'parse-prometheus-text-format';

export type SampleLabels = Readonly<Record<string, string>>;

export interface Timed {
  readonly labels: SampleLabels;
  readonly count: number;
  readonly sum: number;
  /** Upper bound and count. */
  readonly buckets: readonly (readonly [bound: number, count: number])[];
}

/** What Prometheus would make of a page of metrics. */
export class Scrape {
  readonly types: ReadonlyMap<string, string>;
  readonly #samples = new Map<string, (readonly [labels: SampleLabels, value: number])[]>();

  constructor(text: string) {
    this.types = new Map(parsePrometheusText(text).map(({ name, type }) => [name, type]));
    // The parser makes one of all label sets of a histogram; without its header each line is a sample.
    const lines = text.replaceAll(/^# HELP (\S+) .*\n# TYPE \1 histogram\n/gm, '');
    for (const { name, metrics } of parsePrometheusText(lines)) {
      const found = metrics.map(({ labels = {}, value }) => [labels, Number(value)] as const);
      this.#samples.set(name, [...this.values(name), ...found]);
    }
  }

  /** Of a counter or a gauge. */
  values(name: string): readonly (readonly [labels: SampleLabels, value: number])[] {
    return this.#samples.get(name) ?? [];
  }

  /** Of a histogram. */
  timed(name: string): readonly Timed[] {
    const keyOf = ({ le: _, ...labels }: SampleLabels): string => JSON.stringify(labels);
    const sums = new Map(this.values(`${name}_sum`).map(([labels, sum]) => [keyOf(labels), sum]));
    const buckets = new Map<string, (readonly [number, number])[]>();
    for (const [labels, count] of this.values(`${name}_bucket`)) {
      const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le);
      buckets.set(keyOf(labels), [...(buckets.get(keyOf(labels)) ?? []), [bound, count]]);
    }
    return this.values(`${name}_count`).map(([labels, count]) => {
      const key = keyOf(labels);
      return { labels, count, sum: sums.get(key) ?? Number.NaN, buckets: buckets.get(key) ?? [] };
    });
  }
}
