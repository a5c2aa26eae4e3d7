/** The text format of Prometheus, written in slices: at full cardinality it has more lines than one turn of the event loop has time for. */
import { setImmediate as turn } from 'node:timers/promises';
import type * as Prom from 'prom-client';

/** Lines written in one turn of the event loop, which takes one or two milliseconds; other connections are served in between. */
export const LINES_PER_TURN = 200;
/** Label sets whose values are taken together: each has a line for every bucket. */
const SERIES_PER_PART = 20;

type Metric = Prom.Metric;

/** One metric in several parts, which are written one after the other under one head. */
export interface DividedMetric {
  readonly parts: readonly [Metric, ...Metric[]];
}

/**
 * A histogram of many label sets. The library makes objects of all lines of a histogram at once, so this is several of
 * them, with a few label sets each.
 */
export class DividedHistogram implements DividedMetric {
  readonly parts: [Prom.Histogram, ...Prom.Histogram[]];
  readonly #create: () => Prom.Histogram;
  readonly #partOf = new Map<string, Prom.Histogram>();

  constructor(prom: typeof Prom, configuration: Omit<Prom.HistogramConfiguration<string>, 'registers'>) {
    this.#create = () => new prom.Histogram({ ...configuration, registers: [] });
    this.parts = [this.#create()];
  }

  observe(labels: Partial<Record<string, string>>, value: number): void {
    const key = JSON.stringify(labels);
    let part = this.#partOf.get(key);
    if (part === undefined) {
      if (this.#partOf.size === this.parts.length * SERIES_PER_PART) this.parts.push(this.#create());
      part = this.parts.at(-1) ?? this.parts[0];
      this.#partOf.set(key, part);
    }
    part.observe(labels, value);
  }
}

/** The lines of these metrics, as the pieces of one text. */
export async function writeMetrics(metrics: readonly DividedMetric[]): Promise<readonly Buffer[]> {
  const pieces: Buffer[] = [];
  let lines: string[] = [];
  for (const { parts } of metrics) {
    for (const part of parts) {
      const { name, help, type, values } = await part.get();
      if (part === parts[0]) lines.push(`# HELP ${escapeText(name)} ${escapeText(help)}`, `# TYPE ${name} ${type}`);
      for (const { labels, value, metricName = name } of values as readonly Sample[]) {
        lines.push(`${metricName}${writeLabels(labels)} ${writeValue(value)}`);
        if (lines.length < LINES_PER_TURN) continue;
        pieces.push(Buffer.from(`${lines.join('\n')}\n`));
        lines = [];
        await turn();
      }
    }
    lines.push('');
  }
  pieces.push(Buffer.from(lines.join('\n')));
  return pieces;
}

interface Sample {
  readonly labels: Partial<Record<string, string | number>>;
  readonly value: number;
  /** Of a line that is one of several of its metric. */
  readonly metricName?: string;
}

function writeLabels(labels: Sample['labels']): string {
  const written = Object.entries(labels).map(
    ([name, value]) => `${name}="${escapeText(`${value}`).replaceAll('"', '\\"')}"`,
  );
  return written.length === 0 ? '' : `{${written.join()}}`;
}

function writeValue(value: number): string {
  if (Number.isFinite(value)) return `${value}`;
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
