import type { BridgeError } from '../../errors.ts';
import { INITIALIZE } from '../../mcp/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/revisions.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/rpc-errors.ts';
import { Exchange } from '../../relay/exchange.ts';
import type { Lane } from '../../relay/lane.ts';
import type { LegacyPool, PooledSeat } from '../../relay/legacy-pool.ts';
import type { LegacySession } from '../../relay/legacy-session.ts';
import type { ServerFault, ServerListener } from '../../relay/ports.ts';
import type { WaitingCall } from '../../relay/session-queue.ts';
import type { SessionWanted } from '../../relay/session-wanted.ts';
import type { InitializeResult } from '../../relay/shared/initialize-result.ts';
import type { Frame } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';
import { readRpcError } from './legacy-answers.ts';

/** Who uses a seat. */
export interface SeatUser {
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

const LANE: Lane = { isOpen: true };

/** Its lane leads to no client: the one who asked may be gone while the server goes on. */
export function upstreamExchange({ request, method, nowMs }: UpstreamRequest): Exchange {
  return new Exchange(request.id ?? 0, method, LANE, undefined, nowMs);
}

/** A seat at a session of the pool, from the wish for one to its end. */
export class LegacySeat implements ServerListener {
  #user: SeatUser;
  /** Of the question whether the server serves, where that had to be asked. */
  #hello: Exchange | undefined;
  #seat: PooledSeat | undefined;
  /** Set once it had to wait for a session. */
  #waiting: WaitingCall<PooledSeat> | undefined;

  constructor(user: SeatUser) {
    this.#user = user;
  }

  /** Throws a BridgeError when there is none to be had. */
  open(pool: LegacyPool, wanted: SessionWanted): void {
    this.#sit(pool.take(wanted, this));
  }

  /** At a session that no other call has which may be asked something, as soon as there is one. Throws as `open`. */
  openAlone(pool: LegacyPool, wanted: SessionWanted): void {
    const granted = (seat: PooledSeat): void => this.#sit(seat);
    const refused = (error: BridgeError): void => this.#user.refused(rpcErrorOf(error));
    this.#waiting = pool.lease(wanted, this, { granted, refused });
  }

  #sit(seat: PooledSeat): void {
    this.#seat = seat;
    const known = seat.session.initializeResult;
    if (known !== undefined) return this.#user.opened(known);
    this.#hello = upstreamExchange({ request: HELLO, method: INITIALIZE, nowMs: 0 });
    seat.link.send(HELLO, this.#hello);
  }

  /** From now on the seat is somebody else's. */
  passTo(user: SeatUser): void {
    this.#user = user;
  }

  get session(): LegacySession {
    if (this.#seat === undefined) throw new Error('the seat was not taken yet');
    return this.#seat.session;
  }

  /** False: the server's pipe is full. */
  send(frame: Frame, exchange?: Exchange): boolean {
    return this.#seat === undefined || this.#seat.link.send(frame, exchange);
  }

  close(reason: BridgeError): void {
    this.#waiting?.leave();
    this.#seat?.link.close(reason);
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (exchange === undefined || exchange !== this.#hello) return this.#user.fromServer(frame, exchange);
    const result = this.#seat?.session.initializeResult;
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
