import type { Era } from '../../mcp/vocabulary/revisions.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';

/** A message of a recorded call, and the time that passed since the one before it. */
export interface RecordedStep {
  /**
   * - `notification`: belongs to the call, such as its progress.
   * - `question`: a request to the client whose answer the server waited for.
   * - `unanswered`: a request to the client that had no answer in the recording, so that nothing waits for one.
   */
  readonly kind: 'notification' | 'question' | 'unanswered';
  readonly frame: Frame;
  readonly delayMs: number;
}

/**
 * The end of a recorded call.
 * - `whole`: its answer as it was recorded, with a `requestState` of the replay if it requires input.
 * - `cut`: only the beginning of the answer was recorded.
 * - `missing`: the call was canceled, or the recording ends before its answer.
 */
export type RecordedAnswer =
  | { readonly kind: 'whole'; readonly frame: Frame; readonly delayMs: number }
  | { readonly kind: 'cut' | 'missing' };

/** A request that the recorded server got, and all that it sent for it. */
export interface RecordedCall {
  readonly era: Era;
  readonly method: string;
  readonly request: Frame;
  /** Equal for requests of a method that ask the same; see `keyOfParameters`. */
  readonly key: string;
  /** `hidden`: some values of its parameters are. `cut`: only their beginning was recorded. */
  readonly parameters: 'whole' | 'hidden' | 'cut';
  readonly steps: readonly RecordedStep[];
  readonly answer: RecordedAnswer;
  /** What the server sent outside of all calls after this answer and before the next. */
  readonly after: readonly RecordedStep[];
  /** The repeated request with the client's input, if the answer required some. [spec 2026-07-28 basic/patterns/mrtr] */
  readonly next: RecordedCall | undefined;
  /** Its place among all recorded calls. A round is found by it. */
  readonly ordinal: number;
}

/** The `requestState` in the answer before this round. A state of the recording may be hidden, or be the same in two calls. */
export function stateOf(round: RecordedCall | undefined): string {
  return `replay:${round === undefined ? 'end' : round.ordinal}`;
}

/** Returns the ordinal in a state that `stateOf` has made, `end` where there is no further round, else undefined. */
export function readState(state: unknown): number | 'end' | undefined {
  if (state === 'replay:end') return 'end';
  const digits = typeof state === 'string' ? /^replay:(\d{1,9})$/.exec(state)?.[1] : undefined;
  return digits === undefined ? undefined : Number(digits);
}

/** An id with its JSON type, since the ids 1 and "1" belong to different requests. */
export function idKey(id: JsonRpcId | undefined): string {
  return `${typeof id}:${id}`;
}
