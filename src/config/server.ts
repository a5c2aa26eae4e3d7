import type { MappedHeader, TokenSource } from './access.ts';
import type { RemoteConfig } from './remote.ts';

/** One server that is carried to clients, and what they may take of it. */
export interface ServerConfig {
  /** How it is known where there are several; undefined: it is the one of the command line, at the listener's own paths. */
  readonly listing: Listing | undefined;
  readonly target: Target;
  readonly protocol: Protocol;
  /** How it is reached, where it is somewhere else. */
  readonly remote: RemoteConfig;
  /** How it is started, where it is a command. */
  readonly child: ChildConfig;
  /** What its process is told of the caller that it is started for; none where processes are shared or not ours. */
  readonly mapHeaders: readonly MappedHeader[];
  readonly tools: ToolChoice;
  readonly sessions: SessionConfig;
  readonly limits: ServerLimits;
  /** Where it is served besides, by calling there. */
  readonly hubs: readonly HubConfig[];
}

/** Where clients wait to be called. */
export interface HubConfig {
  /** ws or wss, without userinfo; its query may hold a credential. */
  readonly url: URL;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly token: TokenSource | undefined;
  readonly caFile: string | undefined;
  /** HTTP_PROXY, HTTPS_PROXY, NO_PROXY as the environment had them. */
  readonly proxyEnv: Readonly<Record<string, string>>;
}

/** A server of a configuration file. */
export interface Listing {
  /** As the file writes it. */
  readonly name: string;
  /** What comes before the listener's own paths: one segment of a URL. */
  readonly segment: string;
  /** Whether the process is ready only when this server is. */
  readonly isRequired: boolean;
  /** Principals that it exists for; undefined: whoever may come in. */
  readonly callers: readonly string[] | undefined;
}

/** Which tools of a server its clients see and call, as patterns for names. */
export interface ToolChoice {
  /** Only these; empty: all of them. */
  readonly include: readonly string[];
  /** None of these, whatever is included. */
  readonly exclude: readonly string[];
}

export type Target = CommandTarget | UrlTarget | StreamTarget;

/** A server to start: the arguments after `--`. */
export interface CommandTarget {
  readonly kind: 'command';
  readonly command: string;
  readonly args: readonly string[];
}

/** A server that runs already, somewhere else. */
export interface UrlTarget {
  readonly kind: 'url';
  /** http or https, or ws or wss where a WebSocket is opened; without userinfo. */
  readonly url: URL;
  /** The Unix socket or named pipe where it is asked for, which the host of the URL then says nothing of; undefined: over the network. */
  readonly socketPath: string | undefined;
}

/** A server that runs already, and takes lines of JSON on a byte stream. */
export interface StreamTarget {
  readonly kind: 'stream';
  readonly address: StreamAddress;
}

export type StreamAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: 'off' | 'on' }
  /** A Unix socket. */
  | { readonly kind: 'socket'; readonly path: string };

/** The era the server speaks; `auto`: it is asked. */
export type Protocol = 'auto' | 'legacy' | 'modern';

/** How the process of a server is started. */
export interface ChildConfig {
  readonly cwd: string | undefined;
  /** The child's whole environment, already composed from --env and --inherit-env. */
  readonly env: Readonly<Record<string, string>>;
  /** Names that were withheld because --inherit-env is off; for the hint when a child fails to start. */
  readonly withheldEnv: readonly string[];
  readonly pty: boolean;
}

export type Isolation = 'session' | 'shared';

/** How long sessions with a server live, how many there may be, and who shares its process. */
export interface SessionConfig {
  readonly isolation: Isolation;
  /** Children kept started ahead of need. */
  readonly prewarm: number;
  readonly sessionTimeoutMs: number;
  /** How long a session without a connection or an open call stays: after its client left, and of a client that uses no stream. */
  readonly idleTimeouts: { readonly leftMs: number; readonly quietMs: number };
  readonly maxSessions: number;
  readonly maxSessionsPerCaller: number;
  /** Sessions of a legacy server for clients that have none of their own. */
  readonly poolSize: number;
  /** Age at which the connection of a stream is closed, for clients that resume it; 0: never. */
  readonly pollAfterMs: number;
}

/** What may come and go of one server. */
export interface ServerLimits {
  /** Its processes, those that are ending included. */
  readonly maxChildren: number;
  readonly maxMessageBytes: number;
  /** The longest line for a client on stdin and stdout, with its line break; undefined: what most of them take. */
  readonly maxLineBytes: number | undefined;
  /** Levels of arrays and objects in a message of a client. */
  readonly maxJsonDepth: number;
  /** Calls of one session, or of one caller with a name but no sessions, that wait for an answer. */
  readonly maxInFlightPerSession: number;
  /** Event streams of one session over Streamable HTTP, and calls whose answer may become one. */
  readonly maxStreamsPerSession: number;
  /** Kept of a session's streams for clients that come back. */
  readonly maxReplayBytes: number;
  /** Calls that wait for what their clients are asked. */
  readonly maxParkedCalls: number;
  /** What those hold, and as much again of outcomes. */
  readonly maxParkedBytes: number;
  /** Silence allowed to one call; 0: no limit. */
  readonly requestTimeoutMs: number;
  /** Time for one call in all; 0: no limit. */
  readonly maxCallMs: number;
  /** For a process that serves several clients, to show life when it is asked to; 0: it is never asked. */
  readonly hangTimeoutMs: number;
}
