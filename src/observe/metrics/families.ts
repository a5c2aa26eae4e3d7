/**
 * Metrics in the text format of Prometheus: families of series, each stored under its label text. That text is composed
 * when a value is counted, where the key is needed anyway, so that a scrape has little left to do.
 */

/** The labels of one series in the text format; empty: it has none. */
export type LabelText = string;

export interface FamilyHead {
  readonly name: string;
  readonly help: string;
}

export interface Family extends FamilyHead {
  readonly type: string;
  /** Yields the lines of each series with their line breaks. Other values may be counted between two series. */
  series(): Iterable<string> | Promise<Iterable<string>>;
}

export class Counter implements Family {
  readonly type = 'counter';
  readonly name: string;
  readonly help: string;
  readonly #values = new Map<LabelText, number>();

  constructor({ name, help }: FamilyHead) {
    this.name = name;
    this.help = help;
  }

  add(labels: LabelText, value = 1): void {
    this.#values.set(labels, (this.#values.get(labels) ?? 0) + value);
  }

  *series(): Iterable<string> {
    for (const [labels, value] of this.#values) yield writeSample(this.name, labels, value);
  }
}

interface Distribution {
  /** Counts per bucket, not cumulative. */
  readonly counts: number[];
  count: number;
  sum: number;
}

export class Histogram implements Family {
  readonly type = 'histogram';
  readonly name: string;
  readonly help: string;
  readonly #bounds: readonly number[];
  readonly #distributions = new Map<LabelText, Distribution>();

  /** @param bounds the upper bounds of the buckets, in ascending order */
  constructor({ name, help }: FamilyHead, bounds: readonly number[]) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
  }

  observe(labels: LabelText, value: number): void {
    let known = this.#distributions.get(labels);
    if (known === undefined) {
      known = { counts: this.#bounds.map(() => 0), count: 0, sum: 0 };
      this.#distributions.set(labels, known);
    }
    const bucket = this.#bounds.findIndex((bound) => value <= bound);
    if (bucket >= 0) known.counts[bucket] = (known.counts[bucket] as number) + 1;
    known.count += 1;
    known.sum += value;
  }

  *series(): Iterable<string> {
    for (const [labels, distribution] of this.#distributions) yield this.#write(labels, distribution);
  }

  /** Writes all lines of a distribution at once, so that they agree with each other. */
  #write(labels: LabelText, { counts, count, sum }: Distribution): string {
    const begun = labels === '' ? '{' : `${labels.slice(0, -1)},`;
    let below = 0;
    const buckets = this.#bounds.map((bound, index) => {
      below += counts[index] as number;
      return writeSample(`${this.name}_bucket`, `${begun}le="${bound}"}`, below);
    });
    const all = writeSample(`${this.name}_bucket`, `${begun}le="+Inf"}`, count);
    return `${buckets.join('')}${all}${writeSample(`${this.name}_sum`, labels, sum)}${writeSample(`${this.name}_count`, labels, count)}`;
  }
}

/** Composes the label text. Undefined labels are left out, which Prometheus treats as empty. */
export function writeLabels(labels: Readonly<Record<string, string | number | undefined>>): LabelText {
  let text = '';
  for (const name in labels) {
    const value = labels[name];
    if (value !== undefined) text += `${text === '' ? '{' : ','}${name}="${escapeValue(`${value}`)}"`;
  }
  return text === '' ? text : `${text}}`;
}

export function writeSample(name: string, labels: LabelText, value: number): string {
  return `${name}${labels} ${writeValue(value)}\n`;
}

function writeValue(value: number): string {
  if (Number.isFinite(value)) return `${value}`;
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

const TO_ESCAPE = /["\\\n]/;

function escapeValue(value: string): string {
  return TO_ESCAPE.test(value) ? escapeText(value).replaceAll('"', '\\"') : value;
}

export function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
