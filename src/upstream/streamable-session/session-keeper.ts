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

/** A new session that is lost sooner than this is not replaced for the sake of its event stream alone. */
const MIN_SESSION_MS = 10_000;

/** Called by SessionKeeper. */
export interface KeeperHost {
  /** Posts a message of the keeper's own now, past everything that waits. */
  post(message: Outgoing): void;
  /** The session is open, the client has said `notifications/initialized`: the server is to be listened to. */
  ready(): void;
  /** The server has forgotten the session; until one of the next two, nothing may leave. */
  lost(): void;
  /** There is a session again, with everything in it that the client had set up, but for what it may have missed. */
  renewed(missed: readonly Frame[]): void;
  /** There is none. The next message will try again. */
  renewalFailed(error: BridgeError): void;
  /** There is one, under the key, that the client cannot go on in: only a session of its own making will do. */
  outlived(reason: BridgeError): void;
}

/**
 * - `none`: `initialize` has not been answered.
 * - `open`: messages are posted under the key.
 * - `renewing`: a new session is being made.
 * - `lost`: it could not be made.
 * - `closed`: for good.
 */
export type KeeperState = 'none' | 'open' | 'renewing' | 'lost' | 'closed';

/** Knows the session with the server, and replaces it when the server has forgotten it. */
export class SessionKeeper implements RestoredConnection {
  readonly delivery = 'separate';
  readonly timeLimit = 'perRequest';
  readonly session: SessionState;
  readonly log: Logger;
  readonly #host: KeeperHost;
  readonly #clock: Clock;
  #state: KeeperState = 'none';
  #key: SessionKey = NO_SESSION;
  /** What the response to `initialize` offered; counts once its body is an acceptance. */
  #offeredId: string | undefined;
  #check: Promise<boolean> | undefined;
  #restoration: Restoration | undefined;
  #lastId = 0;
  /** When the session there is now took the place of another; undefined: it is the first. */
  #renewedMs: number | undefined;

  /** `session`: a new one, or one that was opened elsewhere and is gone on with. */
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

  /** Under what to post now. */
  get key(): SessionKey {
    return this.#key;
  }

  /** A response to `initialize` has come. */
  named(sessionId: unknown): void {
    this.#offeredId = isSessionId(sessionId) ? sessionId : undefined;
    if (sessionId !== undefined && this.#offeredId === undefined) {
      this.log.warn('the server gave a session id that cannot be sent back; it is ignored');
    }
  }

  /** The server answered a request of the client with a result. */
  succeeded(request: Frame, answer: Frame): void {
    if (request.method === INITIALIZE && this.#state !== 'none') return;
    this.session.succeeded(request, answer);
    if (request.method !== INITIALIZE) return;
    this.#state = 'open';
    this.session.sessionId = this.#offeredId;
    this.#enter(this.session.offer?.protocolVersion);
  }

  /** From here on messages are posted to the session that the server named last. */
  #enter(protocolVersion: unknown): void {
    const revision = servedRevision(protocolVersion);
    this.#key = createSessionKey(this.session.sessionId, revision, this.#key.generation);
  }

  /** The server has taken `notifications/initialized`. */
  initialized(): void {
    this.session.isInitialized = true;
    if (this.#state === 'open') this.#host.ready();
  }

  // ---- a new session

  /**
   * The server said that it does not know the session of this key; or the keeper knows of none.
   * [spec 2025-11-25 transports#session-management] 404 → the client must start a new session
   */
  renew(key: SessionKey): void {
    const isCurrent = this.#state === 'open' && key.generation === this.#key.generation;
    if (!isCurrent && this.#state !== 'lost') return;
    this.log.info('the server does not know the session any more; opening a new one');
    this.#state = 'renewing';
    this.#key = { ...NO_SESSION, generation: this.#key.generation + 1 };
    this.#host.lost();
    this.#restoration = new Restoration(this.session, this);
    this.#restoration.start();
  }

  /**
   * The server says that it does not know the session, and no message waits for another. A server that forgets sessions
   * as fast as they are made would have them made without end; it gets the next one when a message needs it.
   */
  renewUnasked(key: SessionKey): void {
    if (this.#renewedMs === undefined || this.#clock.now() - this.#renewedMs >= MIN_SESSION_MS) return this.renew(key);
    this.log.debug('the server has forgotten a session that it had just opened; the next message asks for another');
  }

  /** There is a new session under the key, be it one that has to be ended at once. */
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
   * Does the server still know the session of this key? Many answer with another status than 404 to one that they do not
   * know, which alone may mean anything; so it is asked for something that cannot fail otherwise. Several questions at once are
   * asked once.
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
