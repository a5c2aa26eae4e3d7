import { findProgressToken } from '../../mcp/classify/correlators.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';

/**
 * A call whose answer comes on a stream that can be resumed, even by another bridge.
 * [spec 2025-11-25 transports#resumability-and-redelivery]
 */
export interface ResumableCall {
  /** The request as the server got it, with those of its parameters that `withoutArguments` keeps. */
  readonly request: Frame;
  /** The id of the server's event after which the stream continues. */
  readonly lastEventId: string;
}

/** Receives the positions of a session's calls in their streams, so that another bridge can wait for their answers. */
export interface CallPositions {
  /** Called when everything on the stream of this call, up to and including this event, has been passed on. */
  moved(request: Frame, lastEventId: string): void;
  /** Called when the call has its answer, or will have none. */
  over(request: Frame): void;
  /** Returns true if another bridge can wait for the answer to this request, and its client can come back for it. */
  isResumable(id: JsonRpcId): boolean;
}

/** Characters of a tool's name. A longer name belongs to no tool, and is left out. */
const MAX_NAME_LENGTH = 256;

/** Returns the parts of a request that are needed after it was sent: the progress token and the name of the tool. */
export function withoutArguments(request: Frame): Frame {
  const { id, method } = request;
  const name = readField(request, 'name');
  const isKept = typeof name === 'string' && name.length <= MAX_NAME_LENGTH;
  const progressToken = findProgressToken(request)?.value;
  const params = { name: isKept ? name : undefined, _meta: { progressToken } };
  return requestFrame(id as JsonRpcId, method as string, params);
}
