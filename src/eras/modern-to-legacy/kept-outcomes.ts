/** So many outcomes that were given up are remembered as such; there are about as many waiting calls. */
export const MAX_REMEMBERED = 1024;

/** What a call or a task ended with, and what has to be kept with it. */
export interface KeptOutcome {
  /** Unguessable, and the one its client comes back with. */
  readonly id: string;
  readonly principal: string;
  readonly bytes: number;
  /** There is no room for it any more; it has left the table already. */
  readonly giveUp: () => void;
}

/**
 * Outcomes that are kept for clients that may come back for them, which they may not. When there is no room, the oldest
 * of the caller who takes most of it goes first: nobody loses what is his because somebody else leaves much behind.
 */
export class KeptOutcomes {
  readonly #maxBytes: number;
  /** Each caller's from the oldest on. */
  readonly #ofCaller = new Map<string, Set<KeptOutcome>>();
  readonly #callerBytes = new Map<string, number>();
  /** Ids with their callers, from the oldest on. */
  readonly #givenUp = new Map<string, string>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** May give up others, but not this one: its client has had no chance yet. */
  keep(outcome: KeptOutcome): void {
    while (this.#bytes > 0 && this.#bytes + outcome.bytes > this.#maxBytes) this.#giveUpOldest();
    const own = this.#ofCaller.get(outcome.principal) ?? new Set();
    this.#ofCaller.set(outcome.principal, own.add(outcome));
    this.#count(outcome.principal, outcome.bytes);
  }

  /** Its time is over. What is not here, or not any more, may be released, too. */
  release(outcome: KeptOutcome): void {
    const own = this.#ofCaller.get(outcome.principal);
    if (own === undefined || !own.delete(outcome)) return;
    if (own.size === 0) this.#ofCaller.delete(outcome.principal);
    this.#count(outcome.principal, -outcome.bytes);
  }

  /** True only for the caller whose outcome it was: nobody learns anything of the outcomes of others. */
  wasGivenUp(id: string, principal: string): boolean {
    return this.#givenUp.get(id) === principal;
  }

  #giveUpOldest(): void {
    const [greediest] = [...this.#callerBytes].reduce((most, caller) => (caller[1] > most[1] ? caller : most));
    const [oldest] = this.#ofCaller.get(greediest) ?? [];
    if (oldest === undefined) throw new Error('bytes are counted for outcomes that are kept');
    this.release(oldest);
    this.#remember(oldest);
    oldest.giveUp();
  }

  #remember({ id, principal }: KeptOutcome): void {
    this.#givenUp.set(id, principal);
    if (this.#givenUp.size <= MAX_REMEMBERED) return;
    const [first] = this.#givenUp.keys();
    if (first !== undefined) this.#givenUp.delete(first);
  }

  #count(principal: string, bytes: number): void {
    this.#bytes += bytes;
    const own = (this.#callerBytes.get(principal) ?? 0) + bytes;
    if (own === 0) this.#callerBytes.delete(principal);
    else this.#callerBytes.set(principal, own);
  }
}
