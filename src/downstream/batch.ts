/** Batches: checks arrays of messages from clients, and collects their answers. */
import { BridgeError } from '../errors.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import type { Revision } from '../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import type { Lane } from '../relay/call.ts';
import { ownBytes } from '../wire/byte-collector.ts';
import { Frame } from '../wire/frame.ts';
import type { EnvelopeFault } from '../wire/scan-envelope.ts';
import { errorFrame, joinArray } from '../wire/write-message.ts';

/** An item of an array: a message, or the fault of an item that is not one. */
export type BatchItem = Frame | EnvelopeFault;

/**
 * Returns the error for an array that cannot be accepted, or undefined if it can. `revision` is that of the session,
 * undefined before `initialize`.
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

/** Returns how many answers the array gets: one for each request, and one for each item that is not a message. */
export function countAnswers(items: readonly BatchItem[]): number {
  return items.filter((item) => !(item instanceof Frame) || item.kind === 'request').length;
}

/** Returns the answer to an item that is not a message. */
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
 * Collects the answers to one array of requests on a pipe and writes them together, as one array. If the budget is too
 * small to wait for the rest, the answers collected so far leave as one array and the others in a later one. A client
 * matches them by id. [spec 2025-03-26 basic#batching]
 */
export class BatchLane implements Lane {
  readonly #budget: BatchBudget;
  readonly #write: (line: Buffer) => boolean;
  #answers: Buffer[] = [];
  /** Bytes that the collected answers take of the budget. */
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

  /** Called when one of the expected answers will not come. False: the pipe is full. */
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
 * Largest total size of answers that are collected for one JSON array, for each POST and for all arrays of a pipe
 * together. Beyond it answers leave as they arrive.
 */
export const MAX_COLLECTED_BYTES = 1024 * 1024;

/** Bounds the answers that wait for the rest of their array, over all arrays of a pipe. */
export class BatchBudget {
  #bytes = 0;

  /** Reserves bytes of the budget. False: they would exceed it, and nothing was reserved. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_COLLECTED_BYTES) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}
