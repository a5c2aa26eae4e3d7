import type { BridgeError } from '../../errors.ts';
import { rpcErrorOf } from '../../mcp/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { idToken } from '../../wire/splice.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Exchange } from '../exchange.ts';
import type { ServerListener } from '../ports.ts';
import type { Seat } from './seat.ts';

/** Messages that may wait while the server starts. Each client is held back from its first one on. */
const MAX_HELD = 1024;
/** The first of each client may be as large as messages get. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;

/** A client of a shared server, of either era. */
interface Seated {
  readonly listener: ServerListener;
  /** Undefined: it has left. */
  readonly place: object | undefined;
}

export interface HeldMessage<Sitter extends Seated = Seat> {
  readonly seat: Sitter;
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

/** What the clients of a shared server say while it cannot hear them. */
export class HeldMessages<Sitter extends Seated = Seat> {
  #held: HeldMessage<Sitter>[] = [];
  #bytes = 0;

  get isFull(): boolean {
    return this.#held.length >= MAX_HELD || this.#bytes >= MAX_HELD_BYTES;
  }

  add(message: HeldMessage<Sitter>): void {
    this.#held.push(message);
    this.#bytes += message.frame.bytes.length;
  }

  /** Everything, in order; nothing is left. */
  takeAll(): readonly HeldMessage<Sitter>[] {
    const held = this.#held;
    this.#held = [];
    this.#bytes = 0;
    return held;
  }

  /** Passes on what has waited and is still wanted. False: the server is full. `send` says whether it is not. */
  passOn(send: (message: HeldMessage<Sitter>) => boolean): boolean {
    let hasRoom = true;
    for (const message of this.takeAll()) {
      if (!isOver(message) && message.seat.place !== undefined) hasRoom = send(message) && hasRoom;
    }
    return hasRoom;
  }

  dropOf(seat: Sitter): void {
    if (this.#held.length === 0) return;
    this.#held = this.#held.filter((held) => held.seat !== seat);
    this.#bytes = this.#held.reduce((bytes, { frame }) => bytes + frame.bytes.length, 0);
  }
}

/** A call gets the reason for an answer; for anything else there is nobody to tell. */
export function refuse(message: HeldMessage<Seated>, reason: BridgeError): void {
  const { seat, frame, exchange } = message;
  if (frame.kind !== 'request' || isOver(message)) return;
  seat.listener.fromServer(errorFrame(idToken(frame), rpcErrorOf(reason)), exchange);
}

/** Its call was answered or withdrawn meanwhile. */
function isOver({ exchange }: HeldMessage<Seated>): boolean {
  return exchange !== undefined && exchange.state.kind !== 'open';
}
