/** The types that a program exchanges with mcp-portage. All of them are public: members are added, never renamed. */
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
  /** Variables of the process, in addition to harmless ones of this process such as PATH and HOME. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** A file of variables, one `NAME=value` per line. `env` has precedence. */
  readonly envFile?: string | undefined;
  /** Default: the working directory of this process. */
  readonly cwd?: string | undefined;
  readonly url?: undefined;
  readonly portage?: EntryOptions | undefined;
}

/** A running server with a URL. */
export interface UrlServer {
  readonly type?: 'http' | 'streamable-http' | 'sse' | undefined;
  readonly url: string | URL;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  readonly command?: undefined;
  readonly portage?: EntryOptions | undefined;
}

/** A server in the form of an entry of `mcpServers`. Texts are used unchanged: variables in them are not expanded. */
export type ServerEntry = CommandServer | UrlServer;

/** Options of a single server. */
export interface EntryOptions extends ServerOptions {
  /** With several servers: true if the bridge counts as ready only when this one is. Default: false. */
  readonly required?: boolean | undefined;
  /**
   * With several servers: names of the only callers that may use this one. For other callers the server does not exist.
   */
  readonly callers?: readonly string[] | undefined;
  /** With several servers: false leaves this one out of `aggregate`. Default: true. */
  readonly aggregate?: boolean | undefined;
  /** The prefix of its tools and prompts in `aggregate`; empty for none. Default: its name. */
  readonly prefix?: string | undefined;
  /** Tools of this server that `aggregate: 'search'` lists nevertheless. */
  readonly alwaysShow?: readonly string[] | undefined;
  /** Settings of single tools, by the names that the server gives them. */
  readonly tools?: Readonly<Record<string, ToolOptions>> | undefined;
}

/** Settings of a tool. Members that are left out stay as the server has them. */
export interface ToolOptions {
  /** Name that clients see: 1 to 128 letters, digits, `_`, `-` and `.`. */
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  /** True if clients neither see nor call the tool. Default: false. */
  readonly hidden?: boolean | undefined;
  /** Names of the only callers that may use the tool. For other callers it does not exist. */
  readonly callers?: readonly string[] | undefined;
}

/** A single server at the paths of the bridge, or several, each below its name: `/<name>/mcp`. */
export type Servers =
  | { readonly server: ServerEntry; readonly servers?: undefined }
  | { readonly servers: Readonly<Record<string, ServerEntry>>; readonly server?: undefined };

// ---- serve and createBridge

/** The log and the observer of a program. */
export interface Listening {
  /** Without it, nothing is logged. */
  readonly log?: BridgeLog | undefined;
  readonly observer?: BridgeObserver | undefined;
}

export type BridgeOptions = HttpOptions & Servers & Listening;
export type ServeOptions = BridgeOptions;

export type CreateBridgeOptions = BridgeOptions & {
  /**
   * The prefix of the bridge's paths in the URLs that `handle` receives, such as `/tools`. Not needed if the framework
   * removes it, as Express does for handlers mounted with `app.use`.
   */
  readonly prefix?: string | undefined;
};

export interface RunningServer extends AsyncDisposable {
  /** The URL for clients of Streamable HTTP; with several servers, that of the first one. */
  readonly url: string;
  /** All addresses, each with a label. */
  readonly urls: readonly BridgeUrl[];
  /** The current status of the servers. */
  inspect(): readonly ServerStatus[];
  /**
   * Lets running calls finish within `shutdownGrace`, then ends streams and server processes. Can be called repeatedly.
   */
  close(): Promise<void>;
  /** Kills the server processes synchronously, for a listener of `process.on('exit')`. */
  killNow(): void;
}

export interface BridgeUrl {
  readonly label: string;
  readonly url: string;
}

/** A bridge inside a program's own web server. It can also listen on a port of its own. */
export interface Bridge extends AsyncDisposable {
  /**
   * Serves a request for the bridge: its endpoints, their OAuth metadata, `/healthz`, `/readyz`, and `/status` and
   * `/metrics` if they are enabled. Any other request is left untouched for `next` or the caller.
   */
  readonly handle: Handle;
  /**
   * Serves requests of the Fetch standard, for web servers such as Hono. A request for another path is answered with
   * 404. Such a request does not reveal the address it arrived at, so authentication is required, or `host: '0.0.0.0'`
   * and `allowAnonymous`.
   */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Listens on `host` and `port`, and resolves with the addresses. */
  listen(): Promise<readonly BridgeUrl[]>;
  inspect(): readonly ServerStatus[];
  /**
   * Closes the bridge as `RunningServer.close` does. Requests for the bridge that `handle` receives afterward are
   * rejected.
   */
  close(): Promise<void>;
  killNow(): void;
}

/** Can be passed on as a function, because it does not use `this`. */
export interface Handle {
  /** For use as middleware of Express, Connect and similar frameworks. */
  (request: HandledRequest, response: ServerResponse, next: () => void): void;
  /** Returns true if the request was for the bridge. */
  (request: HandledRequest, response: ServerResponse): boolean;
}

/** A Node request, with members that frameworks add. */
export type HandledRequest = IncomingMessage & {
  /** The URL as received, if the framework has removed a prefix. */
  readonly originalUrl?: string;
  /** The body, if the framework has already read it. */
  readonly body?: unknown;
};

/**
 * - `not-started`: no client has used the server yet, so it has no process and no connection.
 * - `starting`: the server was started, and has not answered yet.
 * - `ready`: clients can be served, as far as is known.
 * - `failing`: the last attempt to start or reach the server failed, and it is tried again.
 * - `stopped`: the server has failed so often that it is not tried for a while.
 */
export type ServerState = 'not-started' | 'starting' | 'ready' | 'failing' | 'stopped';

export interface ServerStatus {
  readonly name: string;
  readonly state: ServerState;
  /** The reason why the server is not ready; undefined if it is. */
  readonly problem: string | undefined;
  readonly sessions: number;
  readonly openCalls: number;
  /** Number of running processes, including those that are ending. */
  readonly processes: number;
  /** Number of processes that ended unexpectedly. */
  readonly restarts: number;
}

// ---- connect

/** Several servers are one for the client; see `aggregate`. */
export type ConnectOptions = ServedOptions &
  Servers &
  Listening & {
    /**
     * The client's side. `'stdio'`: stdin and stdout of this process, which nothing else may use then. Streams belong
     * to the program and stay open when the connection ends.
     */
    readonly client: 'stdio' | { readonly input: Readable; readonly output: Writable };
  };

export interface Connection extends AsyncDisposable {
  /**
   * Resolves when the connection has ended: with the error, or with undefined if the client or the program has ended
   * it.
   */
  readonly ended: Promise<BridgeError | undefined>;
  /** Lets running calls finish within `shutdownGrace`, then ends the server's process. Can be called repeatedly. */
  close(): Promise<void>;
  killNow(): void;
}

// ---- probe

export interface ProbeOptions extends CommonOptions {
  /** Time limit for the whole probe. Default: 15 s for a URL, 2 min for a command. */
  readonly timeout?: Duration | undefined;
  /** Ends the probe early; the report then has what was found so far. */
  readonly signal?: AbortSignal | undefined;
  readonly log?: BridgeLog | undefined;
}

// ---- log and observer

/** A pino logger, or any object with these methods. */
export interface BridgeLog {
  trace(fields: object, message?: string): void;
  debug(fields: object, message?: string): void;
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
  fatal(fields: object, message?: string): void;
  /** Without it, all levels are enabled. */
  isLevelEnabled?(level: string): boolean;
}

/**
 * Receives events about clients and calls, without payloads, credentials and session ids. Methods are called while a
 * message is processed, so they must return quickly; an exception is logged once and otherwise ignored. Without
 * `callBegan` and `callEnded`, the bridge parses nothing of a call for the observer.
 */
export interface BridgeObserver {
  /** A client has a session. Clients of 2026-07-28 over HTTP have none and appear only in calls. */
  clientConnected?(client: ClientInfo): void;
  clientLeft?(client: ClientInfo, reason: ErrorCode): void;
  /** A client was refused a session. */
  clientRefused?(client: ClientOrigin, reason: ErrorCode): void;
  callBegan?(call: CallInfo): void;
  /** @param call the object that `callBegan` was given */
  callEnded?(call: CallInfo, ending: CallEnding): void;
  /** The state of a server has changed. States are checked once a second. */
  serverChanged?(server: ServerStatus): void;
  /** The bridge itself has failed, for example because its listening socket broke. */
  failed?(error: BridgeError): void;
}

/** Further values may be added. */
export type ClientTransport =
  | 'stdio'
  | 'streamable-http'
  | 'http-sse'
  | 'byte-stream'
  | 'websocket'
  | 'grpc'
  | 'mqtt'
  | 'replay'
  | 'aggregate';

export interface ClientOrigin {
  readonly transport: ClientTransport;
  /** The authenticated caller; undefined if no authentication is configured. */
  readonly principal: string | undefined;
  /** The name of the server that the client uses. */
  readonly server: string;
}

/** A client's unverified description of itself. */
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
  /** The tool that a `tools/call` names, by its name for clients. */
  readonly tool: string | undefined;
  readonly requestBytes: number;
}

/**
 * - `answered`: the server sent a result.
 * - `tool-error`: the tool has run, and its result says that it failed.
 * - `error`: the server answered with an error of this code.
 * - `cancelled`: the client canceled the request or disconnected.
 * - `failed`: the bridge rejected the call or could not get a response.
 */
export type CallOutcome =
  | { readonly kind: 'answered' | 'tool-error' }
  | { readonly kind: 'error'; readonly code: number | undefined }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly code: ErrorCode };

export interface CallEnding {
  readonly outcome: CallOutcome;
  /** Bytes that were sent to the client for this call. */
  readonly bytes: number;
  readonly durationMs: number;
}
