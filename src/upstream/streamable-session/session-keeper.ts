import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { isSessionId } from '../../mcp/vocabulary/headers.ts';
import { INITIALIZE, PING } from '../../mcp/vocabulary/methods.ts';
import { type Fields, readField } from '../../mcp/vocabulary/payload.ts';
import { servedRevision } from '../../mcp/vocabulary/revisions.ts';
import { Restoration, type RestoredConnection } from '../../relay/sessions/restore-session.ts';
import type { SessionState } from '../../relay/sessions/session-state.ts';
import type { Frame } from '../../wire/frame.ts';
import { notificationFrame, requestFrame } from '../../wire/write-message.ts';
import { Outgoing, type Reply } from '../remote/link-messages.ts';
import { createSessionKey, NO_SESSION, type SessionKey } from '../remote/session-key.ts';

/** A new session that is lost sooner than this is not replaced until a message needs another. */
const MIN_SESSION_MS = 10_000;

/** Called by SessionKeeper. */
export interface KeeperHost {
  /** Posts a message of the keeper's own now, ahead of all waiting messages. */
  post(message: Outgoing): void;
  /**
   * Called when the session is open and the server has accepted `notifications/initialized`, so that the event stream
   * can be opened.
   */
  ready(): void;
  /** Called when the server has lost the session. No message may be posted before `renewed` or `renewalFailed`. */
  lost(): void;
  /**
   * Called when a new session has been opened and everything that the client had set up has been restored. `missed` are
   * notifications of what the client may have missed.
   */
  renewed(missed: readonly Frame[]): void;
  /** Called when no session could be opened. The next message causes another attempt. */
  renewalFailed(error: BridgeError): void;
  /**
   * Called when a session has been opened under the key that the client cannot continue in. The client has to open one
   * itself.
   */
  outlived(reason: BridgeError): void;
}

/**
 * - `none`: `initialize` has not been answered.
 * - `open`: messages are posted under the key.
 * - `renewing`: a new session is being opened.
 * - `lost`: a new session could not be opened.
 * - `closed`: the link is closed.
 */
export type KeeperState = 'none' | 'open' | 'renewing' | 'lost' | 'closed';

/** Keeps the session with the server, and replaces it when the server has lost it. */
export class SessionKeeper implements RestoredConnection {
  readonly delivery = 'separate';
  readonly timeLimit = 'perRequest';
  readonly session: SessionState;
  readonly log: Logger;
  readonly #host: KeeperHost;
  readonly #clock: Clock;
  #state: KeeperState = 'none';
  #key: SessionKey = NO_SESSION;
  /** Session id in the response to `initialize`. It takes effect if the body accepts the handshake. */
  #offeredId: string | undefined;
  #check: Promise<boolean> | undefined;
  #restoration: Restoration | undefined;
  #lastId = 0;
  /** Time when the current session replaced another. Undefined for the first session. */
  #renewedMs: number | undefined;

  /** @param session a new session, or one that was opened by another bridge and is continued */
  constructor(host: KeeperHost, session: SessionState, clock: Clock, log: Logger) {
    this.#host = host;
    this.session = session;
    this.#clock = clock;
    this.log = log;
    if (session.offer === undefined) return;
    this.#state = 'open';
    this.#enter(session.offer.protocolVersion);
  }

  get state(): KeeperState {
    return this.#state;
  }

  /** Key under which messages are posted now. */
  get key(): SessionKey {
    return this.#key;
  }

  /** Notes the session id of a response to `initialize`. */
  named(sessionId: unknown): void {
    this.#offeredId = isSessionId(sessionId) ? sessionId : undefined;
    if (sessionId !== undefined && this.#offeredId === undefined) {
      this.log.warn('ignoring the session id of the server: it cannot be sent back');
    }
  }

  /** Notes a result of a client's request, which may open the session. */
  succeeded(request: Frame, answer: Frame): void {
    if (request.method === INITIALIZE && this.#state !== 'none') return;
    this.session.continuation = 'same-session';
    this.session.succeeded(request, answer);
    if (request.method !== INITIALIZE) return;
    this.#state = 'open';
    this.session.sessionId = this.#offeredId;
    this.#enter(this.session.offer?.protocolVersion);
  }

  /** Posts further messages to the session that the server named last. */
  #enter(protocolVersion: unknown): void {
    const revision = servedRevision(protocolVersion);
    this.#key = createSessionKey(this.session.sessionId, revision, this.#key.generation);
  }

  /** Call this when the server has accepted `notifications/initialized`. */
  initialized(): void {
    this.session.isInitialized = true;
    if (this.#state === 'open') this.#host.ready();
  }

  // ---- a new session

  /**
   * Opens a new session, because the server does not know the one of this key or because there is none.
   * [spec 2025-11-25 transports#session-management] 404 → the client must start a new session
   */
  renew(key: SessionKey): void {
    const isCurrent = this.#state === 'open' && key.generation === this.#key.generation;
    if (!isCurrent && this.#state !== 'lost') return;
    this.log.info('the server does not know the session anymore; opening a new one');
    this.#state = 'renewing';
    this.#key = { ...NO_SESSION, generation: this.#key.generation + 1 };
    this.#host.lost();
    this.#restoration = new Restoration(this.session, this);
    this.#restoration.start();
  }

  /**
   * Opens a new session although no message waits for one, because the server does not know the session. If the lost
   * session was very young, this is left to the next message: otherwise a server that loses sessions at once would get
   * new ones without end.
   */
  renewUnasked(key: SessionKey): void {
    if (this.#renewedMs === undefined || this.#clock.now() - this.#renewedMs >= MIN_SESSION_MS) return this.renew(key);
    this.log.debug('the server has forgotten a session that it had just opened; the next message asks for another');
  }

  /**
   * Enters the new session that the server has opened. Returns false if its revision differs, so that the session has
   * to be ended.
   */
  offered({ protocolVersion }: Fields): boolean {
    this.session.sessionId = this.#offeredId;
    this.#enter(protocolVersion);
    if (protocolVersion === this.session.offer?.protocolVersion) return true;
    this.#host.outlived(OTHER_REVISION);
    return false;
  }

  refusal(answer: Frame): BridgeError {
    const message = readField(answer, 'message');
    const said = typeof message === 'string' ? message.slice(0, 200) : 'no reason';
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', `The server forgot the session and refuses a new one: ${said}`);
  }

  restored(missed: readonly Frame[]): void {
    this.#state = 'open';
    this.#renewedMs = this.#clock.now();
    if (this.session.isInitialized) this.#host.ready();
    this.#host.renewed(missed);
  }

  failed(error: BridgeError): void {
    this.#state = 'lost';
    this.log.warn({ code: error.code }, `no new session could be opened: ${error.message}`);
    this.#host.renewalFailed(error);
  }

  // ---- messages of its own

  ask(method: string, params: object, answered: Reply): void {
    this.#lastId += 1;
    this.#post(requestFrame(`mcp-portage-${this.#lastId}`, method, params), answered);
  }

  tell(method: string, taken: () => void): void {
    this.#post(notificationFrame(method), taken);
  }

  #post(frame: Frame, reply: Reply): void {
    if (this.#state !== 'closed') this.#host.post(new Outgoing(frame, undefined, reply));
  }

  /**
   * Checks with a ping whether the server still knows the session of this key. Many servers answer an unknown session
   * with a status other than 404, which may have any cause; a ping can fail only because of the session. Concurrent
   * checks share one ping.
   */
  isKnown(key: SessionKey): Promise<boolean> {
    if (this.#state !== 'open' || key.generation !== this.#key.generation) return Promise.resolve(false);
    this.#check ??= new Promise<boolean>((resolve) => {
      this.ask(PING, {}, (_, verdict) => {
        this.#check = undefined;
        resolve(verdict === 'unrelated');
      });
    });
    return this.#check;
  }

  close(): void {
    this.#state = 'closed';
    this.#restoration?.cancel();
  }
}

const OTHER_REVISION = new BridgeError(
  'ERR_UPSTREAM_PROTOCOL',
  'The server forgot the session and speaks another revision now; open a new session.',
);
