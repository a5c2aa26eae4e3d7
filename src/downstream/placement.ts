import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Frame } from '../wire/frame.ts';

/** A request, and the way to serve it at this replica. */
export interface PlacedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Serves the request here. Called at most once. */
  readonly serve: () => void;
}

/**
 * - `session`: the request belongs to the session with this id. Its body has not been read.
 * - `nothing`: the request names no session, and may open one. Its body has not been read.
 * - `message`: the request has no session, and its body is this message, which may continue a call or a task.
 */
export type Wanted =
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'message'; readonly frame: Frame };

/**
 * Decides which of several replicas serves a request of one server. Implemented in replicas/; a bridge without other
 * replicas has no placement, and serves every request itself.
 */
export interface Placement {
  /**
   * Serves the request here, passes it on to another replica, or responds with an error. `serve` is called before this
   * returns if nothing has to be asked.
   */
  place(wanted: Wanted, placed: PlacedRequest): void;
  /**
   * Responds to a request of a session that another replica continues, or is about to continue. Returns false if it did
   * not respond.
   */
  refuseMoved(request: IncomingMessage, response: ServerResponse): boolean;
}
