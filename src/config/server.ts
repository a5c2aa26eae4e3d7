import type { MappedHeader, TokenSource } from './access.ts';
import type { BrokerAccount, RemoteConfig } from './remote.ts';
import type { ToolChoice } from './tool-choice.ts';

/** A bridged server, and its limits for clients. */
export interface ServerConfig {
  /**
   * The server's entry in a file; undefined for the server of the command line and for the aggregate, which are served
   * at the listener's own paths.
   */
  readonly listing: Listing | undefined;
  readonly target: Target | AggregateTarget;
  readonly protocol: Protocol;
  /** Applies to a server with a URL. */
  readonly remote: RemoteConfig;
  /** Applies to a server that is started by a command. */
  readonly child: ChildConfig;
  /**
   * Headers of the caller that its server process receives as variables. Empty if callers share processes, or for
   * servers that the bridge does not start.
   */
  readonly mapHeaders: readonly MappedHeader[];
  /** Files whose changes restart the server's processes. Empty for servers that the bridge does not start. */
  readonly watch: readonly WatchedPath[];
  readonly tools: ToolChoice;
  /** The file with the pins of its tools; undefined: tools may change as they like. */
  readonly pinTools: string | undefined;
  /** Applies to a recorded server: how many times faster than recorded it speaks; 0: without pauses. */
  readonly replaySpeed: number;
  readonly sessions: SessionConfig;
  readonly limits: ServerLimits;
  /** Hubs at which the server is offered in addition, over connections that the bridge opens. */
  readonly hubs: readonly HubConfig[];
}

/** A place at which clients wait for servers to connect. */
export type HubConfig = WebSocketHubConfig | MqttHubConfig;

/** A WebSocket endpoint. */
export interface WebSocketHubConfig {
  readonly kind: 'websocket';
  /** A ws or wss URL without userinfo; its query may hold a credential. */
  readonly url: URL;
  /** Header names are in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly token: TokenSource | undefined;
  readonly caFile: string | undefined;
  /** HTTP_PROXY, HTTPS_PROXY, NO_PROXY from the environment. */
  readonly proxyEnv: Readonly<Record<string, string>>;
}

/** A broker of MQTT 5, and the name of the server there. */
export interface MqttHubConfig {
  readonly kind: 'mqtt';
  readonly address: MqttAddress;
  readonly serverName: string;
  readonly account: BrokerAccount;
  readonly caFile: string | undefined;
}

/** A server of a configuration file. */
export interface Listing {
  /** The name as written in the file. */
  readonly name: string;
  /** The URL segment before the listener's own paths. */
  readonly segment: string;
  /** True if the bridge counts as ready only when this server is. */
  readonly isRequired: boolean;
  /** The callers that may use the server, by their names; for others it does not exist. Undefined: all callers. */
  readonly callers: readonly string[] | undefined;
  /** The part that the server has in the aggregate; undefined: none. */
  readonly membership: Membership | undefined;
}

/** The part of a server in the aggregate. */
export interface Membership {
  /** The prefix of its tools and prompts; empty: none. */
  readonly prefix: string;
  /** Tools, by the server's own names, that are listed although clients search for the others. */
  readonly alwaysShow: readonly string[];
}

export type Target = CommandTarget | UrlTarget | StreamTarget | GrpcTarget | MqttTarget | ReplayTarget;

/** The listed servers that have a membership, as one server. */
export interface AggregateTarget {
  readonly kind: 'aggregate';
  /** The tools that clients see: all of them, or those that search for the others. */
  readonly shows: 'all' | 'search';
}

/** The name of the aggregate in logs, metrics and lists of servers. */
export const AGGREGATE_NAME = 'aggregate';

/** A server that the bridge starts: the arguments after `--`. */
export interface CommandTarget {
  readonly kind: 'command';
  readonly command: string;
  readonly args: readonly string[];
}

/** A running server with a URL. */
export interface UrlTarget {
  readonly kind: 'url';
  /** An http or https URL, or ws or wss for WebSocket; without userinfo. */
  readonly url: URL;
  /**
   * The Unix socket or named pipe of the server, which replaces the host of the URL; undefined: the server is reached
   * over the network.
   */
  readonly socketPath: string | undefined;
}

/** A running server that exchanges lines of JSON on a byte stream. */
export interface StreamTarget {
  readonly kind: 'stream';
  readonly address: StreamAddress;
}

/** A running server that exchanges JSON-RPC messages on streams of gRPC. */
export interface GrpcTarget {
  readonly kind: 'grpc';
  readonly host: string;
  readonly port: number;
  readonly tls: 'off' | 'on';
}

/** A server of a recording, which the bridge replays. */
export interface ReplayTarget {
  readonly kind: 'replay';
  readonly file: string;
  /** Its name in the recording; undefined: the recording has one server. */
  readonly server: string | undefined;
}

export type StreamAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: 'off' | 'on' }
  /** A Unix socket. */
  | { readonly kind: 'socket'; readonly path: string };

/** A server that a broker of MQTT 5 carries messages to. */
export interface MqttTarget {
  readonly kind: 'mqtt';
  readonly address: MqttAddress;
  /** The name of the service, which several instances may have. */
  readonly serverName: string;
  /** The MQTT client id of the only instance that is used; undefined: any that says that it is online. */
  readonly serverId: string | undefined;
}

export interface MqttAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: 'off' | 'on';
}

/** The server's era; `auto` detects it. */
export type Protocol = 'auto' | 'legacy' | 'modern';

/** The process of a server. */
export interface ChildConfig {
  readonly cwd: string | undefined;
  /** The child's whole environment, composed from --env and --inherit-env. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that were withheld because --inherit-env is off; named in the hint when a child fails to start. */
  readonly withheldEnv: readonly string[];
  readonly pty: boolean;
}

/** A file, a folder with all below it, or a pattern for files with `*`, `**`, `?`, `[a-z]` and `{a,b}`. */
export interface WatchedPath {
  readonly path: string;
  /** The absolute path of the folder that `path` is relative to. */
  readonly folder: string;
}

export type Isolation = 'session' | 'shared';

/** Lifetime and number of a server's sessions, and whether they share a process. */
export interface SessionConfig {
  readonly isolation: Isolation;
  /** Number of children that are started before a client needs them. */
  readonly prewarm: number;
  readonly sessionTimeoutMs: number;
  /**
   * Lifetime of a session without a connection or an open call: `leftMs` if its client has left or has never come back
   * after opening it; `quietMs` for a client that uses no stream.
   */
  readonly idleTimeouts: { readonly leftMs: number; readonly quietMs: number };
  readonly maxSessions: number;
  readonly maxCallerSessions: number;
  /** Number of sessions with a legacy server for clients that have no session of their own. */
  readonly poolSize: number;
  /** Age at which a stream's connection is closed, for clients that can resume it; 0: never. */
  readonly pollAfterMs: number;
}

/** Limits for one server. */
export interface ServerLimits {
  /** Number of its processes, including those that are ending. */
  readonly maxChildren: number;
  readonly maxMessageBytes: number;
  /**
   * The longest line for a client on stdin and stdout, including its line break; undefined: a default that most clients
   * accept.
   */
  readonly maxLineBytes: number | undefined;
  /** Nested arrays and objects in a client's message. */
  readonly maxJsonDepth: number;
  /** Open calls of one session, or of one named caller without sessions. */
  readonly maxSessionInFlight: number;
  /** Event streams of one Streamable HTTP session, including calls whose response may become a stream. */
  readonly maxSessionStreams: number;
  /** Bytes of a session's streams that are kept for clients that reconnect. */
  readonly maxReplayBytes: number;
  /** Largest part of a tool's result that is passed on whole; 0: no limit. */
  readonly maxResultBytes: number;
  /** Calls that wait for their client's answer to an input request. */
  readonly maxParkedCalls: number;
  /** Bytes held by parked calls; outcomes that were not fetched may take the same amount again. */
  readonly maxParkedBytes: number;
  /** Limit for the silence of a call; 0: none. */
  readonly requestTimeoutMs: number;
  /** Limit for the whole duration of a call; 0: none. */
  readonly maxCallTimeMs: number;
  /** Time for a process that serves several clients to answer a liveness request; 0: none is sent. */
  readonly hangTimeoutMs: number;
}
