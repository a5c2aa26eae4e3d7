import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Revision } from '../../mcp/vocabulary/revisions.ts';
import type { Exchange, Lane } from '../../relay/exchange.ts';
import type { ClientListener, DownstreamPeer } from '../../relay/ports.ts';
import type { SessionClient, SessionRegistry } from '../../relay/sessions/session-registry.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import type { MessageConnection } from './message-connection.ts';
import type { SharedInput } from './shared-input.ts';

/** Who is at the other end, as the sessions are told. */
export interface ConnectionClient extends Pick<SessionClient, 'transport' | 'principal' | 'environment'> {
  /** The caller's name in modern requests, which belong to somebody in any case. */
  readonly callerName: string;
  /** See `Lane`. */
  readonly headers: Lane['headers'];
}

export interface ConnectionPeerOptions {
  readonly connection: Pick<MessageConnection, 'send'>;
  readonly input: SharedInput;
  readonly client: Pick<ConnectionClient, 'headers'>;
  readonly listener: ClientListener;
  /** The relay has let go of this client. */
  readonly onClose: (reason: BridgeError) => void;
}

/** The client, as one of its conversations sees it. Its connection is also the lane of each of its calls. */
export class ConnectionPeer implements DownstreamPeer, Lane {
  readonly isOpen = true;
  readonly isConnected = true;
  readonly hasLeft = false;
  readonly headers: Lane['headers'];
  readonly #options: ConnectionPeerOptions;
  #isFull = false;

  constructor(options: ConnectionPeerOptions) {
    this.#options = options;
    this.headers = options.client.headers;
  }

  send(frame: Frame, _exchange?: Exchange): boolean {
    return this.write(frame.bytes);
  }

  /** False: full, the listener is told when there is capacity. */
  write(message: Buffer): boolean {
    const hasCapacity = this.#options.connection.send(message);
    if (!hasCapacity) this.#isFull = true;
    return hasCapacity;
  }

  drained(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#options.listener.clientDrained();
  }

  release(_exchange: Exchange): void {}
  negotiated(_revision: Revision): void {}

  pause(): void {
    this.#options.input.pauseFor(this);
  }

  resume(): void {
    this.#options.input.resumeFor(this);
  }

  close(reason: BridgeError): void {
    this.#options.input.resumeFor(this);
    this.#options.onClose(reason);
  }
}

/** What a client says in one era goes to one server; what it says in the other is another conversation. */
export interface ConversationOptions {
  readonly connection: Pick<MessageConnection, 'send'>;
  readonly client: ConnectionClient;
  readonly input: SharedInput;
  readonly sessions: SessionRegistry;
  readonly deps: Deps;
  /** The other conversation has a call open under this id: there is one space of ids on a connection. */
  readonly isTaken: (id: JsonRpcId) => boolean;
}

/** Why a request cannot be handed to a server; its client is told, too. At our own end there may be many, and no fault. */
export function logRefusal({ log }: Deps, error: BridgeError): void {
  const level = error.code === 'ERR_SESSION_CLOSED' ? 'debug' : 'error';
  log[level]({ code: error.code, err: error.cause }, error.message);
}

export function takenId(id: JsonRpcId): BridgeError {
  return new BridgeError(
    'ERR_WIRE_MESSAGE',
    `Request id ${JSON.stringify(id)} is already in use by a call of another era that has not been answered; use a new id for each request.`,
  );
}
