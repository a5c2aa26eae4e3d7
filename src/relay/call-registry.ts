import { LinkedList } from '../collections/short-lived-values.ts';
import type { Deps } from '../deps.ts';
import { BridgeError, toBridgeError } from '../errors.ts';
import type { RequestMetadata } from '../mcp/classify/request-metadata.ts';
import type { Frame } from '../wire/frame.ts';
import { type CallListener, type CallOrigin, type CallPeer, CallRelay, type CallRelayHost } from './call-relay.ts';
import { CallerLinks, type NotifyingCaller } from './caller-links.ts';
import type { WiderLimits } from './cluster-ports.ts';
import type { Lane } from './exchange.ts';
import { type CallTimes, drained, type Exchanges, shortestOf, sweepPeriodOf } from './exchanges.ts';
import type { CallerDialers, CallerEnvironment, UpstreamLink } from './ports.ts';

export interface CallRegistryOptions extends CallTimes {
  /** Each call is dialled with its context. */
  readonly dialers: CallerDialers;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
  /** Shared with the sessions. Subscriptions count: they are calls that stay open. */
  readonly exchanges: Exchanges;
  /** Calls that one caller may have open, so that others get some; default: as many as all together may have. */
  readonly maxPerCaller?: number;
  /** Of several bridges; default: there are none. */
  readonly widerLimits?: Pick<WiderLimits, 'refusalFor'> | undefined;
}

/** A modern request that was checked. */
export interface CallRequest extends CallOrigin {
  readonly frame: Frame;
  readonly metadata: RequestMetadata;
  /** What its server's process is told about the caller. */
  readonly environment: CallerEnvironment | undefined;
  /** Headers of the caller's HTTP request that the user lets pass; see `Lane`. */
  readonly headers: Lane['headers'];
}

/** All modern calls of the bridge that are open: requests that belong to no session. */
export class CallRegistry implements CallRelayHost {
  readonly #options: CallRegistryOptions;
  readonly exchanges: Exchanges;
  readonly #maxPerCaller: number;
  readonly #calls = new LinkedList<CallRelay>();
  #size = 0;
  readonly #callerLinks: CallerLinks;
  readonly #perPrincipal = new Map<string, number>();
  #stopSweep: (() => void) | undefined;
  #isDraining = false;

  constructor(options: CallRegistryOptions) {
    this.#options = options;
    this.#callerLinks = new CallerLinks(options.dialers, options.deps);
    this.exchanges = options.exchanges;
    this.#maxPerCaller = options.maxPerCaller ?? options.exchanges.maxOpen;
  }

  get log(): Deps['log'] {
    return this.#options.deps.log;
  }

  get size(): number {
    return this.#size;
  }

  /** Throws a BridgeError when a limit is reached or there is no server for one more; no peer was made then. */
  open(request: CallRequest, createPeer: (listener: CallListener) => CallPeer): void {
    const call = new CallRelay(this, request);
    let link: UpstreamLink | undefined;
    let peer: CallPeer;
    try {
      link = this.#dial(request, call);
      peer = createPeer(call);
    } catch (thrown) {
      const error = toBridgeError(thrown);
      link?.close(error);
      this.exchanges.refuse(call, request.frame, error);
      throw thrown;
    }
    call.node = this.#calls.add(call);
    this.#size += 1;
    this.#count(call.principal, 1);
    this.#startSweep();
    call.start(request.frame, peer, link);
  }

  #dial({ frame, principal, metadata, environment, headers }: CallRequest, call: CallRelay): UpstreamLink {
    this.#checkLimits(principal, frame.bytes.length);
    return this.#options.dialers.forCaller(environment).dialCalls(call, { principal, metadata, headers });
  }

  /** A notification that comes alone. Nobody waits for it, so there is nobody to be told if it cannot be sent. */
  notify(notification: Frame, caller: NotifyingCaller): void {
    if (!this.#isDraining) this.#callerLinks.send(notification, caller);
  }

  #checkLimits(principal: string, requestBytes: number): void {
    if (this.#isDraining) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and takes no new calls.', RETRY);
    }
    const refusal = this.exchanges.refusalOf(requestBytes);
    if (refusal !== undefined) throw refusal;
    if (this.countOf(principal) >= this.#maxPerCaller) {
      const message = `${this.#maxPerCaller} calls are open for this caller, the most allowed; wait for answers, or close subscriptions, before sending more.`;
      throw new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
    const wider = this.#options.widerLimits?.refusalFor(principal);
    if (wider !== undefined) throw wider.error;
  }

  /** Open calls of a caller. */
  countOf(principal: string): number {
    return this.#perPrincipal.get(principal) ?? 0;
  }

  ended(call: CallRelay): void {
    call.node?.remove();
    this.#size -= 1;
    this.#count(call.principal, -1);
  }

  #count(principal: string, change: 1 | -1): void {
    const count = this.countOf(principal) + change;
    if (count === 0) this.#perPrincipal.delete(principal);
    else this.#perPrincipal.set(principal, count);
  }

  #startSweep(): void {
    if (this.#stopSweep !== undefined) return;
    const periodMs = sweepPeriodOf(shortestOf(this.#options));
    const { clock } = this.exchanges;
    if (Number.isFinite(periodMs)) this.#stopSweep = clock.every(periodMs, () => this.#sweep(clock.now()));
  }

  #sweep(nowMs: number): void {
    for (const call of this.#calls.toArray()) call.sweep(nowMs, this.#options);
  }

  /** No new calls; resolves when all but the subscriptions are answered, or after `graceMs`. */
  drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    return drained(this.exchanges.clock, graceMs, () => this.#hasOpenCalls());
  }

  #hasOpenCalls(): boolean {
    for (const call of this.#calls.toArray()) if (!call.isSubscription) return true;
    return false;
  }

  /** Subscriptions end as they should, all other calls fail with the reason. May be called twice. */
  close(reason: BridgeError): void {
    this.#isDraining = true;
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    for (const call of this.#calls.toArray()) call.close(reason);
    this.#callerLinks.close(reason);
  }
}

const RETRY = { retryAfterMs: 1000 };
