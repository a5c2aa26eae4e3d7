/** Arrays of messages that clients send: whether they are acceptable, and how their answers go back. */
import { BridgeError } from '../errors.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import type { Revision } from '../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import type { Lane } from '../relay/exchange.ts';
import { ownBytes } from '../wire/byte-collector.ts';
import { Frame } from '../wire/frame.ts';
import type { EnvelopeFault } from '../wire/scan-envelope.ts';
import { errorFrame, joinArray } from '../wire/write-message.ts';

/** A message of an array, or what is wrong with that item. */
export type BatchItem = Frame | EnvelopeFault;

/**
 * Why this array cannot be taken, undefined if it can. `revision` is that of the session, undefined while there is none.
 * [spec 2025-03-26 basic#batching] Only that revision has arrays, and `initialize` must not be part of one.
 */
export function refusalOfBatch(items: readonly BatchItem[], revision: Revision | undefined): BridgeError | undefined {
  if (holdsInitialize(items)) return HOLDS_INITIALIZE;
  if (revision?.batching) return undefined;
  const where = revision === undefined ? 'accepted before initialize' : `part of revision ${revision.id}`;
  return new BridgeError('ERR_WIRE_BATCH', `An array of messages is not ${where}; send each message by itself.`);
}

export function holdsInitialize(items: readonly BatchItem[]): boolean {
  return items.some((item) => item instanceof Frame && item.method === INITIALIZE);
}

export const HOLDS_INITIALIZE = new BridgeError(
  'ERR_WIRE_BATCH',
  'initialize must not be part of a batch; send it alone.',
);

/** The answers that the array has to get: one for each request, and one for each item that is no message. */
export function countAnswers(items: readonly BatchItem[]): number {
  return items.filter((item) => !(item instanceof Frame) || item.kind === 'request').length;
}

/** The answer to an item that is no message. */
export function faultAnswer({ id, fault }: EnvelopeFault): Frame {
  return errorFrame(id, rpcErrorOf(new BridgeError('ERR_WIRE_MESSAGE', fault)));
}

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
