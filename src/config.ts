/** What the user asked for, parsed once; inside the bridge nothing re-checks it. Times in ms, sizes in bytes. */
export interface Config {
  readonly listener: ListenerConfig;
  readonly servers: readonly [ServerConfig, ...ServerConfig[]];
  readonly limits: ProcessLimits;
  readonly observation: ObservationConfig;
  /** Undefined: this is the only one that serves these servers. */
  readonly cluster: ClusterConfig | undefined;
  readonly log: LogConfig;
}

/** Several replicas behind one address. */
export interface ClusterConfig {
  readonly store: {
    readonly address: StoreAddress;
    readonly tls: StoreTls;
    /** Before each key. */
    readonly prefix: string;
  };
  /** Where the others reach this one: an origin. */
  readonly advertise: URL;
  /** What they share: one key a line, of which the first seals. */
  readonly key: string;
  /** After this much silence of a replica others take over what they can. */
  readonly leaseMs: number;
}

/** Where Redis is. */
export interface StoreAddress {
  /**
   * - `single`: one server, or whatever stands for it at one address.
   * - `sentinel`: the sentinels know which server it is now.
   * - `cluster`: some nodes of a Redis Cluster, which know the others.
   */
  readonly topology: 'single' | 'sentinel' | 'cluster';
  readonly hosts: readonly [StoreHost, ...StoreHost[]];
  /** What the sentinels call it; only they need it. */
  readonly masterName: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** How to log in at the sentinels, which have users of their own; undefined: they ask nobody. */
  readonly sentinelLogin: { readonly user: string | undefined; readonly password: string } | undefined;
  readonly database: number;
  readonly tls: boolean;
}

/** Whom we trust as Redis, and as whom we show ourselves: contents of PEM files. Undefined: what Node has, or nobody. */
export interface StoreTls {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export interface StoreHost {
  readonly host: string;
  readonly port: number;
}

/** What is kept and told of clients and their calls. */
export interface ObservationConfig {
  /** The page about the running bridge, and what programs get of it. */
  readonly status: 'served' | 'off';
  /** Who shows it may look; undefined: whoever may call, where nobody is asked who they are and only this machine can. */
  readonly statusToken: TokenSource | undefined;
  /** Figures for Prometheus. */
  readonly metrics: 'served' | 'off';
  /** Calls are counted for the migration report, and kept in a folder; without one, as long as the process runs. Undefined: neither. */
  readonly usage: { readonly stateDirectory: string | undefined } | undefined;
  /** A line for each call; undefined: none. */
  readonly audit: { readonly file: string; readonly unwritable: 'refuses-calls' | 'is-logged' } | undefined;
  /**
   * Calls are traced, and a collector of OpenTelemetry gets their spans. Where it is, and all that is not here, the SDK of
   * OpenTelemetry reads from the environment. Undefined: neither.
   */
  readonly traces: { readonly protocol: TraceProtocol } | undefined;
}

/** How spans are written; over HTTP both. */
export type TraceProtocol = 'http/protobuf' | 'http/json';

/** The side towards clients. */
export type ListenerConfig = HttpListenerConfig | PipeListenerConfig;

/** `serve`: clients of every era over HTTP. */
export interface HttpListenerConfig {
  readonly kind: 'http';
  /** Where it listens, everywhere for the same clients; empty: nowhere over HTTP. */
  readonly addresses: readonly ListenAddress[];
  /** Where it takes lines on byte streams; each connection is one client of one server. */
  readonly streams: readonly StreamConfig[];
  /** For ports: a socket of this machine has nobody on the way who could read along. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly endpoints: EndpointConfig;
  readonly access: AccessConfig;
  /** Limits the head of a request. */
  readonly maxHeaderBytes: number;
  /** The way to an issuer of access tokens: HTTP_PROXY, HTTPS_PROXY, NO_PROXY as the environment had them. */
  readonly proxyEnv: Readonly<Record<string, string>>;
}

export interface StreamConfig {
  readonly address: BoundAddress;
  /** What comes before the paths of the server that it leads to, as in its listing; undefined: it has none. */
  readonly segment: string | undefined;
}

export type ListenAddress = BoundAddress | InheritedAddress;

/** What an address is once something listens there. */
export type BoundAddress = TcpAddress | SocketAddress;

export interface TcpAddress {
  readonly kind: 'tcp';
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** A Unix socket; on Windows a named pipe, which has no mode. */
export interface SocketAddress {
  readonly kind: 'socket';
  readonly path: string;
  /** Permissions of the file, which say who may connect. */
  readonly mode: number;
}

/** A socket that whoever started this process has opened and listens on, and that stays theirs: systemd, for example. */
export interface InheritedAddress {
  readonly kind: 'inherited';
  readonly fd: number;
  readonly bound: BoundAddress;
}

/** `connect`: one client on this process's own stdin and stdout. */
export interface PipeListenerConfig {
  readonly kind: 'pipes';
}

/** Stands above the limits of each server. */
export interface ProcessLimits {
  /** Calls of all clients together that wait for an answer. */
  readonly maxInFlight: number;
  /** Processes of all servers, those that are ending included. */
  readonly maxChildren: number;
  readonly shutdownGraceMs: number;
}

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

/** How a remote server is reached. */
export interface RemoteConfig {
  readonly transport: 'auto' | 'streamable-http' | 'sse';
  /** Sent with every request, `${ENV}` already expanded; names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Re-read when it changes; its content is sent as a bearer token. */
  readonly bearerTokenFile: string | undefined;
  readonly tls: {
    readonly caFile: string | undefined;
    readonly certFile: string | undefined;
    readonly keyFile: string | undefined;
  };
  /** Names (lower case) of inbound headers that may pass to the server; nothing else does. */
  readonly forwardHeaders: readonly string[];
  readonly timeouts: RemoteTimeouts;
  /** How to log in when the server asks for it; undefined: that is reported and nothing done. */
  readonly login: LoginConfig | undefined;
  /** Pause between pings on an idle connection; 0: none. */
  readonly keepAliveMs: number;
  /** HTTP_PROXY, HTTPS_PROXY, NO_PROXY as the environment had them. */
  readonly proxyEnv: Readonly<Record<string, string>>;
}

/** An OAuth client: how it gets tokens for the server, and in whose name. */
export interface LoginConfig {
  /** A user logs in with a browser, or the client is its own user. */
  readonly grant: 'authorization-code' | 'client-credentials';
  /** What to do with the tokens of the last run. */
  readonly stored: 'use' | 'forget';
  /** Known to the authorization server beforehand; undefined: it gets to know us now. */
  readonly client: RegisteredClient | undefined;
  /** Where a document describes the client, whose URL is then its id. */
  readonly clientMetadataUrl: string | undefined;
  /** The only authorization server that is trusted, as it writes itself; undefined: whichever the server names. */
  readonly issuer: string | undefined;
  /** Asked for in place of those that the server names. */
  readonly scopes: readonly string[];
  /** Where the browser comes back to, on this machine; port 0 picks a free one. */
  readonly callback: URL;
  /** A program and its arguments, among them `%s` for the address; undefined: the address is only logged. */
  readonly browser: readonly string[] | undefined;
  /** Where logins are kept; undefined: nowhere. */
  readonly stateDirectory: string | undefined;
}

/** How a client proves that it is the one; `none`: it cannot. */
export interface RegisteredClient {
  readonly id: string;
  readonly proof:
    | { readonly kind: 'none' }
    | { readonly kind: 'secret'; readonly secret: string }
    /** A private key (PEM). */
    | { readonly kind: 'key'; readonly file: string };
}

/** Milliseconds; 0: no limit. The limit on a call's silence is ServerLimits.requestTimeoutMs. */
export interface RemoteTimeouts {
  /** Name resolution, TCP and TLS. */
  readonly connectMs: number;
  /** From the request's last byte to the response's head. */
  readonly firstByteMs: number;
  /** Silence on a stream, keep-alive comments included. */
  readonly idleMs: number;
  /** One request and all of its answer, however talkative. */
  readonly callMs: number;
}

export interface EndpointConfig {
  /** Streamable HTTP. */
  readonly path: string;
  /** HTTP+SSE, the transport of 2024-11-05, as a whole: its paths, and its streams at `path`. */
  readonly httpSse: 'served' | 'off';
  /** HTTP+SSE: the GET stream and the POST endpoint it announces. */
  readonly ssePath: string;
  readonly messagePath: string;
  /** When HTTP+SSE ends; undefined: that is not known yet. */
  readonly sunset: SunsetConfig | undefined;
  readonly webSocket: 'served' | 'off';
  readonly wsPath: string;
  /** How clients reach this process from outside, without a trailing slash; undefined: as it listens. */
  readonly baseUrl: URL | undefined;
}

/** The announced end of HTTP+SSE. */
export interface SunsetConfig {
  /** As the user wrote it. */
  readonly date: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** What its clients get from then on. */
  readonly afterwards: 'refuse' | 'serve';
}

export interface AccessConfig {
  /** Host header names accepted besides the loopback names and the listening address. */
  readonly allowHosts: readonly string[];
  /** Web origins that may call, and get CORS headers. */
  readonly allowOrigins: readonly string[];
  /** How callers show who they are; undefined: nobody is asked. */
  readonly auth: AuthConfig | undefined;
}

/**
 * Whether there can be callers of several names: where all have one, what is for one caller is for all. What a header says
 * of a caller is part of its name.
 */
export function hasSeveralNames({ auth }: Pick<AccessConfig, 'auth'>, mapHeaders: readonly MappedHeader[]): boolean {
  if (mapHeaders.length > 0 || auth?.oauth !== undefined) return true;
  return new Set(auth?.tokens.map(({ principal }) => principal)).size > 1;
}

/** The value of a caller's header becomes a variable of its own server process. */
export interface MappedHeader {
  /** Lower case. */
  readonly header: string;
  readonly variable: string;
}

/** Any of these ways in is enough; there is at least one. */
export interface AuthConfig {
  readonly tokens: readonly TokenSource[];
  readonly oauth: OAuthConfig | undefined;
}

/** A token the user handed out, and the name of whom it belongs to. */
export type TokenSource =
  | { readonly kind: 'value'; readonly principal: string; readonly token: string }
  /** Re-read when it changes. */
  | { readonly kind: 'file'; readonly principal: string; readonly file: string };

/** The issuer whose access tokens are accepted, and what a token must be for. */
export interface OAuthConfig {
  /** What the issuer calls itself, compared as text. */
  readonly issuer: string;
  /** One of these, or the URL of the server that is called. */
  readonly audiences: readonly string[] | 'own-urls';
  readonly keys: KeyLocation;
  readonly scopes: readonly string[];
}

export type KeyLocation =
  /** Where the issuer's metadata says. */
  | { readonly kind: 'discovered' }
  | { readonly kind: 'url'; readonly url: URL }
  | { readonly kind: 'file'; readonly file: string };

export interface ChildConfig {
  readonly cwd: string | undefined;
  /** The child's whole environment, already composed from --env and --inherit-env. */
  readonly env: Readonly<Record<string, string>>;
  /** Names that were withheld because --inherit-env is off; for the hint when a child fails to start. */
  readonly withheldEnv: readonly string[];
  readonly pty: boolean;
}

export type Isolation = 'session' | 'shared';

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

export interface LogConfig {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly format: 'pretty' | 'json';
}

/** Equal for configurations that say the same. It holds what they hold, secrets too. */
export function fingerprint(config: unknown): string {
  return JSON.stringify(config, (_key, value: unknown) => (value instanceof Map ? [...value] : value));
}
