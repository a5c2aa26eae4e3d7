import { ByteQueue, frameBytes } from '../../collections/byte-queue.ts';
import type { BridgeError } from '../../errors.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { idToken } from '../../wire/splice.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Exchange } from '../exchange.ts';
import type { ServerListener } from '../ports.ts';
import type { ClientLink } from './client-link.ts';

/** Messages that may wait while the server starts. Each client is held back from its first one on. */
const MAX_HELD = 1024;
/** The first of each client may be as large as messages get. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;

/** A client of a shared server, of either era. */
interface HeldClient {
  readonly listener: ServerListener;
  /** Undefined: it has left. */
  readonly node: object | undefined;
}

export interface HeldMessage<Client extends HeldClient = ClientLink> {
  readonly client: Client;
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

/** What the clients of a shared server say while it cannot hear them. */
export class HeldMessages<Client extends HeldClient = ClientLink> {
  readonly #held = new ByteQueue<HeldMessage<Client>>({ maxItems: MAX_HELD, maxBytes: MAX_HELD_BYTES }, frameBytes);

  get isFull(): boolean {
    return this.#held.isFull;
  }

  add(message: HeldMessage<Client>): void {
    this.#held.add(message);
  }

  /** Everything, in order; nothing is left. */
  takeAll(): readonly HeldMessage<Client>[] {
    return this.#held.takeAll();
  }

  /** Passes on what has waited and is still wanted. False: the server is full. `send` says whether it is not. */
  passOn(send: (message: HeldMessage<Client>) => boolean): boolean {
    let hasCapacity = true;
    for (const message of this.takeAll()) {
      if (!isOver(message) && message.client.node !== undefined) hasCapacity = send(message) && hasCapacity;
    }
    return hasCapacity;
  }

  dropOf(client: Client): void {
    if (this.#held.length > 0) this.#held.removeAll((held) => held.client === client);
  }
}

/** A call gets the reason for an answer; for anything else there is nobody to tell. */
export function refuse(message: HeldMessage<HeldClient>, reason: BridgeError): void {
  const { client, frame, exchange } = message;
  if (frame.kind !== 'request' || isOver(message)) return;
  client.listener.fromServer(errorFrame(idToken(frame), rpcErrorOf(reason)), exchange);
}

/** Its call was answered or withdrawn meanwhile. */
function isOver({ exchange }: HeldMessage<HeldClient>): boolean {
  return exchange !== undefined && exchange.state.kind !== 'open';
}
