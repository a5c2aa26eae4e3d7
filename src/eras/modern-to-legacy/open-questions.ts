import type { Clock } from '../../deps.ts';
import { readInputResponses } from '../../mcp/classify/input-responses.ts';
import { inputKey } from '../../mcp/translate/input-requests.ts';
import type { Frame } from '../../wire/frame.ts';

/** Servers give up on their own questions, the official SDKs after 60 s; progress keeps them waiting. */
export const KEEP_ALIVE_MS = 20_000;

/** A server that wants to know more at once does not ask people. */
export const MAX_ASKED_AT_ONCE = 100;

/** Something the server wants to know from the client while it works on a call. */
export interface InputQuestion {
  readonly method: string;
  /** `{"method":…,"params":…}` as the client gets it. */
  readonly request: Buffer;
  /** The size of the message the question came in, which is kept for its answer. */
  readonly askedBytes: number;
  /** Passes an answer on: JSON text of the right shape, part of the retry that brought it. */
  answer(response: Buffer): void;
  /** Tells the asker that nobody will answer. */
  refuse(): void;
  /** Tells the asker that somebody still thinks about it. `count` grows. Undefined: it does not want to hear. */
  readonly keepAlive: ((count: number) => void) | undefined;
}

interface OpenQuestion {
  readonly question: InputQuestion;
  /** The client knows of it. */
  isTold: boolean;
}

/** What the server wants to know in one call and has not heard yet. As long as there is any, askers are kept waiting. */
export class OpenQuestions {
  readonly #clock: Clock;
  readonly #hold: (bytes: number) => boolean;
  readonly #byKey = new Map<string, OpenQuestion>();
  #bytes = 0;
  #lastKey = 0;
  #keepAlives = 0;
  #stopKeepAlive: (() => void) | undefined;

  /** `hold` is told how many bytes they hold from now on. False: there is no room for more than there was. */
  constructor(clock: Clock, hold: (bytes: number) => boolean) {
    this.#clock = clock;
    this.#hold = hold;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** False: there are too many, or they hold too much; this one is none of them. */
  add(question: InputQuestion): boolean {
    const bytes = this.#bytes + bytesOf(question);
    if (this.#byKey.size >= MAX_ASKED_AT_ONCE || !this.#hold(bytes)) return false;
    this.#bytes = bytes;
    this.#lastKey += 1;
    this.#byKey.set(inputKey(question.method, this.#lastKey), { question, isTold: false });
    this.#keepAlive();
    return true;
  }

  /** The server does not want to know it any more. */
  remove(question: InputQuestion): void {
    for (const [key, open] of this.#byKey) if (open.question === question) this.#drop(key, question);
    this.#keepAlive();
  }

  /** What the client is asked, by the key it answers with; from now on it knows of all. */
  tell(): ReadonlyMap<string, Buffer> {
    const requests = new Map<string, Buffer>();
    for (const [key, open] of this.#byKey) {
      open.isTold = true;
      requests.set(key, open.question.request);
    }
    return requests;
  }

  /** Passes on what a retry answers of what the client was told. False: some that were open before still are. */
  answer(retry: Frame): boolean {
    const open = [...this.#byKey];
    const told = open.filter(([, { isTold }]) => isTold).map(([key, { question }]) => [key, question.method] as const);
    const { answers } = readInputResponses(retry, new Map(told));
    for (const [key, { question }] of open) {
      const response = answers.get(key);
      // Gone first: whatever the answer sets off finds it answered. And not if an earlier answer ended the call.
      if (response !== undefined && this.#drop(key, question)) question.answer(response);
    }
    this.#keepAlive();
    return !open.some(([key]) => this.#byKey.has(key));
  }

  /** False: it was gone before. */
  #drop(key: string, question: InputQuestion): boolean {
    if (!this.#byKey.delete(key)) return false;
    this.#bytes -= bytesOf(question);
    this.#hold(this.#bytes);
    return true;
  }

  /** All of them; none is left. */
  takeAll(): readonly InputQuestion[] {
    if (this.#byKey.size === 0) return [];
    const questions = [...this.#byKey.values()].map(({ question }) => question);
    this.#byKey.clear();
    this.#bytes = 0;
    this.#hold(0);
    this.#keepAlive();
    return questions;
  }

  /** Runs the timer as long as there is somebody to tell. */
  #keepAlive(): void {
    const isWanted = [...this.#byKey.values()].some(({ question }) => question.keepAlive !== undefined);
    if (isWanted === (this.#stopKeepAlive !== undefined)) return;
    this.#stopKeepAlive?.();
    this.#stopKeepAlive = isWanted ? this.#clock.every(KEEP_ALIVE_MS, () => this.#sayStillThinking()) : undefined;
  }

  #sayStillThinking(): void {
    this.#keepAlives += 1;
    for (const { question } of this.#byKey.values()) question.keepAlive?.(this.#keepAlives);
  }
}

/** As it was asked, as the client is told, and in what the client was told, which it may ask for once more. */
function bytesOf({ askedBytes, request }: InputQuestion): number {
  return askedBytes + 2 * request.length;
}
