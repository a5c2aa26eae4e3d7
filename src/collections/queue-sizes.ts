/** What waits in a queue, or is held by a table, at one moment. */
export interface QueueSize {
  readonly queue: string;
  /** Undefined: only its bytes are counted. */
  readonly items: number | undefined;
  /** Undefined: only its items are counted. */
  readonly bytes: number | undefined;
}

/** The queues of one server, for those who look at them now and then; nothing is counted meanwhile. */
export class QueueSizes {
  readonly #sources = new Set<() => readonly QueueSize[]>();

  /** Returns the function that takes them out again, which their owner calls when it ends. */
  add(look: () => readonly QueueSize[]): () => void {
    this.#sources.add(look);
    return () => void this.#sources.delete(look);
  }

  itemsIn(queue: string): number {
    return this.sizes.find((size) => size.queue === queue)?.items ?? 0;
  }

  get sizes(): readonly QueueSize[] {
    return sumOfQueues([...this.#sources].flatMap((look) => look()));
  }
}

/** Queues of one name are shown as one. */
export function sumOfQueues(sizes: readonly QueueSize[]): readonly QueueSize[] {
  const sums = new Map<string, QueueSize>();
  for (const { queue, items, bytes } of sizes) {
    const sum = sums.get(queue);
    sums.set(queue, { queue, items: added(sum?.items, items), bytes: added(sum?.bytes, bytes) });
  }
  return [...sums.values()];
}

function added(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : one + other;
}
