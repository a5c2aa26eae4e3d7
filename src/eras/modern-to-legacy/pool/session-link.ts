/** How a request of a modern client comes to a session of a legacy server: which one it wants, its wait and its link. */
import { LinkedList, ListMember } from '../../../collections/short-lived-values.ts';
import type { Clock } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import type { CanonicalCapabilities } from '../../../mcp/translate/capabilities.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../../mcp/vocabulary/revisions.ts';
import { type RpcError, rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import { callerOf } from '../../../relay/caller-links.ts';
import { Exchange, type Lane } from '../../../relay/exchange.ts';
import type { ServerFault, ServerListener } from '../../../relay/ports.ts';
import type { ClientIdentity } from '../../../relay/shared/legacy/attribution.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import type { Frame } from '../../../wire/frame.ts';
import { requestFrame } from '../../../wire/write-message.ts';
import { readRpcError } from '../call-messages.ts';
import type { LegacyPool, PooledSession } from './legacy-pool.ts';
import type { LegacySession } from './legacy-session.ts';

/** The request, task or stream that uses a session through its link. */
export interface SessionLinkUser {
  /** The server serves; called once, at once if it does already. */
  opened(result: InitializeResult): void;
  /** It does not, and nothing was sent. */
  refused(error: RpcError): void;
  fromServer(frame: Frame, exchange: Exchange | undefined): void;
  serverDrained(): void;
  /** The server is gone, with all that was open. */
  lost(reason: BridgeError): void;
}

/** A question the session answers itself, as soon as it can. */
const HELLO = requestFrame(0, INITIALIZE, { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities: {} });

export interface UpstreamRequest {
  readonly request: Frame;
  /** What it counts as; see `Exchange`. */
  readonly method: string;
  readonly nowMs: number;
}

/** Why the link of a call is closed. */
export const CALL_OVER = new BridgeError('ERR_SESSION_CLOSED', 'The client does not follow this call any more.');

const LANE: Lane = { isOpen: true };

/** Its lane leads to no client: the one who asked may be gone while the server goes on. */
export function upstreamExchange({ request, method, nowMs }: UpstreamRequest): Exchange {
  return new Exchange(request.id ?? 0, method, LANE, undefined, nowMs);
}

/** A link to a session of the pool, from the time a session is asked for until the link is closed. */
export class SessionLink implements ServerListener {
  /** The client that uses the link; undefined: nothing proves which one. */
  client: ClientIdentity = undefined;
  #user: SessionLinkUser;
  /** The exchange of the question whether the server serves; undefined where that was known already. */
  #hello: Exchange | undefined;
  #pooled: PooledSession | undefined;
  /** Set once the link had to wait for a session. */
  #waiting: WaitingCall<PooledSession> | undefined;

  constructor(user: SessionLinkUser) {
    this.#user = user;
  }

  /** Uses a session that others may use as well. Throws a BridgeError when there is none to be had. */
  open(pool: LegacyPool, wanted: SessionWanted): void {
    this.client = wanted.identity;
    this.#attach(pool.take(wanted, this));
  }

  /** Waits for a session that no other call uses which may be asked something. Throws as `open` does. */
  openAlone(pool: LegacyPool, wanted: SessionWanted): void {
    this.client = wanted.identity;
    const granted = (pooled: PooledSession): void => this.#attach(pooled);
    const refused = (error: BridgeError): void => this.#user.refused(rpcErrorOf(error));
    this.#waiting = pool.lease(wanted, this, { granted, refused });
  }

  #attach(pooled: PooledSession): void {
    this.#pooled = pooled;
    const known = pooled.session.initializeResult;
    if (known !== undefined) return this.#user.opened(known);
    this.#hello = upstreamExchange({ request: HELLO, method: INITIALIZE, nowMs: 0 });
    pooled.link.send(HELLO, this.#hello);
  }

  /** From now on the link serves another user. */
  passTo(user: SessionLinkUser): void {
    this.#user = user;
  }

  get session(): LegacySession {
    if (this.#pooled === undefined) throw new Error('the link has no session yet');
    return this.#pooled.session;
  }

  /** False: the server's pipe is full. */
  send(frame: Frame, exchange?: Exchange): boolean {
    return this.#pooled === undefined || this.#pooled.link.send(frame, exchange);
  }

  close(reason: BridgeError): void {
    this.#waiting?.leave();
    this.#pooled?.link.close(reason);
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (exchange === undefined || exchange !== this.#hello) return this.#user.fromServer(frame, exchange);
    const result = this.#pooled?.session.initializeResult;
    if (frame.kind === 'result' && result !== undefined) this.#user.opened(result);
    else this.#user.refused(readRpcError(frame));
  }

  serverFault({ error }: ServerFault): void {
    this.#user.lost(error);
  }

  serverDrained(): void {
    this.#user.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    this.#user.lost(reason);
  }
}

/** The client whose link to a session has this listener. */
export function clientOf(listener: ServerListener): ClientIdentity {
  return listener instanceof SessionLink ? listener.client : undefined;
}

// ---- Waiting for a session

/** Official clients wait a minute for an answer; they shall learn before that why there is none. */
export const LEASE_WAIT_MS = 50_000;

export interface SessionQueueLimits {
  /** Calls that wait for a session. */
  readonly waiting: number;
  /** Calls of one caller that may wait. */
  readonly waitingPerCaller: number;
}

export interface WaitingCallOptions<Session> {
  readonly wanted: SessionWanted;
  readonly listener: ServerListener;
  /** It has a session to itself. Called once, unless `refused` is. */
  readonly granted: (session: Session) => void;
  readonly refused: (error: BridgeError) => void;
}

/** A call that waits for a session of its own. */
export class WaitingCall<Session> extends ListMember {
  readonly options: WaitingCallOptions<Session>;
  readonly #left: () => void;
  #isWaiting = true;

  constructor(options: WaitingCallOptions<Session>, left: () => void) {
    super();
    this.options = options;
    this.#left = left;
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** It waits no more: its client is gone, or its turn has come. May be called twice. */
  leave(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#left();
  }
}

/** Calls that wait for a session of their own, first come first served. */
export class SessionQueue<Session> {
  readonly #limits: SessionQueueLimits;
  readonly #clock: Clock;
  readonly #calls = new LinkedList<WaitingCall<Session>>();
  readonly #perCaller = new Map<string, number>();
  #size = 0;

  constructor(limits: SessionQueueLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get size(): number {
    return this.#size;
  }

  get isEmpty(): boolean {
    return this.#calls.isEmpty;
  }

  /** Throws a BridgeError when too many wait. `tooLate` says why there was none for so long. */
  add(options: WaitingCallOptions<Session>, tooLate: () => BridgeError): WaitingCall<Session> {
    const { caller } = options.wanted;
    const own = this.#perCaller.get(caller) ?? 0;
    const { waiting, waitingPerCaller } = this.#limits;
    if (own >= waitingPerCaller) throw tooMany(waitingPerCaller, ' of this caller');
    if (this.#size >= waiting) throw tooMany(waiting, '');
    const cancelTimer = this.#clock.after(LEASE_WAIT_MS, () => {
      call.leave();
      options.refused(tooLate());
    });
    const call: WaitingCall<Session> = new WaitingCall<Session>(options, () => {
      cancelTimer();
      call.unlink();
      this.#count(caller, -1);
    });
    this.#calls.add(call);
    this.#count(caller, 1);
    return call;
  }

  #count(caller: string, change: 1 | -1): void {
    this.#size += change;
    const own = (this.#perCaller.get(caller) ?? 0) + change;
    if (own === 0) this.#perCaller.delete(caller);
    else this.#perCaller.set(caller, own);
  }

  /** The waiting calls, in the order of arrival. */
  toArray(): readonly WaitingCall<Session>[] {
    return this.#calls.toArray();
  }
}

function tooMany(limit: number, whose: string): BridgeError {
  const message = `${limit} calls${whose} wait for a session of the server, the most that may; try again later.`;
  return new BridgeError('ERR_SESSION_BUSY', message, { retryAfterMs: 1000 });
}

// ---- Which session is wanted

/** Whose session of a legacy server is wanted, and what the server is told of the client. */
export interface SessionClient {
  /** The authenticated caller, or one name for all where nobody is asked. */
  readonly principal: string;
  readonly capabilities: CanonicalCapabilities;
  readonly clientInfo: Implementation;
  /** Keeps callers apart that have the same name. Undefined: a session of its own, which ends with its last user. */
  readonly affinity: string | undefined;
  /** What the user lets pass of the caller's HTTP request; see `Lane`. Who shows other values is another caller. */
  readonly headers: Lane['headers'];
}

/** A session that is wanted; who wants one with an equal `key` can use the same. */
export interface SessionWanted extends SessionClient {
  /** The client that the session is for; undefined: nothing proves which one. */
  readonly identity?: ClientIdentity;
  /** Undefined: nobody can. */
  readonly key: string | undefined;
  /** Equal for all that is one caller's: its share of the pool is counted by it. */
  readonly caller: string;
}

export function sessionFor(client: SessionClient): SessionWanted {
  const { capabilities, clientInfo, affinity } = client;
  const caller = callerOf(client);
  const { name, title, version } = clientInfo;
  const parts = [caller, affinity, capabilities.key, name, title, version];
  return { ...client, caller, key: affinity === undefined ? undefined : JSON.stringify(parts) };
}
