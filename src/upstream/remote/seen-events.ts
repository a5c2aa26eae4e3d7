import { RecentNames } from '../../collections/recent-names.ts';

/**
 * A server that replays more than was asked for repeats recent events; older ones are not kept. Each call has its own,
 * so of long ids, which no server needs, fewer are.
 */
const KEPT_LIMITS = { count: 64, length: 8 * 1024 };

/**
 * Tells events that a resumed stream repeats. Only ids from before the break count: a server that gives several events
 * the same id breaks the rules, but none of them may be lost for it.
 */
export class SeenEvents {
  readonly #recent = new RecentNames<true>(KEPT_LIMITS);
  #before: ReadonlySet<string> = new Set();

  /** The stream broke and is being resumed. */
  resumed(): void {
    this.#before = new Set(Array.from(this.#recent, ([id]) => id));
  }

  /** Notes the event; true when it came before the break already. */
  isRepeated(id: string | undefined): boolean {
    if (id === undefined || id === '') return false;
    if (this.#before.has(id)) return true;
    this.#recent.set(id, true);
    return false;
  }
}
