/**
 * Where the messages of one exchange travel on the client's side: an HTTP response of one POST, or the client's only
 * pipe. Made by a downstream transport, opaque to the relay.
 */
export interface Lane {
  /** False once the client can no longer be reached on it: its connection closed and nothing can be resumed. */
  readonly isOpen: boolean;
  /**
   * Headers of the client's own HTTP request that the user lets pass to a remote server (`--forward-header`), names in
   * lower case. They go along with this exchange's request, and the latest ones with what belongs to no request.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}
