import type { Logger } from 'pino';
import { BridgeError } from '../../errors.ts';
import { type RequestMetadata, readRequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { CANCELLED } from '../../mcp/vocabulary/methods.ts';
import { INVALID_PARAMS } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { type Exchange, MAX_OPEN_EXCHANGES } from '../../relay/exchange.ts';
import type { ServerListener, UpstreamLink } from '../../relay/ports.ts';
import { type Frame, idToken } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';

export interface ClientConversationsOptions {
  readonly log: Logger;
  readonly listener: ServerListener;
  /** A conversation for one message that carries this metadata; it says to `listener` what it has to say. */
  readonly converse: (listener: ServerListener, metadata: RequestMetadata) => UpstreamLink;
}

/**
 * All that one client asks over one pipe. Each request brings its own metadata and is a conversation of its own, which
 * its exchange leads to; there is nothing else that two requests have in common.
 */
export class ClientConversations implements UpstreamLink {
  listener: ServerListener;
  readonly #options: Pick<ClientConversationsOptions, 'log' | 'converse'>;
  readonly #open = new Map<Exchange, UpstreamLink>();
  /** The metadata of the latest request: a notification may come without any, and is of the same client. */
  #latest: RequestMetadata | undefined;
  #isClosed = false;

  constructor(options: ClientConversationsOptions) {
    this.listener = options.listener;
    this.#options = options;
  }

  /** The server's process serves other clients as well. */
  get process(): undefined {
    return undefined;
  }

  /** False: a notification waits for the server. */
  send(frame: Frame, exchange?: Exchange): boolean {
    if (frame.kind === 'request' && exchange !== undefined) this.#request(frame, exchange);
    else if (frame.method === CANCELLED) this.#cancelled(frame, exchange);
    else if (frame.kind === 'notification') return this.#notification(frame);
    // A response of the client answers nothing, because clients are not asked by requests.
    return true;
  }

  #request(frame: Frame, exchange: Exchange): void {
    const metadata = readRequestMetadata(frame);
    if ('fault' in metadata) return this.#refuse(frame, exchange, { code: INVALID_PARAMS, message: metadata.fault });
    this.#latest = metadata;
    if (this.#open.size >= MAX_OPEN_EXCHANGES) return this.#refuse(frame, exchange, rpcErrorOf(TOO_MANY));
    const { converse } = this.#options;
    const conversation = converse(
      {
        fromServer: (told) => {
          if (told.isResponse) this.#open.delete(exchange);
          this.listener.fromServer(told, exchange);
        },
        serverFault: (fault) => this.listener.serverFault(fault),
        serverDrained: () => this.listener.serverDrained(),
        serverClosed: (reason) => {
          this.#open.delete(exchange);
          this.listener.fromServer(errorFrame(idToken(frame), rpcErrorOf(reason)), exchange);
        },
      },
      metadata,
    );
    // Before it is asked, for it may answer at once.
    this.#open.set(exchange, conversation);
    conversation.send(frame, exchange);
  }

  #cancelled(frame: Frame, exchange: Exchange | undefined): void {
    const conversation = exchange && this.#open.get(exchange);
    if (exchange === undefined || conversation === undefined) return;
    this.#open.delete(exchange);
    conversation.send(frame, exchange);
  }

  #notification(frame: Frame): boolean {
    const own = readRequestMetadata(frame);
    const metadata = 'fault' in own ? this.#latest : own;
    if (metadata === undefined) {
      this.#options.log.debug({ method: frame.method }, 'notification dropped: its client has asked nothing yet');
      return true;
    }
    const serverDrained = (): void => {
      if (!this.#isClosed) this.listener.serverDrained();
    };
    return this.#options.converse({ ...DEAF, serverDrained }, metadata).send(frame);
  }

  #refuse(frame: Frame, exchange: Exchange, error: RpcError): void {
    this.listener.fromServer(errorFrame(idToken(frame), error), exchange);
  }

  /** The server is not paused, because that would stop it for its other clients. */
  pause(): void {}
  resume(): void {}

  close(reason: BridgeError): void {
    this.#isClosed = true;
    const conversations = [...this.#open.values()];
    this.#open.clear();
    for (const conversation of conversations) conversation.close(reason);
  }
}

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  `This client has ${MAX_OPEN_EXCHANGES} unanswered calls, the most allowed; wait for answers before sending more.`,
);
const DEAF: ServerListener = {
  fromServer: () => {},
  serverFault: () => {},
  serverDrained: () => {},
  serverClosed: () => {},
};
