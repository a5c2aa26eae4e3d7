import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { LineWriter } from '../../io/line-writer.ts';
import type { SessionRegistry } from '../../relay/session-registry.ts';
import type { JsonRpcId } from '../../wire/frame.ts';
import type { SharedInput } from './shared-input.ts';

/** What a client says in one era goes to one server; what it says in the other is another conversation. */
export interface ConversationOptions {
  readonly writer: LineWriter;
  readonly input: SharedInput;
  readonly sessions: SessionRegistry;
  readonly deps: Deps;
  /** The other conversation has a call open under this id: there is one space of ids on a pipe. */
  readonly isTaken: (id: JsonRpcId) => boolean;
}

/** Why a request cannot be handed to a server; its client is told, too. At our own end there may be many, and no fault. */
export function logRefusal({ log }: Deps, error: BridgeError): void {
  const level = error.code === 'ERR_SESSION_CLOSED' ? 'debug' : 'error';
  log[level]({ code: error.code, err: error.cause }, error.message);
}

export function takenId(id: JsonRpcId): BridgeError {
  return new BridgeError(
    'ERR_WIRE_MESSAGE',
    `Request id ${JSON.stringify(id)} is already in use by a call of another era that has not been answered; use a new id for each request.`,
  );
}
