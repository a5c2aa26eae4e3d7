import { ANSWER_MS } from './client.ts';
import type { Tally } from './tally.ts';

type Id = string | number;

interface Waiting {
  readonly resolve: (text: string) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** Where answers are picked up that all come on one stream. */
export class AnswerDesk {
  readonly #tally: Tally;
  readonly #waiting = new Map<Id, Waiting>();
  #isClosed = false;

  constructor(tally: Tally) {
    this.#tally = tally;
  }

  answerTo(id: Id): Promise<string> {
    if (this.#isClosed) return Promise.reject(new Error('the stream has ended'));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error(`no answer within ${ANSWER_MS} ms`));
      }, ANSWER_MS);
      this.#waiting.set(id, { resolve, reject, timer });
    });
  }

  /** An answer nobody waits for is one that came twice, or somebody else's. */
  take({ id, method }: { readonly id?: Id; readonly method?: string }, text: string): void {
    if (method !== undefined || id === undefined) return;
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return this.#tally.fail('crossed', `nobody waits for ${text}`);
    this.#waiting.delete(id);
    clearTimeout(waiting.timer);
    waiting.resolve(text);
  }

  close(): void {
    this.#isClosed = true;
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(new Error('the stream ended before the answer'));
    }
    this.#waiting.clear();
  }
}
