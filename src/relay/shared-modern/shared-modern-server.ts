import { LinkedList } from '../../collections/linked-list.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import { CANCELLED } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Exchange } from '../exchange.ts';
import type { Readiness, ServerFault, ServerListener, UpstreamDialer, UpstreamLink } from '../ports.ts';
import { HeldMessages, refuse } from '../shared/held-messages.ts';
import { dialRefusalOf, logEnd, ProcessReplacement, RestartPause } from '../shared/process-replacement.ts';
import { type ClientMessage, FromModernClients } from './from-modern-clients.ts';
import { FromModernServer } from './from-modern-server.ts';
import { ModernCalls } from './modern-calls.ts';
import { ModernClientLink, type ModernClientLinkHost } from './modern-client-link.ts';

export interface SharedModernServerOptions {
  /** What it dials is one process of a modern server. */
  readonly dialer: UpstreamDialer;
  readonly deps: Deps;
  /** Start the server at once instead of with the first message, and keep it running. */
  readonly prewarm: boolean;
}

/**
 * - `idle`: no child; the first request starts one.
 * - `started`: it is spoken to, and has said nothing yet.
 * - `serving`: it has said something.
 * - `restarting`: the child ended, another follows after a pause and when nothing is left of it; messages wait.
 * - `closed`: for good.
 */
type ServerState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'started'; readonly link: UpstreamLink }
  | { readonly kind: 'serving'; readonly link: UpstreamLink }
  | { readonly kind: 'restarting'; readonly error: BridgeError; readonly cancel: () => void }
  | { readonly kind: 'closed' };

/**
 * One process of a modern server for all conversations and sessions: it holds no state for any of them, so nothing has
 * to be reconciled but ids. Each has a client link, which its relay takes for a link of its own. A process that
 * ends is replaced, and asked again for what it was to report.
 */
export class SharedModernServer implements UpstreamDialer, ServerListener, ModernClientLinkHost {
  readonly #options: SharedModernServerOptions;
  readonly #clients = new LinkedList<ModernClientLink>();
  readonly #calls: ModernCalls;
  readonly #fromClients: FromModernClients;
  readonly #fromServer: FromModernServer;
  readonly #held = new HeldMessages<ModernClientLink>();
  readonly #pause = new RestartPause();
  readonly #replacement: ProcessReplacement;
  #state: ServerState = { kind: 'idle' };
  #isWarm = false;

  constructor(options: SharedModernServerOptions) {
    const { deps, prewarm } = options;
    this.#options = options;
    this.#calls = new ModernCalls(deps.clock);
    this.#replacement = new ProcessReplacement(deps.clock);
    this.#fromClients = new FromModernClients(this.#calls, deps);
    this.#fromServer = new FromModernServer(this.#calls, deps.log);
    if (prewarm) this.keepWarm();
  }

  get name(): string {
    return this.#options.dialer.name;
  }

  /** Starts the server if it does not run, and keeps it running without clients. */
  keepWarm(): void {
    this.#isWarm = true;
    if (this.#state.kind === 'idle') this.#restart();
  }

  readiness(): Readiness {
    switch (this.#state.kind) {
      case 'idle':
      case 'started':
        return this.#options.dialer.readiness();
      case 'serving':
        return { state: 'ready' };
      case 'restarting':
        return { state: 'refused', error: this.#dialerRefusal() ?? this.#state.error };
      case 'closed':
        return { state: 'refused', error: SHUTTING_DOWN };
    }
  }

  #dialerRefusal(): BridgeError | undefined {
    return dialRefusalOf(this.#options.dialer.readiness());
  }

  // ---- clients

  /** Throws why the server cannot be started now, if it does not run. */
  dial(listener: ServerListener): UpstreamLink {
    if (this.#state.kind === 'closed') throw SHUTTING_DOWN;
    const refusal = this.#link() === undefined ? this.#dialerRefusal() : undefined;
    if (refusal !== undefined) throw refusal;
    const client = new ModernClientLink(this, listener);
    client.node = this.#clients.add(client);
    return client;
  }

  fromClient(client: ModernClientLink, frame: Frame, exchange: Exchange | undefined): boolean {
    const message: ClientMessage = { client, frame, exchange };
    const link = this.#link();
    if (link !== undefined) return this.#fromClients.take(link, message);
    switch (this.#state.kind) {
      case 'idle':
        if (frame.kind !== 'request') return true;
        if (this.#replacement.isClear) return this.#startWith(message);
        this.#startAfter(0, this.#starting());
        return this.#hold(message);
      case 'restarting':
        // A subscription that waits for the next process is over at once.
        if (frame.method === CANCELLED && this.#fromClients.withdraw(message) !== undefined) return true;
        return this.#hold(message);
      default:
        refuse(message, SHUTTING_DOWN);
        return true;
    }
  }

  #startWith(message: ClientMessage): boolean {
    try {
      return this.#fromClients.take(this.#start(), message);
    } catch (thrown) {
      refuse(message, toBridgeError(thrown));
      return true;
    }
  }

  /** The message waits and its client is held back, or is refused where waiting is of no use. */
  #hold(message: ClientMessage): boolean {
    const reason = this.#held.isFull ? this.#tooManyHeld() : this.#dialerRefusal();
    if (reason === undefined) this.#held.add(message);
    else refuse(message, reason);
    return reason !== undefined;
  }

  #tooManyHeld(): BridgeError {
    return new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting and too many messages wait.`);
  }

  leave(client: ModernClientLink): void {
    client.node?.remove();
    client.node = undefined;
    this.#held.dropOf(client);
    this.#fromClients.leave(this.#link(), client);
  }

  // ---- the child's life

  /** Throws what the dialer throws; nothing has changed then. */
  #start(): UpstreamLink {
    const link = this.#options.dialer.dial(this);
    this.#state = { kind: 'started', link };
    this.#fromClients.drained();
    this.#fromClients.listenAgain(link);
    return link;
  }

  #restart(): void {
    if (this.#isUnwanted) {
      this.#state = { kind: 'idle' };
      return;
    }
    if (!this.#replacement.isClear) return this.#startAfter(0, this.#starting());
    try {
      this.#start();
    } catch (thrown) {
      return this.#ended(toBridgeError(thrown));
    }
    this.#letGo();
  }

  /** Sends what has waited and lets the clients go on, unless that filled the server's pipe. */
  #letGo(): void {
    const hasCapacity = this.#held.passOn(({ client, frame, exchange }) => this.fromClient(client, frame, exchange));
    if (hasCapacity) this.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    if (this.#link() !== undefined) this.#ended(reason);
  }

  /** The child is gone, or could not be started. */
  #ended(reason: BridgeError): void {
    const wasServing = this.#state.kind === 'serving';
    const link = this.#link();
    if (link !== undefined) this.#replacement.awaitExit(link);
    logEnd(this.#options.deps.log, reason, wasServing);
    // First of all: whatever the clients do when they hear of it must not go to the child that is gone.
    this.#waitForNext(reason);
    this.#calls.forgetWithdrawn();
    for (const { upstreamId, subscription, client, idToken, exchange } of this.#calls.all()) {
      // Subscriptions stay, but for one to a server that has never said a word.
      if (subscription !== undefined && (wasServing || subscription.isAcknowledged)) continue;
      const isOpen = this.#calls.take(upstreamId) !== undefined;
      if (isOpen) client.listener.fromServer(errorFrame(idToken, rpcErrorOf(reason)), exchange);
    }
    // A child that never served has nothing to be replaced for: those who wait for it learn why.
    if (!wasServing || this.#dialerRefusal() !== undefined) this.#failHeld(reason);
  }

  #waitForNext(reason: BridgeError): void {
    if (this.#isUnwanted) {
      this.#state = { kind: 'idle' };
      return;
    }
    this.#startAfter(this.#pause.next(reason, this.#options.dialer.readiness()), reason);
  }

  #startAfter(pauseMs: number, error: BridgeError): void {
    this.#state = { kind: 'restarting', error, cancel: this.#replacement.after(pauseMs, () => this.#restart()) };
  }

  #starting(): BridgeError {
    return new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting.`);
  }

  get #isUnwanted(): boolean {
    return this.#clients.isEmpty && !this.#isWarm;
  }

  #failHeld(reason: BridgeError): void {
    for (const held of this.#held.takeAll()) refuse(held, reason);
    this.serverDrained();
  }

  // ---- what the child says

  fromServer(frame: Frame): void {
    if (this.#state.kind === 'started') {
      this.#state = { kind: 'serving', link: this.#state.link };
      this.#pause.served();
    }
    if (this.#state.kind === 'serving') this.#fromServer.take(frame);
  }

  serverFault(fault: ServerFault): void {
    if (this.#link() !== undefined) this.#fromServer.fault(fault);
  }

  serverDrained(): void {
    this.#fromClients.drained();
    for (const client of this.#clients.toArray()) client.listener.serverDrained();
  }

  #link(): UpstreamLink | undefined {
    return this.#state.kind === 'started' || this.#state.kind === 'serving' ? this.#state.link : undefined;
  }

  /** The clients' sessions end with it. */
  async close(): Promise<void> {
    const link = this.#link();
    if (this.#state.kind === 'restarting') this.#state.cancel();
    this.#state = { kind: 'closed' };
    for (const client of this.#clients.toArray()) client.listener.serverClosed(SHUTTING_DOWN);
    link?.close(SHUTTING_DOWN);
    await this.#options.dialer.close();
  }

  killNow(): void {
    this.#options.dialer.killNow();
  }
}
