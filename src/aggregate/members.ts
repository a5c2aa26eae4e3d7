import type { CallRegistry } from '../relay/call-registry.ts';
import type { CallContext, CallerEnvironment } from '../relay/ports.ts';
import type { SessionRegistry } from '../relay/sessions/session-registry.ts';

/** A running server of the aggregate, as its clients use it. */
export interface MemberServer {
  readonly sessions: SessionRegistry;
  readonly modernCalls: CallRegistry;
}

/** A server that is part of the aggregate. */
export interface Member {
  /** The server's name in the file. */
  readonly name: string;
  /** The prefix of its tools and prompts; empty: none. */
  readonly prefix: string;
  /** Tools, by the server's own names, that are listed although clients search for the others. */
  readonly alwaysShow: readonly string[];
  /** Returns true if the server exists for this caller. */
  isFor(principal: string | undefined): boolean;
  /** Returns what this member may know of a caller: the headers that pass to it, and variables for its process. */
  viewOf(caller: { readonly headers: CallContext['headers']; readonly environment: CallerEnvironment | undefined }): {
    readonly headers: CallContext['headers'];
    readonly environment: CallerEnvironment | undefined;
  };
  /** The server, if it was started. */
  readonly running: MemberServer | undefined;
  /** Returns the running server, which the first caller starts. Rejects with a BridgeError if it cannot be started now. */
  start(): Promise<MemberServer>;
}

/** The servers of the aggregate, in the order of the file. */
export interface Members {
  readonly all: readonly Member[];
  /** Calls back when servers were added, removed or replaced. Returns a function that stops this. */
  onChange(changed: () => void): () => void;
}
