import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { respondError } from '../../http/server/respond.ts';
import { Frame } from '../../wire/frame.ts';
import { type PostedMessages, type PostLimits, readPost } from './read-post.ts';
import type { Turn, TurnGate } from './turn-gate.ts';

export interface TurnLimits extends PostLimits {
  readonly clock: Clock;
  /** How long a message may wait for its turn; 0: no limit. */
  readonly maxWaitMs: number;
}

export interface PostInTurn {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly limits: TurnLimits;
  /** Undefined: the sender has no session and waits for nobody. */
  readonly gate: TurnGate | undefined;
  accepted(messages: PostedMessages): void;
}

/**
 * Reads a POST when its session has room for one more message, and hands its content over when there still is: many
 * may be read at a time, and the first of them may fill the server's pipe. Refuses what cannot be taken.
 */
export function readInTurn({ request, response, limits, gate, accepted }: PostInTurn): void {
  const enter = (turn: Turn): void => {
    if (gate === undefined) return turn.run();
    if (enterInTime(gate, turn, limits, (error) => respondError(response, error))) return;
    const busy = 'Too many messages of this session wait already; read what it has sent first.';
    respondError(response, new BridgeError('ERR_SESSION_BUSY', busy, { retryAfterMs: 1000 }));
  };
  const read = (): void =>
    readPost(request, limits, {
      accepted: (messages) => enter({ ...sizeUp(messages), run: () => accepted(messages) }),
      refused: (error, id) => respondError(response, error, id),
    });
  enter({ kind: 'unread', bytes: 0, run: read });
}

/**
 * A server that hangs never takes what waits for it, and nobody else knows of the message yet. False: too many wait.
 * `refuse` is called instead of the turn, when it has waited too long.
 */
function enterInTime(
  gate: TurnGate,
  turn: Turn,
  { clock, maxWaitMs }: TurnLimits,
  refuse: (error: BridgeError) => void,
): boolean {
  let stopWaiting = (): void => {};
  const run = (): void => {
    stopWaiting();
    turn.run();
  };
  const timed: Turn = { kind: turn.kind, bytes: turn.bytes, run };
  if (!gate.enter(timed)) return false;
  if (maxWaitMs === 0 || !gate.holds(timed)) return true;
  stopWaiting = clock.after(maxWaitMs, () => {
    gate.leave(timed);
    const message = `The server took no message for ${maxWaitMs} ms, so this one was not sent; raise --request-timeout if it needs longer.`;
    refuse(new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'turn', timeoutMs: maxWaitMs } }));
  });
  return true;
}

function sizeUp(messages: PostedMessages): Pick<Turn, 'kind' | 'bytes'> {
  const items = messages.kind === 'message' ? [messages.frame] : messages.items;
  let bytes = 0;
  let kind: Turn['kind'] = 'answer';
  for (const item of items) {
    if (item instanceof Frame) bytes += item.bytes.length;
    if (!(item instanceof Frame && item.isResponse)) kind = 'message';
  }
  return { kind, bytes };
}
