import { type Correlator, findCancelledId, findProgressOf, findProgressToken } from '../../mcp/correlators.ts';
import { Frame, type JsonRpcId } from '../../wire/frame.ts';
import { scanEnvelope } from '../../wire/scan-envelope.ts';
import { type Edit, encodeId, replaceSpans } from '../../wire/splice.ts';

/** A request as the server gets it, and what it takes to turn its answers back. */
export interface RewrittenRequest {
  readonly frame: Frame;
  /** The progress token as the client wrote it. */
  readonly progressToken: Buffer | undefined;
}

/** One client's request under an id of the shared link; the same number is its progress token. */
export function rewriteRequest(frame: Frame, upstreamId: number): RewrittenRequest {
  const replacement = encodeId(upstreamId);
  const edits: Edit[] = [{ start: frame.idStart, end: frame.idEnd, replacement }];
  const token = findProgressToken(frame);
  if (token !== undefined) edits.push({ start: token.start, end: token.end, replacement });
  edits.sort((a, b) => a.start - b.start);
  return { frame: edit(frame, edits), progressToken: token && tokenBytes(frame, token) };
}

/** `notifications/cancelled` about another id. Undefined: it names none. */
export function rewriteCancelled(frame: Frame, id: JsonRpcId): Frame | undefined {
  return replaceCorrelator(frame, findCancelledId(frame), encodeId(id));
}

/** `notifications/progress` under another token, given as its bytes. */
export function rewriteProgress(frame: Frame, token: Buffer): Frame | undefined {
  return replaceCorrelator(frame, findProgressOf(frame), token);
}

function replaceCorrelator(frame: Frame, found: Correlator | undefined, replacement: Buffer): Frame | undefined {
  return found && edit(frame, [{ start: found.start, end: found.end, replacement }]);
}

function edit(frame: Frame, edits: readonly Edit[]): Frame {
  const bytes = replaceSpans(frame.bytes, edits);
  const envelope = scanEnvelope(bytes);
  if (envelope === undefined) throw new Error('an edited message is no message any more');
  return new Frame(bytes, envelope);
}

/** A copy: keeping it must not keep the message. */
function tokenBytes(frame: Frame, token: Correlator): Buffer {
  return Buffer.from(frame.bytes.subarray(token.start, token.end));
}
