import type { Clock } from '../deps.ts';

/** Shortest time between two notifications of one kind: clients ask for the whole list after each. */
export const CHANGE_PERIOD_MS = 50;

/** Limits how often a client is told that a list has changed. The last change of several is always told. */
export class ChangePacer {
  readonly #clock: Clock;
  readonly #tell: (method: string) => void;
  /** The kinds that were told lately, each with the timer of the next time, and whether there is something to tell then. */
  readonly #recent = new Map<string, { cancel: () => void; isWaiting: boolean }>();

  constructor(clock: Clock, tell: (method: string) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** @param method the notification, of which there are only few */
  changed(method: string): void {
    const recent = this.#recent.get(method);
    if (recent !== undefined) {
      recent.isWaiting = true;
      return;
    }
    const cancel = this.#clock.after(CHANGE_PERIOD_MS, () => {
      const isWaiting = this.#recent.get(method)?.isWaiting === true;
      this.#recent.delete(method);
      if (isWaiting) this.changed(method);
    });
    this.#recent.set(method, { cancel, isWaiting: false });
    this.#tell(method);
  }

  stop(): void {
    for (const { cancel } of this.#recent.values()) cancel();
    this.#recent.clear();
  }
}
