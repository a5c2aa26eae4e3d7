import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { changeNotifications } from '../../mcp/translate/change-notifications.ts';
import { findRevision, OLDEST_REVISION } from '../../mcp/vocabulary/revisions.ts';
import { Frame } from '../../wire/frame.ts';
import { Outgoing } from '../remote/outbox.ts';
import { createSessionKey, isSessionId, NO_SESSION, type SessionKey } from '../remote/session-key.ts';
import { isSessionKnown, type OwnMessages, renewSession } from './renewal.ts';
import { RestoredState, type SessionOffer } from './restored-state.ts';

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
export class SessionKeeper {
  readonly restored = new RestoredState();
  readonly #host: KeeperHost;
  readonly #clock: Clock;
  readonly #log: Logger;
  #state: KeeperState = 'none';
  #key: SessionKey = NO_SESSION;
  /** What the response to `initialize` offered; counts once its body is an acceptance. */
  #offeredId: string | undefined;
  #check: Promise<boolean> | undefined;
  /** When the session there is now took the place of another; undefined: it is the first. */
  #renewedMs: number | undefined;

  constructor(host: KeeperHost, clock: Clock, log: Logger) {
    this.#host = host;
    this.#clock = clock;
    this.#log = log;
  }

  get state(): KeeperState {
    return this.#state;
  }

  /** Under what to post now. */
  get key(): SessionKey {
    return this.#key;
  }

  /** A response to `initialize` has come. */
  offered(sessionId: unknown): void {
    this.#offeredId = isSessionId(sessionId) ? sessionId : undefined;
    if (sessionId !== undefined && this.#offeredId === undefined) {
      this.#log.warn('the server gave a session id that cannot be sent back; it is ignored');
    }
  }

  /** The server accepted the client's `initialize`. */
  opened(result: SessionOffer): void {
    this.restored.accepted = result;
    this.#establish(result);
    this.#state = 'open';
  }

  /** The server has taken `notifications/initialized`. */
  initialized(): void {
    this.restored.isInitialized = true;
    if (this.#state === 'open') this.#host.ready();
  }

  #establish({ protocolVersion }: SessionOffer): void {
    const revision = findRevision(protocolVersion) ?? OLDEST_REVISION;
    this.#key = createSessionKey(this.#offeredId, revision, this.#key.generation);
  }

  /** The server said that it does not know the session of this key; or the keeper knows of none. */
  renew(key: SessionKey): void {
    const isCurrent = this.#state === 'open' && key.generation === this.#key.generation;
    if (!isCurrent && this.#state !== 'lost') return;
    this.#log.info('the server does not know the session any more; opening a new one');
    this.#state = 'renewing';
    this.#key = { ...NO_SESSION, generation: this.#key.generation + 1 };
    this.#host.lost();
    renewSession(this.restored, this.#own()).then(
      (renewal) => (renewal === 'restored' ? this.#renewed() : this.#outlived()),
      (thrown: unknown) => this.#renewalFailed(toBridgeError(thrown)),
    );
  }

  /**
   * The server says that it does not know the session, and no message waits for another. A server that forgets sessions
   * as fast as they are made would have them made without end; it gets the next one when a message needs it.
   */
  renewUnasked(key: SessionKey): void {
    if (this.#renewedMs === undefined || this.#clock.now() - this.#renewedMs >= MIN_SESSION_MS) return this.renew(key);
    this.#log.debug('the server has forgotten a session that it had just opened; the next message asks for another');
  }

  #renewed(): void {
    if (this.#state !== 'renewing') return;
    this.#state = 'open';
    this.#renewedMs = this.#clock.now();
    const { accepted, subscribedUris, isInitialized } = this.restored;
    if (isInitialized) this.#host.ready();
    this.#host.renewed(isInitialized ? changeNotifications(accepted?.capabilities, subscribedUris) : []);
  }

  #outlived(): void {
    if (this.#state === 'renewing') this.#host.outlived(OTHER_REVISION);
  }

  #renewalFailed(error: BridgeError): void {
    if (this.#state !== 'renewing') return;
    this.#state = 'lost';
    this.#log.warn({ code: error.code }, `no new session could be opened: ${error.message}`);
    this.#host.renewalFailed(error);
  }

  /** Asks the server whether it knows the session of this key; several questions at once are asked once. */
  isKnown(key: SessionKey): Promise<boolean> {
    if (this.#state !== 'open' || key.generation !== this.#key.generation) return Promise.resolve(false);
    this.#check ??= isSessionKnown(this.#own()).finally(() => {
      this.#check = undefined;
    });
    return this.#check;
  }

  #own(): OwnMessages {
    return {
      ask: (request) =>
        new Promise((resolve, reject) => {
          this.#post(request, (answer) => (answer instanceof Frame ? resolve(answer) : reject(answer)));
        }),
      tell: (notification) => new Promise((resolve) => this.#post(notification, () => resolve())),
      established: (result) => this.#establish(result),
      log: this.#log,
    };
  }

  #post(frame: Frame, reply: (answer: Frame | BridgeError) => void): void {
    if (this.#state !== 'closed') this.#host.post(new Outgoing(frame, undefined, reply));
  }

  close(): void {
    this.#state = 'closed';
  }
}

const OTHER_REVISION = new BridgeError(
  'ERR_UPSTREAM_PROTOCOL',
  'The server forgot the session and speaks another revision now; open a new session.',
);
