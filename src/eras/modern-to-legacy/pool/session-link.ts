/** How a request of a modern client comes to a session of a legacy server: which one it wants, its wait and its link. */
import { BridgeError } from '../../../errors.ts';
import { INITIALIZE } from '../../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../../mcp/vocabulary/revisions.ts';
import { type RpcError, rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import { Exchange, type Lane } from '../../../relay/exchange.ts';
import type { ServerFault } from '../../../relay/ports.ts';
import type { ClientIdentity } from '../../../relay/shared/legacy/attribution.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import type { Frame } from '../../../wire/frame.ts';
import { requestFrame } from '../../../wire/write-message.ts';
import { readRpcError } from '../call-messages.ts';
import type { LegacyPool, PooledSession } from './legacy-pool.ts';
import type { LegacySession } from './legacy-session.ts';
import type { WaitingCall } from './session-queue.ts';
import type { IdentifiedListener, SessionWanted } from './session-wanted.ts';

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
export class SessionLink implements IdentifiedListener {
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
