import { findProgressToken } from '../../mcp/classify/correlators.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';

/**
 * A call whose answer the server sends on a stream that can be resumed, be it by another bridge.
 * [spec 2025-11-25 transports#resumability-and-redelivery]
 */
export interface ResumableCall {
  /** The request, with no more of its parameters than `withoutArguments` leaves. */
  readonly request: Frame;
  /** The event of the server after which its stream goes on. */
  readonly lastEventId: string;
}

/** Hears how far the calls of a session have come, so that another bridge can wait for their answers. */
export interface CallPositions {
  /** All that the server has said on the stream of this call up to that event has been passed on. */
  moved(request: Frame, lastEventId: string): void;
  /** It has its answer, or will have none. */
  over(request: Frame): void;
  /** Another bridge can wait for the answer to this request, and its client can come back for it. */
  isResumable(id: JsonRpcId): boolean;
}

/** Longer names are those of no tool, and are left out. */
const MAX_NAME_LENGTH = 256;

/** What matters of a request after it was sent: whose progress is reported, and which tool was called. */
export function withoutArguments(request: Frame): Frame {
  const { id, method } = request;
  const name = readField(request, 'name');
  const isKept = typeof name === 'string' && name.length <= MAX_NAME_LENGTH;
  const progressToken = findProgressToken(request)?.value;
  const params = { name: isKept ? name : undefined, _meta: { progressToken } };
  return requestFrame(id as JsonRpcId, method as string, params);
}
