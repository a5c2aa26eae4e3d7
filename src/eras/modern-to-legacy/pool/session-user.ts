import type { BridgeError } from '../../../errors.ts';
import { CANCELED } from '../../../mcp/vocabulary/methods.ts';
import { Call, type Lane } from '../../../relay/call.ts';
import type { ServerFault, ServerListener } from '../../../relay/ports.ts';
import type { ClientIdentity } from '../../../relay/shared/legacy/attribution.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import { LegacyClient } from '../../../relay/shared/legacy/legacy-client.ts';
import type { Frame } from '../../../wire/frame.ts';
import { notificationFrame, requestFrame } from '../../../wire/write-message.ts';
import type { LegacySession } from './legacy-session.ts';
import type { SessionWanted } from './session-wanted.ts';

/** Has users join sessions. `take` and `lease` throw a BridgeError when there is no session to be had. */
export interface SessionPool {
  /** Returns a session that others may use as well. The user is a client of its server. */
  take(user: SessionUser): LegacySession;
  /** Grants a session that no other call uses which may be asked something, at once or later. */
  lease(user: SessionUser): void;
  /** Called when a user has left a session. */
  left(user: SessionUser, session: LegacySession): void;
}

/** The lane of a request to a session leads to no client: the one who asked may be gone while the server goes on. */
const LANE: Lane = { isOpen: true };

/**
 * A request of the user of a session, which counts as one of `method`. `answered` takes the server's answer; it is not
 * called when the server is lost, or once the request was withdrawn or its user has left.
 */
export class SessionRequest extends Call {
  readonly frame: Frame;
  readonly answered: (answer: Frame) => void;

  constructor(frame: Frame, method: string, answered: (answer: Frame) => void) {
    super(frame.id ?? 0, method, LANE, undefined, 0);
    this.frame = frame;
    this.answered = answered;
  }
}

/**
 * - `none`: no session was asked for.
 * - `waiting`: in the queue of the pool, for a session to itself.
 * - `joined`: a client of the session.
 * - `left`: for good.
 */
type SessionUse =
  | { readonly kind: 'none' | 'left' }
  | { readonly kind: 'waiting'; readonly leave: () => void }
  | { readonly kind: 'joined'; readonly session: LegacySession };

const NONE: SessionUse = { kind: 'none' };
const LEFT: SessionUse = { kind: 'left' };

/**
 * A user of a session of the pool, such as a call or a subscription, from the time a session is asked for until it is
 * left. The user is also the client that the session's server keeps in its list. Unlike the client of a relay, it makes
 * no handshake and needs no message changed: the session has shaken hands in its name, and the user translates for the
 * modern client.
 */
export abstract class SessionUser extends LegacyClient implements ServerListener {
  readonly wanted: SessionWanted;
  /** Undefined: nothing proves which client uses the session. */
  readonly identity: ClientIdentity;
  readonly listener = this;
  readonly isInitialized = true;
  isIntroduced = false;
  /** True for a call that may be asked something, which has its session to itself among such calls. */
  isAskable = false;
  readonly #pool: SessionPool;
  #use: SessionUse = NONE;

  constructor(pool: SessionPool, wanted: SessionWanted) {
    super();
    this.#pool = pool;
    this.wanted = wanted;
    this.identity = wanted.identity;
  }

  // ---- what the session says

  /** The server serves; called once, at once if it does already. */
  protected abstract opened(result: InitializeResult): void;
  /** A request or a notification of the server. `call` is given where it is about a request of this user. */
  protected abstract heard(frame: Frame, call: Call | undefined): void;
  abstract serverDrained(): void;
  /** There is no session to be had, its server does not serve, or the server is gone with all that was open. */
  protected abstract lost(reason: BridgeError): void;

  // ---- what the user does

  /** Uses a session that others may use as well. Throws a BridgeError when there is none to be had. */
  joinSession(): void {
    this.granted(this.#pool.take(this));
  }

  /** Waits for a session that no other call uses which may be asked something. Throws as `joinSession` does. */
  leaseSession(): void {
    this.isAskable = true;
    this.#pool.lease(this);
  }

  get session(): LegacySession {
    if (this.#use.kind !== 'joined') throw new Error('the user has no session');
    return this.#use.session;
  }

  /** May be answered at once. */
  sendRequest(request: SessionRequest): void {
    this.send(request.frame, request);
  }

  /** Asks the server something that the bridge wants to know, or tells it what it has to confirm. May be answered at once. */
  ask(method: string, params: object, answered: (answer: Frame) => void): void {
    this.sendRequest(new SessionRequest(requestFrame(0, method, params), method, answered));
  }

  /** The answer is not wanted anymore. */
  withdraw(request: SessionRequest): void {
    request.cancel('client');
    this.send(notificationFrame(CANCELED, { requestId: request.id }), request);
  }

  /** Gives the session back, and withdraws what is open there. May be called twice. */
  leaveSession(): void {
    const use = this.#use;
    this.#use = LEFT;
    if (use.kind === 'waiting') use.leave();
    if (use.kind !== 'joined') return;
    this.leave();
    this.#pool.left(this, use.session);
  }

  // ---- from the pool

  queued(leave: () => void): void {
    this.#use = { kind: 'waiting', leave };
  }

  get isWaiting(): boolean {
    return this.#use.kind === 'waiting';
  }

  /** Called when there was no session in time, or there will be none. */
  refused(reason: BridgeError): void {
    if (this.#use.kind !== 'waiting') return;
    const { leave } = this.#use;
    this.#use = NONE;
    leave();
    this.lost(reason);
  }

  /** The user has become a client of the session. */
  granted(session: LegacySession): void {
    if (this.#use.kind === 'waiting') this.#use.leave();
    this.#use = { kind: 'joined', session };
    const known = session.initializeResult;
    if (known !== undefined) return this.#opened(known);
    session.server.whenServing({
      sender: this,
      ready: () => this.#opened(session.initializeResult as InitializeResult), // it serves
      refused: (reason) => this.lost(reason),
    });
  }

  #opened(result: InitializeResult): void {
    this.isIntroduced = true;
    this.opened(result);
  }

  // ---- from the session

  fromServer(frame: Frame, call?: Call): void {
    if (!frame.isResponse) return this.heard(frame, call);
    if (!(call instanceof SessionRequest) || call.state.kind !== 'open') return;
    call.settle();
    call.answered(frame);
  }

  serverFault({ error }: ServerFault): void {
    this.lost(error);
  }

  serverClosed(reason: BridgeError): void {
    this.lost(reason);
  }
}
