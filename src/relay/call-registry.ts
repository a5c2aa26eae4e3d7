import { LinkedList } from '../collections/linked-list.ts';
import type { Deps } from '../deps.ts';
import { BridgeError, toBridgeError } from '../errors.ts';
import type { RequestMetadata } from '../mcp/classify/request-metadata.ts';
import type { Frame } from '../wire/frame.ts';
import { type CallTimes, shortestOf } from './call-endings.ts';
import { type CallListener, type CallPeer, CallRelay, type CallRelayHost } from './call-relay.ts';
import { CallerLinks, type NotifyingCaller } from './caller-links.ts';
import type { Lane } from './exchange.ts';
import { OpenCalls } from './open-calls.ts';
import type { CallerEnvironment, UpstreamDialer } from './ports.ts';

export interface CallRegistryOptions extends CallTimes {
  /** Each call is dialled with its context. */
  readonly dialer: UpstreamDialer;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
  /** Subscriptions count: they are calls that stay open. Shared with the sessions; default: of its own. */
  readonly openCalls?: OpenCalls;
  /** So that one caller leaves room for others; default: as many as all together may have. */
  readonly maxPerCaller?: number;
}

/** A modern request that was checked. */
export interface CallRequest {
  readonly frame: Frame;
  readonly principal: string;
  readonly metadata: RequestMetadata;
  /** What its server's process is told about the caller. */
  readonly environment?: CallerEnvironment | undefined;
  /** Headers of the caller's HTTP request that the user lets pass; see `Lane`. */
  readonly headers?: Lane['headers'];
}

/** How often calls that take too long are looked for; shorter limits are checked more often. */
const MAX_SWEEP_MS = 1000;
const DRAIN_POLL_MS = 20;

/** All modern calls of the bridge that are open: requests that belong to no session. */
export class CallRegistry implements CallRelayHost {
  readonly #options: CallRegistryOptions;
  readonly #openCalls: OpenCalls;
  readonly #maxPerCaller: number;
  readonly #shortestMs: number | undefined;
  readonly #calls = new LinkedList<CallRelay>();
  #size = 0;
  readonly #callerLinks: CallerLinks;
  readonly #perPrincipal = new Map<string, number>();
  #stopSweep: (() => void) | undefined;
  #isDraining = false;

  constructor(options: CallRegistryOptions) {
    this.#options = options;
    this.#callerLinks = new CallerLinks(options.dialer, options.deps);
    this.#shortestMs = shortestOf(options);
    this.#openCalls = options.openCalls ?? new OpenCalls();
    this.#maxPerCaller = options.maxPerCaller ?? this.#openCalls.limit;
  }

  get log(): Deps['log'] {
    return this.#options.deps.log;
  }

  get clock(): Deps['clock'] {
    return this.#options.deps.clock;
  }

  get size(): number {
    return this.#size;
  }

  /** Throws a BridgeError when a limit is reached or there is no server for one more; no peer was made then. */
  open(
    { frame, principal, metadata, environment, headers }: CallRequest,
    createPeer: (listener: CallListener) => CallPeer,
  ): void {
    this.#checkLimits(principal, frame.bytes.length);
    const call = new CallRelay(this, principal, frame.bytes.length);
    const link = this.#options.dialer.dial(call, { principal, metadata, headers }, environment);
    let peer: CallPeer;
    try {
      peer = createPeer(call);
    } catch (thrown) {
      link.close(toBridgeError(thrown));
      throw thrown;
    }
    call.node = this.#calls.add(call);
    this.#size += 1;
    this.#openCalls.opened(call.requestBytes);
    this.#count(principal, 1);
    this.#startSweep();
    call.start(frame, peer, link);
  }

  /** A notification that comes alone. Nobody waits for it, so there is nobody to be told if it cannot be sent. */
  notify(notification: Frame, caller: NotifyingCaller): void {
    if (!this.#isDraining) this.#callerLinks.send(notification, caller);
  }

  #checkLimits(principal: string, requestBytes: number): void {
    if (this.#isDraining) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and takes no new calls.', RETRY);
    }
    const refusal = this.#openCalls.refusalOf(requestBytes);
    if (refusal !== undefined) throw refusal;
    if ((this.#perPrincipal.get(principal) ?? 0) >= this.#maxPerCaller) {
      const message = `${this.#maxPerCaller} calls are open for this caller, the most allowed; wait for answers, or close subscriptions, before sending more.`;
      throw new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
  }

  ended(call: CallRelay): void {
    call.node?.remove();
    this.#size -= 1;
    this.#openCalls.closed(call.requestBytes);
    this.#count(call.principal, -1);
  }

  #count(principal: string, change: 1 | -1): void {
    const count = (this.#perPrincipal.get(principal) ?? 0) + change;
    if (count === 0) this.#perPrincipal.delete(principal);
    else this.#perPrincipal.set(principal, count);
  }

  #startSweep(): void {
    if (this.#shortestMs === undefined || this.#stopSweep !== undefined) return;
    const periodMs = Math.max(10, Math.min(MAX_SWEEP_MS, this.#shortestMs / 4));
    this.#stopSweep = this.clock.every(periodMs, () => this.#sweep(this.clock.now()));
  }

  #sweep(nowMs: number): void {
    for (const call of this.#calls.toArray()) call.sweep(nowMs, this.#options);
  }

  /** No new calls; resolves when all but the subscriptions are answered, or after `graceMs`. */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    const deadlineMs = this.clock.now() + graceMs;
    while (this.#hasOpenCalls() && this.clock.now() < deadlineMs) {
      await new Promise<void>((resolve) => this.clock.after(DRAIN_POLL_MS, resolve));
    }
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
