import type { Lane } from '../relay/ports.ts';
import type { Frame } from '../wire/frame.ts';
import { joinArray } from '../wire/join-array.ts';

/** The answers to one array of requests on a pipe: they leave together, as one array. [spec 2025-03-26 basic#batching] */
export class BatchLane implements Lane {
  readonly #write: (line: Buffer) => boolean;
  readonly #answers: Frame[] = [];
  #expected: number;

  constructor(expected: number, write: (line: Buffer) => boolean) {
    this.#expected = expected;
    this.#write = write;
  }

  get isOpen(): boolean {
    return this.#expected > 0;
  }

  /** Takes one answer. False: the pipe is full. */
  send(answer: Frame): boolean {
    this.#answers.push(answer);
    return this.release();
  }

  /** One of the expected answers will not come. */
  release(): boolean {
    this.#expected -= 1;
    return this.#expected > 0 || this.#answers.length === 0 || this.#write(joinArray(this.#answers));
  }
}
