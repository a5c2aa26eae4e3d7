/** What a program gives to mcp-portage and gets of it. Everything here is public: members are added, never renamed. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import type { BridgeError, ErrorCode } from '../errors.ts';
import type { CommonOptions, Duration, HttpOptions, ServedOptions, ServerOptions } from './option-types.ts';

// ---- servers

/** A server that is started as a process. */
export interface CommandServer {
  readonly type?: 'stdio' | undefined;
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** Variables of the process, besides harmless ones of this process such as PATH and HOME. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** A file of variables, one `NAME=value` per line; `env` wins over it. */
  readonly envFile?: string | undefined;
  /** Default: the working directory of this process. */
  readonly cwd?: string | undefined;
  readonly url?: undefined;
  readonly portage?: EntryOptions | undefined;
}

/** A server that runs already, somewhere else. */
export interface UrlServer {
  readonly type?: 'http' | 'streamable-http' | 'sse' | undefined;
  readonly url: string | URL;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  readonly command?: undefined;
  readonly portage?: EntryOptions | undefined;
}

/** A server as an entry of `mcpServers` has it. Texts are taken as they are: no variable in them is replaced. */
export type ServerEntry = CommandServer | UrlServer;

/** What is said of one server alone. */
export interface EntryOptions extends ServerOptions {
  /** Where there are several servers: whether the bridge is ready only when this one is. Default: false. */
  readonly required?: boolean | undefined;
  /** Where there are several servers: names of the only callers that may use this one; for others it does not exist. */
  readonly callers?: readonly string[] | undefined;
}

/** Either one server at the paths of the bridge, or several, each below its name: `/<name>/mcp`. */
export type Servers =
  | { readonly server: ServerEntry; readonly servers?: undefined }
  | { readonly servers: Readonly<Record<string, ServerEntry>>; readonly server?: undefined };

// ---- serve and createBridge

/** What a program may want to know of what happens. */
export interface Listening {
  /** Nothing is logged without it. */
  readonly log?: BridgeLog | undefined;
  readonly observer?: BridgeObserver | undefined;
}

export type BridgeOptions = HttpOptions & Servers & Listening;
export type ServeOptions = BridgeOptions;

export type CreateBridgeOptions = BridgeOptions & {
  /**
   * What comes before the paths of the bridge in the URLs that `handle` is given, such as `/tools`. Not needed where the
   * framework takes it off, as Express does with what `app.use` mounts.
   */
  readonly prefix?: string | undefined;
};

export interface RunningServer extends AsyncDisposable {
  /** Where clients of Streamable HTTP connect; of several servers the first. */
  readonly url: string;
  /** All addresses, with what is there. */
  readonly urls: readonly BridgeUrl[];
  /** What is known of the servers now. */
  inspect(): readonly ServerStatus[];
  /** Lets running calls finish within `shutdownGrace`, then ends streams and server processes. May be called again. */
  close(): Promise<void>;
  /** Ends the server processes at once, without waiting: for a listener of `process.on('exit')`. */
  killNow(): void;
}

export interface BridgeUrl {
  readonly label: string;
  readonly url: string;
}

/** A bridge as part of a web server that a program has already; it may listen on a port of its own as well. */
export interface Bridge extends AsyncDisposable {
  /**
   * Serves a request that is for the bridge: its endpoints, their metadata for OAuth, `/healthz`, `/readyz`, and `/status`
   * and `/metrics` where they are served. Every other request is left untouched for `next`, or for whoever called.
   */
  readonly handle: Handle;
  /**
   * Serves requests of the Fetch standard, as some web servers have them (Hono, for one). What is not for the bridge is
   * answered 404. As such a request does not say where it came in, this takes authentication, or `host: '0.0.0.0'` and
   * `allowAnonymous`.
   */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Listens on `host` and `port`, and resolves with the addresses. */
  listen(): Promise<readonly BridgeUrl[]>;
  inspect(): readonly ServerStatus[];
  /** As of a running server. Whatever `handle` gets from then on for the bridge is refused. */
  close(): Promise<void>;
  killNow(): void;
}

/** Needs no `this`. */
export interface Handle {
  /** As middleware of Express, Connect and their like. */
  (request: HandledRequest, response: ServerResponse, next: () => void): void;
  /** Returns whether the request was for the bridge. */
  (request: HandledRequest, response: ServerResponse): boolean;
}

/** A request of Node, with what frameworks add to it. */
export type HandledRequest = IncomingMessage & {
  /** The URL as it came, where the framework has taken a part off. */
  readonly originalUrl?: string;
  /** The body, where something has read it before. */
  readonly body?: unknown;
};

/**
 * - `idle`: nobody has come for it yet; it has no process and no connection.
 * - `ready`: clients can be served, as far as is known.
 * - `unproven`: it did not work last time.
 * - `refused`: it cannot be served now.
 */
export type ServerState = 'idle' | 'ready' | 'unproven' | 'refused';

export interface ServerStatus {
  readonly name: string;
  readonly state: ServerState;
  /** Why it is not ready; undefined where it is. */
  readonly problem: string | undefined;
  readonly sessions: number;
  readonly openCalls: number;
  /** Running ones, those that are ending included. */
  readonly processes: number;
  /** Processes that ended though nobody wanted that. */
  readonly restarts: number;
}

// ---- connect

export type ConnectOptions = ServedOptions &
  Listening & {
    readonly server: ServerEntry;
    /**
     * The client's end. `'stdio'`: the stdin and stdout of this process, which nothing else may then use. Streams are the
     * program's own and stay open when the connection ends.
     */
    readonly client: 'stdio' | { readonly input: Readable; readonly output: Writable };
  };

export interface Connection extends AsyncDisposable {
  /** Resolves when all is over: with what went wrong, or with undefined when the client or the program has ended it. */
  readonly ended: Promise<BridgeError | undefined>;
  /** Lets running calls finish within `shutdownGrace`, then ends the server's process. May be called again. */
  close(): Promise<void>;
  killNow(): void;
}

// ---- probe

export interface ProbeOptions extends CommonOptions {
  /** For everything that is done with the server. Default: 15 s for a URL, 2 min for a command. */
  readonly timeout?: Duration | undefined;
  /** Ends it early; what was found until then is reported. */
  readonly signal?: AbortSignal | undefined;
  readonly log?: BridgeLog | undefined;
}

// ---- log and observer

/** A logger of pino, or anything with these methods. */
export interface BridgeLog {
  trace(fields: object, message?: string): void;
  debug(fields: object, message?: string): void;
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
  fatal(fields: object, message?: string): void;
  /** Absent: every level is. */
  isLevelEnabled?(level: string): boolean;
}

/**
 * Hears of clients and calls. It sees no payload, no credential and no session id. Called in the middle of a message's way:
 * a method must not take long, and what it throws is logged once and goes no further. Where it has neither `callBegan` nor
 * `callEnded`, nothing is read of a call for its sake.
 */
export interface BridgeObserver {
  /** A client has a session. One of 2026-07-28 over HTTP has none, and is known by its calls. */
  clientConnected?(client: ClientInfo): void;
  clientLeft?(client: ClientInfo, reason: ErrorCode): void;
  /** A client got no session. */
  clientRefused?(client: ClientOrigin, reason: ErrorCode): void;
  callBegan?(call: CallInfo): void;
  /** @param call the object that `callBegan` was given */
  callEnded?(call: CallInfo, ending: CallEnding): void;
  /** The state of a server is another one than before; looked at once a second. */
  serverChanged?(server: ServerStatus): void;
  /** The bridge itself has failed: its listening socket broke, say. */
  failed?(error: BridgeError): void;
}

/** Further ones may come. */
export type ClientTransport = 'stdio' | 'streamable-http' | 'http-sse' | 'byte-stream' | 'websocket';

export interface ClientOrigin {
  readonly transport: ClientTransport;
  /** The authenticated caller; undefined: nobody is asked. */
  readonly principal: string | undefined;
  /** The name of the server that it is for. */
  readonly server: string;
}

/** What a client says of itself; nobody has checked it. */
export interface ClientInfo extends ClientOrigin {
  /** `legacy`: the revisions up to 2025-11-25. `modern`: 2026-07-28. */
  readonly era: 'legacy' | 'modern';
  readonly revision: string | undefined;
  readonly name: string | undefined;
  readonly version: string | undefined;
}

export interface CallInfo {
  readonly client: ClientInfo;
  readonly method: string;
  /** The tool that a `tools/call` names. */
  readonly tool: string | undefined;
  readonly requestBytes: number;
}

/**
 * - `answered`: the server sent a result.
 * - `error`: the server answered with an error of this code.
 * - `cancelled`: the client withdrew the request, or left.
 * - `failed`: the bridge could not have it answered, or refused it.
 */
export type CallOutcome =
  | { readonly kind: 'answered' }
  | { readonly kind: 'error'; readonly code: number | undefined }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly code: ErrorCode };

export interface CallEnding {
  readonly outcome: CallOutcome;
  /** What was sent to the client for it. */
  readonly bytes: number;
  readonly durationMs: number;
}
