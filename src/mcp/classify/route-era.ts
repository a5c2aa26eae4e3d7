/** Which era a message is of, and who serves it where both are served. */
import { Frame } from '../../wire/frame.ts';
import { findMember, visitMembers } from '../../wire/json/outline.ts';
import { isStringToken } from '../../wire/json/scan-json.ts';
import type { EnvelopeFault } from '../../wire/scan-envelope.ts';
import { type HeaderMap, trimHeaderValue } from '../vocabulary/header-value.ts';
import { PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER } from '../vocabulary/headers.ts';
import { META, META_PROTOCOL_VERSION } from '../vocabulary/meta.ts';
import { INITIALIZE } from '../vocabulary/methods.ts';
import { eraOf } from '../vocabulary/revisions.ts';
import { INVALID_PARAMS, INVALID_REQUEST } from '../vocabulary/rpc-codes.ts';
import type { ModernRefusal } from './modern-request.ts';

/**
 * Does the message say of itself that it is modern? Exact, also for a key that is spelled with escapes or a `_meta`
 * that occurs twice; whether the envelope is a good one is another question.
 */
export function claimsModern(frame: Frame): boolean {
  const { bytes, payloadStart, outline } = frame;
  if (payloadStart === -1 || frame.isResponse || outline?.mayHoldMeta === false) return false;
  let isModern = false;
  visitMembers(bytes, payloadStart, outline, (keyStart, keyEnd, valueStart) => {
    const isMeta = isStringToken(bytes, keyStart, keyEnd, META);
    isModern = isMeta && findMember(bytes, valueStart, META_PROTOCOL_VERSION, outline) !== undefined;
    return !isModern;
  });
  return isModern;
}

/** Who serves what was posted to an endpoint of both eras. */
export type EraRoute =
  /** A modern request, to be checked by `validateModern`. */
  | { readonly kind: 'modern' }
  /** A notification of a modern client. Those of the specification mean nothing over HTTP. */
  | { readonly kind: 'modern-notification' }
  /** Opens a legacy session, whatever session it names. */
  | { readonly kind: 'initialize' }
  | { readonly kind: 'session'; readonly sessionId: string }
  /** An array of legacy messages. */
  | { readonly kind: 'batch'; readonly sessionId: string | undefined }
  /** A legacy message outside of any session. */
  | { readonly kind: 'sessionless' }
  | { readonly kind: 'refused'; readonly refusal: ModernRefusal };

/**
 * Decides by what the body says of itself. A header only tells apart those that say nothing: it may have been added or
 * taken out on the way. Over stdio there are none.
 */
export function routeEra(message: Frame | readonly (Frame | EnvelopeFault)[], headers: HeaderMap): EraRoute {
  const sessionId = readSessionId(headers);
  if (!(message instanceof Frame)) return routeBatch(message, sessionId);
  if (claimsModern(message)) return { kind: message.kind === 'request' ? 'modern' : 'modern-notification' };
  if (message.kind === 'request' && message.method === INITIALIZE) return { kind: 'initialize' };
  if (sessionId !== undefined) return { kind: 'session', sessionId };
  return namesModern(headers) ? routeUnclaimed(message) : { kind: 'sessionless' };
}

/** [spec 2026-07-28 transports/streamable-http#sending-messages] a modern body is one message. */
function routeBatch(items: readonly (Frame | EnvelopeFault)[], sessionId: string | undefined): EraRoute {
  if (!items.some((item) => item instanceof Frame && claimsModern(item))) return { kind: 'batch', sessionId };
  return refuse(INVALID_REQUEST, 'a batch holds a modern message; modern messages are sent one by one');
}

/** From a modern client, as its header says, but without an envelope. Never served as legacy. */
function routeUnclaimed({ kind }: Frame): EraRoute {
  if (kind === 'notification') return { kind: 'modern-notification' };
  if (kind !== 'request') return refuse(INVALID_REQUEST, 'modern clients send no responses');
  return refuse(INVALID_PARAMS, `params._meta["${META_PROTOCOL_VERSION}"] is missing; expected a string`);
}

function refuse(code: number, message: string): EraRoute {
  return { kind: 'refused', refusal: { httpStatus: 400, code, message } };
}

function readSessionId(headers: HeaderMap): string | undefined {
  const value = headers[SESSION_ID_HEADER];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Does the header that says which revision is spoken name a modern one? */
export function namesModern(headers: HeaderMap): boolean {
  const value = headers[PROTOCOL_VERSION_HEADER];
  return typeof value === 'string' && eraOf(trimHeaderValue(value)) === 'modern';
}
