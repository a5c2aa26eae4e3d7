import type { StoredOutcome } from '../../relay/cluster-ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';

/** The answer to a call or a task that another replica has run; undefined: it was under way. */
export function answerOf({ state }: StoredOutcome): Frame | undefined {
  if (state.kind === 'begun') return undefined;
  const read = readMessage(state.answer, SERVER_LIMITS);
  return read.kind === 'message' ? read.frame : undefined;
}
