import { BridgeError } from '../../errors.ts';
import { readRequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { CANCELED, isClientNotification } from '../../mcp/vocabulary/methods.ts';
import { INVALID_PARAMS } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { type Call, MAX_OPEN_CALLS } from '../../relay/call.ts';
import type { CallContext, ServerListener, UpstreamLink } from '../../relay/ports.ts';
import { type Frame, idToken } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { type ClientDescriptions, type DescribedClient, identified } from './client-descriptions.ts';
import { ModernRequest, type RequestServices } from './modern-request.ts';
import { passNotification } from './pass-notification.ts';

export interface ClientRequestsOptions {
  readonly services: RequestServices;
  readonly descriptions: ClientDescriptions;
  readonly context: CallContext;
  readonly listener: ServerListener;
}

/**
 * All requests of one client over one pipe. Each brings its own metadata and is found by its call; there is nothing
 * that two requests have in common, but that they are certainly of one client.
 */
export class ClientRequests implements UpstreamLink {
  listener: ServerListener;
  readonly #options: Omit<ClientRequestsOptions, 'listener'>;
  readonly #identity = {};
  readonly #open = new Map<Call, ModernRequest>();
  /** The client, as its latest request describes it: a notification may come without any metadata. */
  #latest: DescribedClient | undefined;
  #isClosed = false;

  constructor(options: ClientRequestsOptions) {
    this.#options = options;
    this.listener = options.listener;
  }

  /** The server's process serves other clients as well. */
  get process(): undefined {
    return undefined;
  }

  /** False: a notification waits for the server. */
  send(frame: Frame, call?: Call): boolean {
    if (frame.kind === 'request' && call !== undefined) this.#request(frame, call);
    else if (frame.method === CANCELED) this.#canceled(call);
    else if (frame.kind === 'notification') return this.#notification(frame);
    // A response of the client answers nothing, because clients are not asked by requests.
    return true;
  }

  #request(frame: Frame, call: Call): void {
    const client = this.#describe(frame);
    if ('fault' in client) return this.#refuse(frame, call, { code: INVALID_PARAMS, message: client.fault });
    this.#latest = client;
    if (this.#open.size >= MAX_OPEN_CALLS) return this.#refuse(frame, call, rpcErrorOf(TOO_MANY));
    const { services } = this.#options;
    const request = new ModernRequest({
      services,
      client,
      frame,
      listener: {
        fromServer: (told) => {
          if (told.isResponse) this.#open.delete(call);
          this.listener.fromServer(told, call);
        },
        serverDrained: () => this.listener.serverDrained(),
      },
    });
    // Before it is started, for it may be answered at once.
    this.#open.set(call, request);
    request.start();
  }

  /** Describes the client by the metadata of its message. */
  #describe(frame: Frame): DescribedClient | { readonly fault: string } {
    const metadata = readRequestMetadata(frame);
    if ('fault' in metadata) return metadata;
    const { descriptions, context } = this.#options;
    return identified(descriptions.of(context, metadata), this.#identity);
  }

  #canceled(call: Call | undefined): void {
    const request = call && this.#open.get(call);
    if (call === undefined || request === undefined) return;
    this.#open.delete(call);
    request.withdraw();
  }

  #notification(frame: Frame): boolean {
    const { services } = this.#options;
    const { pool, deps } = services;
    const described = this.#describe(frame);
    const client = 'fault' in described ? this.#latest : described;
    if (client === undefined) {
      deps.log.debug({ method: frame.method }, 'notification dropped: its client has asked nothing yet');
      return true;
    }
    // All other notifications of the specification mean nothing in this era.
    if (isClientNotification(frame.method ?? '')) return true;
    const drained = (): void => {
      if (!this.#isClosed) this.listener.serverDrained();
    };
    return passNotification(frame, { pool, client, log: deps.log, drained });
  }

  #refuse(frame: Frame, call: Call, error: RpcError): void {
    this.listener.fromServer(errorFrame(idToken(frame), error), call);
  }

  /** The server is not paused, because that would stop it for its other clients. */
  pause(): void {}
  resume(): void {}

  close(_reason: BridgeError): void {
    this.#isClosed = true;
    const requests = [...this.#open.values()];
    this.#open.clear();
    for (const request of requests) request.withdraw();
  }
}

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  `This client has ${MAX_OPEN_CALLS} unanswered calls, the most allowed; wait for answers before sending more.`,
);
