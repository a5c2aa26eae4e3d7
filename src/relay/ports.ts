/**
 * Interfaces between the relay and everything that touches bytes. Transports implement DownstreamPeer and UpstreamLink,
 * and the relay implements the two listeners. Neither side depends on the other's concrete types.
 *
 *   client ⇄ downstream/* ── ClientListener ──▶ Relay ── UpstreamLink ──▶ upstream/* ⇄ server
 *                         ◀─ DownstreamPeer ──       ◀─ ServerListener ──
 *
 * Backpressure is a boolean and a callback: `send` returns false when the far side is full, although the message was
 * still taken, and the listener's `clientDrained` or `serverDrained` follows when there is room again. In between, the
 * caller pauses its own source.
 */
import type { BridgeError } from '../errors.ts';
import type { Revision } from '../mcp/vocabulary/revisions.ts';
import type { Frame } from '../wire/frame.ts';
import type { Call, Lane } from './call.ts';
import type { CallServer } from './modern-call.ts';
import type { Readiness } from './readiness.ts';
import type { SessionState } from './sessions/session-state.ts';

/** The client as the relay sees it. Implemented in downstream/. */
export interface DownstreamPeer {
  /** True while the client has a connection to the bridge. A session with a connected client is not idle. */
  readonly isConnected: boolean;
  /**
   * True if the client has closed its stream for messages that belong to no call, and has asked nothing since. Most
   * clients end this way.
   */
  readonly hasLeft: boolean;
  /**
   * Sends a message to the client: on the lane of the call if there is one, otherwise on any stream that may carry
   * messages of no request. A response ends its lane. Returns false if the client is full; `clientDrained` follows.
   */
  send(frame: Frame, call?: Call): boolean;
  /** Gives up the lane of a call that ends without an answer, because its client has withdrawn the request. */
  release(call: Call): void;
  /** Called after the handshake. From then on the peer behaves as this revision requires. */
  negotiated(revision: Revision): void;
  /** Stops taking messages from the client until `resume` is called. */
  pause(): void;
  resume(): void;
  /** Ends the client's streams, because the relay has finished with this client. May be called twice. */
  close(reason: BridgeError): void;
}

/** Called by a downstream transport with everything that happens on the client's side. */
export interface ClientListener {
  fromClient(frame: Frame, lane: Lane): void;
  /** Called when the client has capacity again. */
  clientDrained(): void;
  /**
   * Called when a request of the server could not be delivered to the client in time. The server gets `reason` as its
   * answer.
   */
  undeliverable(request: Frame, reason: BridgeError): void;
  /** Called when the client is gone for good: its session has ended, or its pipe is closed. */
  clientClosed(reason: BridgeError): void;
}

/** The process of a server, as its supervisors see it. */
export interface ServerProcess {
  /**
   * Time of the latest output of the process: any bytes of a message or on stderr. Starts with the time of its start.
   */
  readonly lastHeardMs: number;
  /** Resolves when nothing of the process group runs anymore. Never rejects. */
  readonly gone: Promise<void>;
}

/** The server as the relay sees it. Implemented in upstream/ and in relay/shared/. */
export interface UpstreamLink {
  /** The listener is called for everything that happens from its assignment on. */
  listener: ServerListener | undefined;
  /** The process that the server runs in. Undefined if the bridge has started none, or has not started it yet. */
  readonly process: ServerProcess | undefined;
  /**
   * Sends a message to the server. `call` is given for requests, and for notifications about a request (canceled).
   * Returns false if the server is full; `serverDrained` follows.
   */
  send(frame: Frame, call?: Call): boolean;
  /** Stops reading messages of the server until `resume` is called. */
  pause(): void;
  resume(): void;
  /**
   * Ends the connection to the server, and its process if there is one. The listener is called no more, not even for
   * the end. May be called twice.
   */
  close(reason: BridgeError): void;
}

/** Called by an upstream transport with everything that happens on the server's side. */
export interface ServerListener {
  /** `call` is given if the transport itself can tell which call the message belongs to. */
  fromServer(frame: Frame, call?: Call): void;
  /**
   * Called for a message that could not be taken, because it is too large or not a message. Its call fails, and the
   * link continues.
   */
  serverFault(fault: ServerFault): void;
  serverDrained(): void;
  /**
   * Called when another process has taken the place of the server's, with its answer to the handshake. Only listeners
   * that show this answer to clients which come later have the method: the session itself goes on.
   */
  serverReplaced?(answer: Frame): void;
  /**
   * Called once when the server is gone, after the last `fromServer` and never from within `dial`. Not called for a
   * link that was closed by `close`.
   */
  serverClosed(reason: BridgeError): void;
}

/** Owns a link to a server that may still have to be found when it is dialed. */
export interface LinkOwner extends ServerListener {
  /** Called once the server is found. The owner listens to `link` already, which takes the place of the dialed link. */
  serverFound(link: UpstreamLink): void;
}

/**
 * A message that had to be dropped. Its kind and id are known only if the scan of its first and last bytes found them.
 */
export interface ServerFault {
  readonly error: BridgeError;
  readonly kind: Frame['kind'] | undefined;
  readonly id: Frame['id'];
}

/** The client that a link for modern requests is for. Each of its requests carries its own metadata. */
export interface CallContext {
  /**
   * The authenticated caller, or one name for all callers if there is no authentication. Data of one principal is never
   * shown to another.
   */
  readonly principal: string;
  /** Headers of the caller's HTTP request that `--forward-header` names; see `Lane`. */
  readonly headers: Lane['headers'];
}

/** The common part of everything that opens connections to one server. */
export interface Dialer {
  /** The name of the server in logs and error messages. */
  readonly name: string;
  /** Answers whether a client could be served now, as far as is known without trying. */
  readiness(): Readiness;
  /** Ends spare children and timers of the dialer itself. Resolves when all its children are gone. */
  close(): Promise<void>;
  /** Kills everything that was started, synchronously. The last resort, so that nothing stays behind. */
  killNow(): void;
}

/** Opens links for sessions, to a server that may still have to be found. */
export interface SessionDialer extends Dialer {
  /**
   * Opens a new link, for one session of the legacy era or for modern requests of the clients that share it. Throws a
   * BridgeError if none can be opened now.
   * @param session state that a link to a server with sessions keeps up to date, and continues if the session has begun
   *   elsewhere. Undefined if the state is not needed.
   */
  dial(owner: LinkOwner, session?: SessionState): UpstreamLink;
}

/** Opens links to a server that is known. */
export interface KnownServerDialer extends SessionDialer {
  dial(listener: ServerListener, session?: SessionState): UpstreamLink;
}

/** Serves modern requests. */
export interface CallDialer extends Dialer {
  /**
   * Opens a new link for many requests of one client, such as one on a pipe. Throws a BridgeError if none can be opened
   * now.
   */
  dialCalls(owner: LinkOwner, context: CallContext): UpstreamLink;
  /** Returns the server for a request that comes alone. Throws a BridgeError if it can take none now. */
  callServer(): CallServer;
}

/** Opens connections to one server for clients of both eras. */
export interface UpstreamDialer extends SessionDialer, CallDialer {}

/** Environment variables for a process that is started for one caller alone. */
export type CallerEnvironment = Readonly<Record<string, string>>;

/**
 * The rules for sessions that can outlive their connection to a server. `afterLoss` is the consequence of a lost
 * connection.
 * - `goes-on`: the session continues on another connection, even if the server there offers something else, for a
 *   client that cannot be made to open a new session.
 * - `ends`: the session ends, and its client opens a new one. Only a stored session is restored, when it has begun
 *   elsewhere. It also ends if the connection that it is restored on speaks another revision. Its first connection is
 *   opened `at-once`, or `with-a-request` of the client, whose headers the server requires.
 */
export type RestorePolicy = {
  /** Time limit for the handshake of a new connection. 0 means no limit. */
  readonly handshakeTimeoutMs: number;
} & ({ readonly afterLoss: 'goes-on' } | { readonly afterLoss: 'ends'; readonly begins: 'at-once' | 'with-a-request' });

/** Opens links for one caller. */
export type DialerForCaller = Pick<UpstreamDialer, 'dial' | 'dialCalls' | 'callServer'>;

/** Opens links to one server whose processes may get variables that describe their caller. */
export interface CallerDialers extends Dialer {
  /** Undefined if each session ends with its connection. */
  readonly restores?: RestorePolicy | undefined;
  /**
   * Returns the dialer for callers with these variables. Undefined stands for processes that get none.
   * @param principal the caller of a session; undefined for a client on a pipe, and where each request names its caller
   */
  forCaller(environment: CallerEnvironment | undefined, principal?: string): DialerForCaller;
  /**
   * Call this once for each link that was dialed, and for each server that was asked to take a call, for a caller with
   * variables: when the link or the call has ended.
   */
  linkEnded(environment: CallerEnvironment): void;
}
