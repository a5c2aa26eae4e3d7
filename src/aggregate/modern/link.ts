import { CellMap } from '../../collections/short-lived-values.ts';
import { BridgeError } from '../../errors.ts';
import { type RequestMetadata, readRequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { CANCELED } from '../../mcp/vocabulary/methods.ts';
import { INVALID_PARAMS } from '../../mcp/vocabulary/rpc-codes.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call } from '../../relay/call.ts';
import { MAX_OPEN_CALLS } from '../../relay/call.ts';
import type { CallContext, CallerEnvironment, LinkOwner, ServerListener, UpstreamLink } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Aggregate } from '../aggregate.ts';
import { passNotification } from './notify.ts';
import { AggregateRequest } from './request.ts';
import type { Viewers } from './viewer.ts';

export interface AggregateLinkOptions {
  readonly aggregate: Aggregate;
  readonly viewers: Viewers;
  readonly context: CallContext;
  readonly environment: CallerEnvironment | undefined;
  readonly owner: LinkOwner;
}

/** All requests of one modern client on a pipe. */
export class AggregateLink implements UpstreamLink {
  listener: ServerListener | undefined;
  readonly #options: AggregateLinkOptions;
  readonly #identity = {};
  readonly #open = new CellMap<JsonRpcId, AggregateRequest>();
  /** The client, as its latest request describes it: a notification may come without any metadata. */
  #latest: RequestMetadata | undefined;

  constructor(options: AggregateLinkOptions) {
    this.#options = options;
    this.listener = options.owner;
  }

  get process(): undefined {
    return undefined;
  }

  send(frame: Frame, call?: Call): boolean {
    if (frame.kind === 'request' && call !== undefined) this.#request(frame, call);
    else if (frame.method === CANCELED) this.#canceled(call);
    else if (frame.kind === 'notification') this.#notification(frame);
    // Servers that are full are waited for one by one, so that the client's other calls go on.
    return true;
  }

  #request(frame: Frame, call: Call): void {
    const { aggregate, viewers, context, environment } = this.#options;
    const metadata = readRequestMetadata(frame);
    if ('fault' in metadata) return this.#refuse(call, { code: INVALID_PARAMS, message: metadata.fault });
    if (this.#open.size >= MAX_OPEN_CALLS) return this.#refuse(call, rpcErrorOf(TOO_MANY));
    this.#latest = metadata;
    const { principal } = context;
    const { headers = context.headers, traceHeaders } = call.lane;
    const caller = { principal, environment, headers, traceHeaders, identity: this.#identity };
    const open = this.#open;
    const request: AggregateRequest = new AggregateRequest({
      aggregate,
      viewer: viewers.of(caller, metadata),
      caller,
      metadata,
      frame,
      sink: {
        get isOpen() {
          return open.get(call.id) === request;
        },
        fromServer: (told) => {
          if (told.isResponse) open.delete(call.id);
          this.listener?.fromServer(told, call);
        },
        serverDrained: () => this.listener?.serverDrained(),
      },
    });
    open.set(call.id, request);
    request.start();
  }

  #canceled(call: Call | undefined): void {
    const request = call && this.#open.get(call.id);
    if (call === undefined || request === undefined) return;
    this.#open.delete(call.id);
    request.withdraw();
  }

  #notification(frame: Frame): void {
    const { aggregate, viewers, context, environment } = this.#options;
    const { principal, headers } = context;
    const own = readRequestMetadata(frame);
    const metadata = 'fault' in own ? this.#latest : own;
    if (metadata === undefined) return;
    const caller = { principal, environment, headers, traceHeaders: undefined, identity: this.#identity };
    passNotification(frame, caller, { aggregate, viewer: viewers.of(caller, metadata) });
  }

  #refuse(call: Call, error: { readonly code: number; readonly message: string }): void {
    this.listener?.fromServer(errorFrame(call.id, error), call);
  }

  pause(): void {
    for (const request of this.#open.values()) request.pause();
  }

  resume(): void {
    for (const request of this.#open.values()) request.resume();
  }

  close(): void {
    const requests = [...this.#open.values()];
    this.#open.clear();
    for (const request of requests) request.withdraw();
  }
}

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  `This client has ${MAX_OPEN_CALLS} unanswered calls, the most allowed; wait for answers before sending more.`,
);
