import type { Logger } from 'pino';
import { BridgeError } from '../../errors.ts';
import { CANCELLED, INITIALIZED, PING, PROGRESS, SET_LEVEL, SUBSCRIBE } from '../../mcp/vocabulary/methods.ts';
import { readField, readPayload } from '../../mcp/vocabulary/payload.ts';
import type { Frame } from '../../wire/frame.ts';
import { notificationFrame, requestFrame } from '../../wire/write-message.ts';
import type { RestoredState, SessionOffer } from './restored-state.ts';

/** What a renewal needs of its link. Both are posted at once, past everything that waits. */
export interface OwnMessages {
  /** Resolves with the answer, a JSON-RPC error included; rejects with a BridgeError. */
  ask(request: Frame): Promise<Frame>;
  /** Resolves when the server has taken it, or has not. */
  tell(notification: Frame): Promise<void>;
  /** The server's answer to `initialize` counts from here on. */
  established(result: SessionOffer): void;
  readonly log: Logger;
}

/**
 * - `restored`: the new session is where the old one was.
 * - `otherRevision`: there is a new session, but not one that the client could go on in.
 */
export type Renewal = 'restored' | 'otherRevision';

/**
 * Makes a new session in place of one the server does not know any more, and brings it to where the old one was: the
 * handshake with the client's own parameters, its log level, its subscriptions. Rejects with a BridgeError.
 * [spec 2025-11-25 transports#session-management] 404 → the client must start a new session
 */
export async function renewSession(state: RestoredState, own: OwnMessages): Promise<Renewal> {
  if (state.initialize === undefined) throw new Error('no session was ever opened');
  const answer = await own.ask(state.initialize);
  const result: SessionOffer | undefined = answer.kind === 'result' ? readPayload(answer) : undefined;
  if (result === undefined) {
    const message = readField(answer, 'message');
    const said = typeof message === 'string' ? message.slice(0, 200) : 'no reason';
    throw new BridgeError('ERR_UPSTREAM_PROTOCOL', `The server forgot the session and refuses a new one: ${said}`);
  }
  own.established(result);
  if (result.protocolVersion !== state.accepted?.protocolVersion) return 'otherRevision';
  if (!state.isInitialized) return 'restored';
  await own.tell(notificationFrame(INITIALIZED));
  if (state.logLevel !== undefined) await restore(own, SET_LEVEL, { level: state.logLevel });
  for (const uri of state.subscribedUris) {
    if (!(await restore(own, SUBSCRIBE, { uri }))) state.forget(uri);
  }
  return 'restored';
}

/** False when the server does not want it: that is no reason to give up the session. */
async function restore(own: OwnMessages, method: string, params: object): Promise<boolean> {
  const answer = await own.ask(requestFrame('mcp-portage-restore', method, params));
  if (answer.kind === 'result') return true;
  own.log.warn({ method }, 'the server did not restore what the client had set up in the session it forgot');
  return false;
}

/**
 * Does the server still know the session? Many answer 400 instead of 404 to a session they do not know, and 400 alone
 * may mean anything; so it is asked for something that cannot fail otherwise.
 */
export async function isSessionKnown(own: Pick<OwnMessages, 'ask'>): Promise<boolean> {
  try {
    await own.ask(requestFrame('mcp-portage-check', PING));
    return true;
  } catch (thrown) {
    const status = thrown instanceof BridgeError ? thrown.data?.status : undefined;
    return status !== 400 && status !== 404;
  }
}

/**
 * May a message that was refused with its session go again in a new one? Answers and cancellations are about ids of the
 * old session, progress about its tokens.
 */
export function isWorthRepeating(frame: Frame): boolean {
  if (frame.kind === 'request') return true;
  return frame.kind === 'notification' && ![CANCELLED, INITIALIZED, PROGRESS].includes(frame.method ?? '');
}
