import { ListMember } from '../../../collections/short-lived-values.ts';
import type { BridgeError } from '../../../errors.ts';
import { CANCELLED } from '../../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION, type RevisionId } from '../../../mcp/vocabulary/revisions.ts';
import { type RpcError, rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import { Exchange, type Lane } from '../../../relay/exchange.ts';
import type { ServerFault, ServerListener } from '../../../relay/ports.ts';
import type { SharedClient } from '../../../relay/shared/client-link.ts';
import type { ClientIdentity } from '../../../relay/shared/legacy/attribution.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import type { LegacyClient } from '../../../relay/shared/legacy/legacy-client.ts';
import type { Frame } from '../../../wire/frame.ts';
import { notificationFrame, requestFrame } from '../../../wire/write-message.ts';
import type { LegacySession } from './legacy-session.ts';
import type { SessionWanted } from './session-wanted.ts';

/** The request, task or stream that uses a session through its link. */
export interface SessionLinkUser {
  /** The server serves; called once, at once if it does already. */
  opened(result: InitializeResult): void;
  /** Called when there is no session, or its server does not serve. Nothing was sent. */
  refused(error: RpcError): void;
  /** A request or a notification of the server. `exchange` is given where it is about a request of this user. */
  fromServer(frame: Frame, exchange: Exchange | undefined): void;
  serverDrained(): void;
  /** The server is gone, with all that was open. */
  lost(reason: BridgeError): void;
}

/** Has links join sessions. `take` and `lease` throw a BridgeError when there is no session to be had. */
export interface SessionPool {
  /** Joins a session that others may use as well. */
  take(link: SessionLink): void;
  /** Joins a session that no other call uses which may be asked something, at once or later. */
  lease(link: SessionLink): void;
  /** Called when a link has left a session. */
  left(link: SessionLink, session: LegacySession): void;
}

/** The lane of a request to a session leads to no client: the one who asked may be gone while the server goes on. */
const LANE: Lane = { isOpen: true };

/**
 * A request of the user of a session, which counts as one of `method`. `answered` takes the server's answer; it is not
 * called when the server is lost, or once the request was withdrawn or the link closed.
 */
export class SessionRequest extends Exchange {
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
type LinkState =
  | { readonly kind: 'none' | 'left' }
  | { readonly kind: 'waiting'; readonly leave: () => void }
  | { readonly kind: 'joined'; readonly session: LegacySession };

const NONE: LinkState = { kind: 'none' };
const LEFT: LinkState = { kind: 'left' };

/**
 * A link to a session of the pool, from the time a session is asked for until the link is closed. The link is also the
 * client that the session's server keeps in its list. Unlike the client of a relay, it makes no handshake and needs no
 * message changed: the session has shaken hands in its name, and its user translates for the modern client.
 */
export class SessionLink extends ListMember implements SharedClient<LegacyClient>, LegacyClient, ServerListener {
  readonly wanted: SessionWanted;
  /** Undefined: nothing proves which client uses the link. */
  readonly identity: ClientIdentity;
  /** The request, task or stream that hears of the session. Another one may take over. */
  user: SessionLinkUser;
  readonly listener: ServerListener = this;
  readonly state: LegacyClient = this;
  readonly isInitialized = true;
  isIntroduced = false;
  /** True for a call that may be asked something, which has its session to itself among such calls. */
  isAskable = false;
  openCalls = 0;
  readonly #pool: SessionPool;
  #state: LinkState = NONE;

  constructor(pool: SessionPool, wanted: SessionWanted, user: SessionLinkUser) {
    super();
    this.#pool = pool;
    this.wanted = wanted;
    this.identity = wanted.identity;
    this.user = user;
  }

  // ---- from the user

  /** Uses a session that others may use as well. Throws a BridgeError when there is none to be had. */
  open(): void {
    this.#pool.take(this);
    this.granted();
  }

  /** Waits for a session that no other call uses which may be asked something. Throws as `open` does. */
  openAlone(): void {
    this.isAskable = true;
    this.#pool.lease(this);
  }

  get session(): LegacySession {
    if (this.#state.kind !== 'joined') throw new Error('the link has no session');
    return this.#state.session;
  }

  /** Sends a notification, or the answer to a question. False: the server's pipe is full. */
  send(frame: Frame, about?: SessionRequest): boolean {
    return this.#state.kind !== 'joined' || this.#state.session.server.fromClient(this, frame, about);
  }

  /** May be answered at once. */
  sendRequest(request: SessionRequest): void {
    this.send(request.frame, request);
  }

  /** Asks the server something that the bridge wants to know, or tells it what it has to confirm. May be answered at once. */
  ask(method: string, params: object, answered: (answer: Frame) => void): void {
    this.sendRequest(new SessionRequest(requestFrame(0, method, params), method, answered));
  }

  /** The answer is not wanted any more. */
  withdraw(request: SessionRequest): void {
    request.cancel('client');
    this.send(notificationFrame(CANCELLED, { requestId: request.id }), request);
  }

  /** Gives the session back, and withdraws what is open there. May be called twice. */
  close(): void {
    const state = this.#state;
    this.#state = LEFT;
    if (state.kind === 'waiting') state.leave();
    if (state.kind !== 'joined') return;
    state.session.server.leave(this);
    this.#pool.left(this, state.session);
  }

  // ---- from the pool

  queued(leave: () => void): void {
    this.#state = { kind: 'waiting', leave };
  }

  get isWaiting(): boolean {
    return this.#state.kind === 'waiting';
  }

  /** Called when the call cannot wait any longer, or is in vain. */
  leaveQueue(): void {
    if (this.#state.kind !== 'waiting') return;
    const { leave } = this.#state;
    this.#state = NONE;
    leave();
  }

  /** Called when the link has become a client of the session, before `granted`. */
  joined(session: LegacySession): void {
    this.leaveQueue();
    this.#state = { kind: 'joined', session };
  }

  /** Called when there was no session in time, or there will be none. */
  refused(error: BridgeError): void {
    this.user.refused(rpcErrorOf(error));
  }

  /** Goes on with the session that the link has joined. */
  granted(): void {
    const { session } = this;
    const known = session.initializeResult;
    if (known !== undefined) return this.#opened(known);
    session.server.whenServing({
      client: this,
      ready: () => this.#opened(session.initializeResult as InitializeResult), // it serves
      refused: (reason) => this.user.refused(rpcErrorOf(reason)),
    });
  }

  #opened(result: InitializeResult): void {
    this.isIntroduced = true;
    this.user.opened(result);
  }

  // ---- from the session

  introduce(): RevisionId {
    return LATEST_LEGACY_REVISION.id;
  }

  finishHandshake(): void {}

  answered(answer: Frame): Frame {
    return answer;
  }

  asked(question: Frame): Frame {
    return question;
  }

  askInTime(ask: () => void): void {
    ask();
  }

  left(): void {}

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (!frame.isResponse) return this.user.fromServer(frame, exchange);
    if (!(exchange instanceof SessionRequest) || exchange.state.kind !== 'open') return;
    exchange.settle();
    exchange.answered(frame);
  }

  serverFault({ error }: ServerFault): void {
    this.user.lost(error);
  }

  serverDrained(): void {
    this.user.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    this.user.lost(reason);
  }
}
