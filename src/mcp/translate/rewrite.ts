import { editFrame, encodeId, Frame, type JsonRpcId, replaceSpans } from '../../wire/frame.ts';
import type { Edit, Span } from '../../wire/json/scan-json.ts';
import { scanEnvelope } from '../../wire/scan-envelope.ts';
import {
  findCancelledId,
  findProgressOf,
  findSharedCancelledId,
  findSharedProgressToken,
  findSubscriptionId,
  isLeadingToken,
} from '../classify/correlators.ts';

/** A request as the server gets it, and what it takes to turn its answers back. */
export interface RewrittenRequest {
  readonly frame: Frame;
  /** The progress token as the client wrote it. */
  readonly progressToken: Buffer | undefined;
}

/**
 * One client's request under an id of the shared link; the same number is its progress token. Undefined: its own token
 * cannot be told for sure, and the server might read that of another client.
 */
export function rewriteRequest(frame: Frame, upstreamId: number): RewrittenRequest | undefined {
  const token = findSharedProgressToken(frame);
  if (token === 'unclear') return undefined;
  const replacement = encodeId(upstreamId);
  const idEdit = { start: frame.idStart, end: frame.idEnd, replacement };
  if (token === undefined) return { frame: editFrame(frame, [idEdit], upstreamId), progressToken: undefined };
  const tokenEdit = { start: token.start, end: token.end, replacement };
  const edits = token.start < frame.idStart ? [tokenEdit, idEdit] : [idEdit, tokenEdit];
  return { frame: editFrame(frame, edits, upstreamId), progressToken: copyOf(frame, token) };
}

/** A client's `notifications/cancelled` about another id. Undefined: it names none, or not one for sure. */
export function rewriteClientCancelled(frame: Frame, id: JsonRpcId): Frame | undefined {
  return replace(frame, findSharedCancelledId(frame), encodeId(id));
}

/** The server's. */
export function rewriteServerCancelled(frame: Frame, id: JsonRpcId): Frame | undefined {
  return replace(frame, findCancelledId(frame), encodeId(id));
}

/** `notifications/progress` under another token, given as its bytes. `found`: where its own stands. */
export function rewriteProgress(frame: Frame, token: Buffer, found = findProgressOf(frame)): Frame | undefined {
  if (found === undefined || !isLeadingToken(frame, found)) return replace(frame, found, token);
  // Nothing stands before it that could be read in two ways, so all else is found where it was.
  return editFrame(frame, [{ start: found.start, end: found.end, replacement: token }]);
}

/** What a subscription brings, under the id of another `subscriptions/listen`, given as its bytes. */
export function rewriteSubscriptionId(frame: Frame, id: Buffer): Frame | undefined {
  return replace(frame, findSubscriptionId(frame), id);
}

function replace(frame: Frame, found: Span | undefined, replacement: Buffer): Frame | undefined {
  return found && edit(frame, { start: found.start, end: found.end, replacement });
}

/** Undefined: no message any more. Of a server's message only the envelope is known to be JSON. */
function edit(frame: Frame, only: Edit): Frame | undefined {
  // A message that has an outline was walked over as a whole, so another value in it leaves the others where they are.
  if (frame.outline?.isComplete === true) return editFrame(frame, [only]);
  const bytes = replaceSpans(frame.bytes, [only]);
  const envelope = scanEnvelope(bytes);
  return envelope && new Frame(bytes, envelope);
}

/** A copy: keeping it must not keep the message. */
function copyOf(frame: Frame, { start, end }: Span): Buffer {
  return Buffer.from(frame.bytes.subarray(start, end));
}
