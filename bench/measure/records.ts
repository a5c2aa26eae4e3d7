/** The figures of one run, round by round, and what came of each attempt to get them. */
/**
 * cpu: microseconds of processor time of the bridge's own process, for each call. p50Ms of a start or of an opening
 * session is its length. blockMs is how long the event loop stood still at most, blockFloors the same in looks at 16 MiB.
 */
export const METRICS = [
  'cpu',
  'callsPerSecond',
  'p50Ms',
  'p99Ms',
  'rssMiB',
  'blockMs',
  'blockFloors',
  'installedMiB',
  'packages',
] as const;
export type Metric = (typeof METRICS)[number];

export interface Figure {
  readonly case: string;
  readonly workload: string;
  readonly contender: string;
  readonly metric: Metric;
  readonly values: readonly number[];
}

/** Something that could not be measured, and why. */
export interface Gap {
  readonly case: string;
  readonly workload: string;
  readonly contender: string;
  readonly kind: 'absent' | 'failed';
  readonly reason: string;
}

export type Place = Pick<Figure, 'case' | 'workload' | 'contender'>;

export class Records {
  readonly #figures = new Map<string, { place: Place; metric: Metric; values: number[] }>();
  readonly #gaps = new Map<string, Gap>();

  add(place: Place, values: Partial<Record<Metric, number | undefined>>): void {
    for (const metric of METRICS) {
      const value = values[metric];
      if (value === undefined) continue;
      const key = keyOf({ ...place, metric });
      const figure = this.#figures.get(key) ?? { place, metric, values: [] };
      figure.values.push(value);
      this.#figures.set(key, figure);
    }
  }

  addGap(gap: Gap): void {
    const key = keyOf(gap);
    if (!this.#gaps.has(key)) this.#gaps.set(key, gap);
  }

  get figures(): Figure[] {
    return [...this.#figures.values()].map(({ place, metric, values }) => ({ ...place, metric, values }));
  }

  get gaps(): Gap[] {
    return [...this.#gaps.values()];
  }
}

function keyOf(place: Place & { readonly metric?: Metric }): string {
  return [place.case, place.workload, place.contender, place.metric].join(' ');
}
