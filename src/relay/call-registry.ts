import { LinkedList } from '../collections/short-lived-values.ts';
import type { Deps } from '../deps.ts';
import { BridgeError, toBridgeError } from '../errors.ts';
import { readRequestState } from '../mcp/classify/input-responses.ts';
import type { RequestMetadata } from '../mcp/classify/request-metadata.ts';
import type { Frame } from '../wire/frame.ts';
import type { Lane } from './call.ts';
import { CallerLinks, type NotifyingCaller } from './caller-links.ts';
import { type Calls, type CallTimes, drained, shortestOf, sweepPeriodOf } from './calls.ts';
import type { MessageTap } from './message-tap.ts';
import {
  type CallHost,
  type CallOrigin,
  type CallPeer,
  type CallServer,
  describeCaller,
  ModernCall,
} from './modern-call.ts';
import { type ObservedClient, shownName, type Transport } from './observer.ts';
import type { CallerDialers } from './ports.ts';
import type { WiderLimits } from './shared-state.ts';
import { TappedPeer } from './tapped-peer.ts';

export interface CallRegistryOptions extends CallTimes {
  readonly dialers: CallerDialers;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
  /** Shared with the sessions. Subscriptions count, because they are calls that stay open. */
  readonly calls: Calls;
  /** Calls that one caller may have open, so that others get some too. Default: as many as all callers together. */
  readonly maxSessionInFlight?: number;
  /** Limits on the total of several bridges. Undefined if this bridge is the only one. */
  readonly widerLimits?: Pick<WiderLimits, 'refusalFor'> | undefined;
}

/** A modern request that has been checked. */
export interface CallRequest extends CallOrigin {
  readonly frame: Frame;
  readonly metadata: RequestMetadata;
  /** Headers of the caller's HTTP request that `--forward-header` names; see `Lane`. */
  readonly headers: Lane['headers'];
}

/** All open modern calls of the bridge, which are requests that belong to no session. */
export class CallRegistry implements CallHost {
  readonly #options: CallRegistryOptions;
  readonly calls: Calls;
  readonly #maxSessionInFlight: number;
  readonly #open = new LinkedList<ModernCall>();
  #size = 0;
  readonly #callerLinks: CallerLinks;
  readonly #perPrincipal = new Map<string, number>();
  #stopSweep: (() => void) | undefined;
  #isDraining = false;

  constructor(options: CallRegistryOptions) {
    this.#options = options;
    this.#callerLinks = new CallerLinks(options.dialers, options.deps);
    this.calls = options.calls;
    this.#maxSessionInFlight = options.maxSessionInFlight ?? options.calls.maxOpen;
  }

  get log(): Deps['log'] {
    return this.#options.deps.log;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Starts a call. Throws a BridgeError if a limit is reached or the server cannot be reached; then `createPeer` is not
   * called.
   */
  open(request: CallRequest, createPeer: () => CallPeer): void {
    const { taps } = this.calls;
    if (taps === undefined) return this.#begin(request, createPeer);
    const { frame, transport, metadata, introduction } = request;
    const name = introduction === undefined ? shownName(metadata.clientInfo?.name) : introduction.name;
    const tap = taps.call({ transport, era: introduction?.era ?? 'modern', name });
    const createTapped = (): CallPeer => new TappedPeer(createPeer(), tap);
    tap.received(frame, undefined, () => this.#begin(request, createTapped, tap));
  }

  #begin(request: CallRequest, createPeer: () => CallPeer, tap?: MessageTap): void {
    const { frame, principal, metadata, environment } = request;
    let server: CallServer | undefined;
    let peer: CallPeer;
    try {
      this.#checkLimits(principal, frame);
      server = this.#options.dialers.forCaller(environment).callServer();
      peer = createPeer();
    } catch (thrown) {
      if (server !== undefined) this.#linkEnded(request);
      const describe = (): ObservedClient => describeCaller(request, frame, this.calls.server);
      const answer = this.calls.refuse({ describe }, frame, toBridgeError(thrown));
      tap?.sent(answer, undefined);
      throw thrown;
    }
    const call = new ModernCall(this, request, frame, peer);
    peer.listener = call;
    this.#open.add(call);
    this.#size += 1;
    this.#count(principal, 1);
    this.#startSweep();
    try {
      call.start(frame, metadata, server);
    } catch (thrown) {
      // A fault of the bridge itself, which is answered by what called this.
      if (call.isOpen) this.calls.fail(call, call, toBridgeError(thrown));
      throw thrown;
    }
  }

  /** Forwards a notification that belongs to no call. A notification has no answer, so failures are only logged. */
  notify(notification: Frame, caller: NotifyingCaller & { readonly transport: Transport }): void {
    const { taps } = this.calls;
    if (taps === undefined) return this.#notify(notification, caller);
    const tap = taps.call({ transport: caller.transport, era: 'modern' });
    tap.received(notification, undefined, () => this.#notify(notification, caller));
  }

  #notify(notification: Frame, caller: NotifyingCaller): void {
    if (this.#isDraining) return;
    const sent = this.calls.toServer(caller, notification);
    if (sent.kind !== 'error') this.#callerLinks.send(sent, caller);
  }

  #checkLimits(principal: string, frame: Frame): void {
    // A call that comes back with answers is not new, so it is accepted until the end.
    if (this.#isDraining && readRequestState(frame) === undefined) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and takes no new calls.', RETRY);
    }
    const refusal = this.calls.refusalOf(frame);
    if (refusal !== undefined) throw refusal;
    if (this.countOf(principal) >= this.#maxSessionInFlight) {
      const message = `${this.#maxSessionInFlight} calls are open for this caller, the most allowed; wait for answers, or close subscriptions, before sending more.`;
      throw new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
    const wider = this.#options.widerLimits?.refusalFor(principal);
    if (wider !== undefined) throw wider.error;
  }

  /** Returns the number of open calls of a caller. */
  countOf(principal: string): number {
    return this.#perPrincipal.get(principal) ?? 0;
  }

  /** Called once for each call that was opened. */
  ended(call: ModernCall): void {
    call.unlink();
    this.#size -= 1;
    this.#count(call.principal, -1);
    this.#linkEnded(call);
  }

  #linkEnded({ environment }: CallOrigin): void {
    if (environment !== undefined) this.#options.dialers.linkEnded(environment);
  }

  #count(principal: string, change: 1 | -1): void {
    const count = this.countOf(principal) + change;
    if (count === 0) this.#perPrincipal.delete(principal);
    else this.#perPrincipal.set(principal, count);
  }

  #startSweep(): void {
    if (this.#stopSweep !== undefined) return;
    const periodMs = sweepPeriodOf(shortestOf(this.#options));
    const { clock } = this.calls;
    if (Number.isFinite(periodMs)) this.#stopSweep = clock.every(periodMs, () => this.#sweep(clock.now()));
  }

  #sweep(nowMs: number): void {
    for (const call of this.#open.toArray()) call.sweep(nowMs, this.#options);
  }

  /**
   * Accepts no new calls. Resolves when all calls but subscriptions are answered and `isAwaited` returns false, or
   * after `graceMs`. `isAwaited` returns true while parked calls may continue.
   */
  drain(graceMs: number, isAwaited: () => boolean = () => false): Promise<void> {
    this.#isDraining = true;
    return drained(this.calls.clock, graceMs, () => this.#hasOpenCalls() || isAwaited());
  }

  #hasOpenCalls(): boolean {
    for (const call of this.#open.toArray()) if (!call.isSubscription) return true;
    return false;
  }

  /**
   * Ends everything: subscriptions get their regular answer, and all other calls fail with the reason. May be called
   * twice.
   */
  close(reason: BridgeError): void {
    this.#isDraining = true;
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    for (const call of this.#open.toArray()) call.close(reason);
    this.#callerLinks.close(reason);
  }
}

const RETRY = { retryAfterMs: 1000 };
