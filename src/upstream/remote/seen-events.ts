/** A server that replays more than was asked for repeats recent events; older ones are not kept. */
const MAX_KEPT = 64;

/**
 * Tells events that a resumed stream repeats. Only ids from before the break count: a server that gives several events
 * the same id breaks the rules, but none of them may be lost for it.
 */
export class SeenEvents {
  readonly #recent: string[] = [];
  #before: ReadonlySet<string> = new Set();

  /** The stream broke and is being resumed. */
  resumed(): void {
    this.#before = new Set(this.#recent);
  }

  /** Notes the event; true when it came before the break already. */
  isRepeated(id: string | undefined): boolean {
    if (id === undefined || id === '') return false;
    if (this.#before.has(id)) return true;
    this.#recent.push(id);
    if (this.#recent.length > MAX_KEPT) this.#recent.shift();
    return false;
  }
}
