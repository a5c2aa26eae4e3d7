/** Messages, and clients, that wait while a shared server takes nothing. */
import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import type { BridgeError } from '../../errors.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Call } from '../call.ts';
import { isOver, refuse, type Sender } from './shared-client.ts';

/** Messages that may wait while the server starts. Each client is held back from its first one on. */
const MAX_HELD = 1024;
/** The first of each client may be as large as messages get. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;

/** A message to the server, its sender, and the call that the message begins or is about. */
interface HeldMessage<From> {
  readonly sender: From;
  readonly frame: Frame;
  readonly call: Call | undefined;
}

/** A client that wants to know when the server serves. Exactly one of the functions is called, once. */
export interface WaitingClient<Client> {
  readonly sender: Client;
  readonly ready: () => void;
  readonly refused: (reason: BridgeError) => void;
}

export type Held<From> = HeldMessage<From> | WaitingClient<From>;

function heldBytes(held: Held<unknown>): number {
  return 'frame' in held ? frameBytes(held) : 0;
}

export class HeldMessages<From extends Sender> {
  /** Undefined while nothing has to wait, which is nearly always. */
  #held: ByteQueue<Held<From>> | undefined;

  get isEmpty(): boolean {
    return (this.#held?.length ?? 0) === 0;
  }

  get isFull(): boolean {
    return this.#held?.isFull ?? false;
  }

  add(held: Held<From>): void {
    this.#held ??= new ByteQueue<Held<From>>({ maxItems: MAX_HELD, maxBytes: MAX_HELD_BYTES }, heldBytes);
    this.#held.add(held);
  }

  /** Takes everything that waits, in its order. */
  takeAll(): readonly Held<From>[] {
    const held = this.#held?.takeAll() ?? [];
    this.#held = undefined;
    return held;
  }

  /** Passes on what has waited and is still wanted. False: the server is full. `send` says whether it is not. */
  passOn(send: (sender: From, frame: Frame, call: Call | undefined) => boolean): boolean {
    let hasCapacity = true;
    for (const held of this.takeAll()) {
      if (!held.sender.isListed) continue;
      if (!('frame' in held)) held.ready();
      else if (!isOver(held.call)) hasCapacity = send(held.sender, held.frame, held.call) && hasCapacity;
    }
    return hasCapacity;
  }

  /** Refuses all that has waited. */
  refuseAll(reason: BridgeError): void {
    for (const held of this.takeAll()) refuseHeld(held, reason);
  }

  dropOf(sender: From): void {
    this.#held?.removeAll((held) => held.sender === sender);
  }
}

/** Refuses what waits. Returns what its sender's `send` returns. */
export function refuseHeld(held: Held<Sender>, reason: BridgeError): true {
  if ('frame' in held) return refuse(held.sender, held.frame, held.call, reason);
  held.refused(reason);
  return true;
}
