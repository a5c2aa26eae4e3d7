/** The current size of a queue or table. `items` or `bytes` is undefined if it is not counted. */
export interface QueueSize {
  readonly queue: string;
  readonly items: number | undefined;
  readonly bytes: number | undefined;
}

/** The queues of one server. Sizes are read only on request, so keeping them costs nothing. */
export class QueueSizes {
  readonly #sources = new Set<() => readonly QueueSize[]>();

  /** Registers queues. Returns the function that removes them again, which their owner calls when it ends. */
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

/** Sums up the queues with the same name. */
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
