import type { BridgeError } from '../../errors.ts';
import { rpcErrorOf } from '../../mcp/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { idToken } from '../../wire/splice.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Exchange } from '../exchange.ts';
import type { Seat } from './seat.ts';

/** Messages that may wait while the server starts. Each client is held back from its first one on. */
const MAX_HELD = 1024;

export interface HeldMessage {
  readonly seat: Seat;
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

/** What the clients of a shared server say while it cannot hear them. */
export class HeldMessages {
  #held: HeldMessage[] = [];

  get isFull(): boolean {
    return this.#held.length >= MAX_HELD;
  }

  add(message: HeldMessage): void {
    this.#held.push(message);
  }

  /** Everything, in order; nothing is left. */
  takeAll(): readonly HeldMessage[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }

  dropOf(seat: Seat): void {
    this.#held = this.#held.filter((held) => held.seat !== seat);
  }
}

/** A call gets the reason for an answer; for anything else there is nobody to tell. */
export function refuse({ seat, frame, exchange }: HeldMessage, reason: BridgeError): void {
  if (frame.kind !== 'request' || exchange?.state.kind !== 'open') return;
  seat.listener.fromServer(errorFrame(idToken(frame), rpcErrorOf(reason)), exchange);
}
