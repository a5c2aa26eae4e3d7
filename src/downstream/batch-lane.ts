import type { Lane } from '../relay/lane.ts';
import { ownBytes } from '../wire/byte-collector.ts';
import type { Frame } from '../wire/frame.ts';
import { joinArray } from '../wire/write-message.ts';

export interface BatchLaneOptions {
  /** Answers the client waits for. */
  readonly expected: number;
  readonly budget: BatchBudget;
  /** Writes a line. False: the pipe is full. */
  readonly write: (line: Buffer) => boolean;
}

/**
 * The answers to one array of requests on a pipe. They leave together, as one array; where the budget is too small to
 * wait for the others, those that are there leave as an array, and the others in one that follows. A client finds them
 * by their ids. [spec 2025-03-26 basic#batching]
 */
export class BatchLane implements Lane {
  readonly #budget: BatchBudget;
  readonly #write: (line: Buffer) => boolean;
  #answers: Buffer[] = [];
  /** What they take of the budget. */
  #collectedBytes = 0;
  #expected: number;

  constructor({ expected, budget, write }: BatchLaneOptions) {
    this.#expected = expected;
    this.#budget = budget;
    this.#write = write;
  }

  get isOpen(): boolean {
    return this.#expected > 0;
  }

  /** Takes one answer. False: the pipe is full. */
  send({ bytes }: Frame): boolean {
    this.#expected -= 1;
    if (this.#expected === 0 || !this.#budget.take(bytes.length)) {
      this.#answers.push(bytes);
      return this.#leave();
    }
    this.#collectedBytes += bytes.length;
    this.#answers.push(ownBytes(bytes));
    return true;
  }

  /** One of the expected answers will not come. */
  release(): boolean {
    this.#expected -= 1;
    return this.#expected > 0 || this.#answers.length === 0 || this.#leave();
  }

  #leave(): boolean {
    const line = joinArray(this.#answers);
    this.#answers = [];
    this.#budget.give(this.#collectedBytes);
    this.#collectedBytes = 0;
    return this.#write(line);
  }
}

/**
 * Answers to an array are collected for one JSON array up to this size, for each POST and for all arrays of a pipe
 * together; beyond it they leave as they come.
 */
export const MAX_COLLECTED_BYTES = 1024 * 1024;

/** Bounds the answers that wait for the others of their array, for all arrays of a pipe together. */
export class BatchBudget {
  #bytes = 0;

  /** False: so many bytes more would exceed the budget. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_COLLECTED_BYTES) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}
