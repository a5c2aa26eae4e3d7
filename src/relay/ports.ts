/**
 * The seam between the relay and everything that touches bytes. Transports implement DownstreamPeer and
 * UpstreamLink; the relay implements the two listeners. Neither side knows the other's concrete types.
 *
 *   client ⇄ downstream/* ── ClientListener ──▶ Relay ── UpstreamLink ──▶ upstream/* ⇄ server
 *                         ◀─ DownstreamPeer ──       ◀─ ServerListener ──
 *
 * Backpressure is a boolean and a callback: `send` returns false when the far side is full (the message was still
 * taken), and the listener's `drained` follows when it is not. Between the two, the caller stops its own source.
 */
import type { BridgeError } from '../errors.ts';
import type { RequestMetadata } from '../mcp/classify/request-metadata.ts';
import type { Revision } from '../mcp/vocabulary/revisions.ts';
import type { Frame } from '../wire/frame.ts';
import type { Exchange, Lane } from './exchange.ts';
import type { SessionState } from './sessions/session-state.ts';

/** The client as the relay sees it. Implemented by each file in downstream/. */
export interface DownstreamPeer {
  /** Somebody listens right now; such a session is not idle. */
  readonly isConnected: boolean;
  /** It had a stream open that belongs to no call, has closed it, and has asked nothing since: most clients end so. */
  readonly hasLeft: boolean;
  /**
   * Sends to the client: with an exchange on that exchange's lane, without one wherever this client takes what
   * belongs to no request. A response ends its exchange's lane. False: full, wait for `drained`.
   */
  send(frame: Frame, exchange?: Exchange): boolean;
  /** The exchange ends without an answer (the client withdrew it): its lane is let go. */
  release(exchange: Exchange): void;
  /** The handshake is done; from here on the client is served as this revision wants. */
  negotiated(revision: Revision): void;
  /** Stop and go on taking messages from the client. */
  pause(): void;
  resume(): void;
  /** The relay is done with this client: ends its streams. May be called twice. */
  close(reason: BridgeError): void;
}

/** What a downstream transport tells the relay. */
export interface ClientListener {
  fromClient(frame: Frame, lane: Lane): void;
  /** The client's side has capacity again. */
  clientDrained(): void;
  /** A request of the server found no way to the client in time; the server gets this answer. */
  undeliverable(request: Frame, reason: BridgeError): void;
  /** The client is gone for good: session ended, pipe closed. */
  clientClosed(reason: BridgeError): void;
}

/** A server's process as those see it who watch over its link. */
export interface ServerProcess {
  /** When anything came from it last, be it a byte of a message or on stderr; its start counts. */
  readonly lastHeardMs: number;
  /** Resolves when nothing runs any more of it, its whole group. Never rejects. */
  readonly gone: Promise<void>;
}

/** The server as the relay sees it. Implemented by each file in upstream/ and by relay/shared/. */
export interface UpstreamLink {
  /** The process that the server runs in; undefined where the bridge has not started one for it, or not yet. */
  readonly process: ServerProcess | undefined;
  /**
   * Sends to the server. `exchange` is given for requests, and for notifications about a request (cancelled).
   * False: full, wait for `serverDrained`.
   */
  send(frame: Frame, exchange?: Exchange): boolean;
  /** Stop and go on reading what the server says. */
  pause(): void;
  resume(): void;
  /**
   * Ends the connection to the server, with its process where there is one. The listener hears nothing more, not even
   * of the end. May be called twice.
   */
  close(reason: BridgeError): void;
}

/** What an upstream transport tells the relay. */
export interface ServerListener {
  /** `exchange` when the transport itself knows what the message belongs to. */
  fromServer(frame: Frame, exchange?: Exchange): void;
  /** One message could not be taken (over the size limit, not a message): its call fails, the link goes on. */
  serverFault(fault: ServerFault): void;
  serverDrained(): void;
  /** The server is gone; not said of a link that was closed. Called once, after the last `fromServer`, never in `dial`. */
  serverClosed(reason: BridgeError): void;
}

/** What could be recovered of a message that had to be dropped. */
export interface ServerFault {
  readonly error: BridgeError;
  /** What the scan of its head and tail could tell. */
  readonly kind: Frame['kind'] | undefined;
  readonly id: Frame['id'];
}

/**
 * - `ready`: a client can be served, as far as is known.
 * - `unproven`: it did not work last time. That is all that is known, and to dial is allowed.
 * - `refused`: it cannot be served now; whoever dials is told so, or waits.
 */
export type Readiness =
  | { readonly state: 'ready' }
  | { readonly state: 'unproven'; readonly error: BridgeError }
  | { readonly state: 'refused'; readonly error: BridgeError };

/**
 * Who a modern request comes from. Each carries this itself; there is no session to know it from.
 * [spec 2026-07-28 basic#meta]
 */
export interface CallContext {
  /** The authenticated caller, or one name for all where nobody is asked. What belongs to one is never shown to another. */
  readonly principal: string;
  /** Undefined: the link is for many requests of one client, each of which brings its own. */
  readonly metadata: RequestMetadata | undefined;
  /** Headers of the caller's HTTP request that the user lets pass; see `Lane`. */
  readonly headers: Lane['headers'];
}

/** What all that make connections to one server have in common. */
export interface Dialer {
  /** How the server is called in logs and error messages. */
  readonly name: string;
  /** Could a client be served now, as far as is known without trying. */
  readiness(): Readiness;
  /** Ends what the dialer itself keeps (spare children, timers) and resolves when all its children are gone. */
  close(): Promise<void>;
  /** Last resort, synchronous: nothing that was started stays behind. */
  killNow(): void;
}

/** Opens connections to a server. Implemented in upstream/, wrapped by the pool and by relay/shared/. */
export interface SessionDialer extends Dialer {
  /**
   * A new connection of its own: for one session of the legacy era, or for modern requests of whoever shares it.
   * Throws a BridgeError when none can be made now.
   * @param session what a link to a server with sessions keeps up to date, and goes on with where it has begun elsewhere;
   *   undefined: nobody wants to know
   */
  dial(listener: ServerListener, session?: SessionState): UpstreamLink;
}

/** Opens links for modern requests. */
export interface CallDialer extends Dialer {
  /**
   * A new link for requests of the client that the context tells of. With metadata it is for that one request only.
   * Throws a BridgeError when none can be made now.
   */
  dialCalls(listener: ServerListener, context: CallContext): UpstreamLink;
}

/** Makes connections to one server for clients of both eras. */
export interface UpstreamDialer extends SessionDialer, CallDialer {}

/** Variables for a process that is started for one caller alone. */
export type CallerEnvironment = Readonly<Record<string, string>>;

/** Makes connections to one server, whose processes may be told for which caller they run. */
export interface CallerDialers extends Dialer {
  /** What dials for callers with these variables; undefined: nothing is told of them. */
  forCaller(environment: CallerEnvironment | undefined): Pick<UpstreamDialer, 'dial' | 'dialCalls'>;
}
