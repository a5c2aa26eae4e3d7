import { type RewrittenRequest, rewriteRequest } from '../../mcp/rewrite.ts';
import type { Frame } from '../../wire/frame.ts';
import { withId } from '../../wire/splice.ts';

/**
 * A client's request under an id of the bridge. A progress token that can be read in two ways stays as it is: each
 * answer comes on a stream of its own, so nobody else can get what the server says to it.
 */
export function rewriteForPost(frame: Frame, id: number): RewrittenRequest {
  return rewriteRequest(frame, id) ?? { frame: withId(frame, id), progressToken: undefined };
}
