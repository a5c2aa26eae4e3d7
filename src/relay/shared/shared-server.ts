import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import { changeNotifications } from '../../mcp/translate/change-notifications.ts';
import { CARRIED_CAPABILITIES } from '../../mcp/vocabulary/client-capabilities.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { INITIALIZE, INITIALIZED } from '../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/vocabulary/revisions.ts';
import type { Frame } from '../../wire/frame.ts';
import { notificationFrame, requestFrame, resultFrame } from '../../wire/write-message.ts';
import { Exchange } from '../exchange.ts';
import type { Readiness, ServerFault, ServerListener, UpstreamDialer, UpstreamLink } from '../ports.ts';
import { ClientLink, type ClientLinkHost } from './client-link.ts';
import { FromClients } from './from-clients.ts';
import { FromServer } from './from-server.ts';
import { type HeldMessage, HeldMessages, refuse } from './held-messages.ts';
import { type InitializeResult, isSameOffer, readInitializeResult, refusalOf } from './initialize-result.ts';
import { dialRefusalOf, logEnd, ProcessReplacement, RestartPause } from './process-replacement.ts';
import { type ReadyServer, SharedState } from './shared-state.ts';
import type { SoleOwner } from './sole-owner.ts';

export interface SharedServerOptions {
  readonly dialer: UpstreamDialer;
  readonly deps: Deps;
  /** Start the server at once instead of with the first client, and keep it running. */
  readonly prewarm: boolean;
  /** A server that has not answered `initialize` by then is replaced; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  /** What the server is told it talks to. */
  readonly clientInfo: Implementation;
  /** The one client that all links are for. Undefined: each link is that of another client, and hears only its own. */
  readonly owner?: SoleOwner;
}

/**
 * - `idle`: no child; the first client starts one.
 * - `starting`: the handshake is under way; messages wait.
 * - `ready`: serving.
 * - `restarting`: the child ended, another follows after a pause and when nothing is left of it; messages wait.
 * - `closed`: for good.
 */
type ServerState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'starting'; readonly link: UpstreamLink; readonly cancel: () => void }
  | { readonly kind: 'ready'; readonly server: ReadyServer }
  | { readonly kind: 'restarting'; readonly error: BridgeError; readonly cancel: () => void }
  | { readonly kind: 'closed' };

/**
 * One server for all clients: `--isolation shared`. Each client has a client link, which its relay takes for a link
 * of its own; one child serves them all and is replaced when it ends, brought up to date without the clients' help.
 */
export class SharedServer implements UpstreamDialer, ServerListener, ClientLinkHost {
  readonly #options: SharedServerOptions;
  readonly #shared: SharedState;
  readonly #fromClients: FromClients;
  readonly #fromServer: FromServer;
  readonly #held = new HeldMessages();
  readonly #pause = new RestartPause();
  readonly #replacement: ProcessReplacement;
  #state: ServerState = { kind: 'idle' };
  #isWarm = false;
  /** What the clients were told the server offers; a next child must offer the same to go on with them. */
  #previous: InitializeResult | undefined;

  constructor(options: SharedServerOptions) {
    this.#options = options;
    this.#shared = new SharedState(options.deps.clock);
    this.#fromClients = new FromClients(this.#shared, options.owner);
    this.#fromServer = new FromServer(this.#shared, options.deps.log, options.owner);
    this.#replacement = new ProcessReplacement(options.deps.clock);
    if (options.prewarm) this.keepWarm();
  }

  get name(): string {
    return this.#options.dialer.name;
  }

  /** Starts the server if it does not run, and keeps it running without clients. */
  keepWarm(): void {
    this.#isWarm = true;
    if (this.#state.kind === 'idle') this.#restart();
  }

  /** What the server said of itself; undefined while none serves. */
  get initializeResult(): InitializeResult | undefined {
    return this.#state.kind === 'ready' ? this.#state.server.initializeResult : undefined;
  }

  readiness(): Readiness {
    switch (this.#state.kind) {
      case 'idle':
        return this.#options.dialer.readiness();
      case 'ready':
        return { state: 'ready' };
      case 'starting':
        return { state: 'refused', error: this.#starting() };
      case 'restarting':
        return { state: 'refused', error: this.#dialerRefusal() ?? this.#state.error };
      case 'closed':
        return { state: 'refused', error: SHUTTING_DOWN };
    }
  }

  #starting(): BridgeError {
    return new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting.`);
  }

  #dialerRefusal(): BridgeError | undefined {
    return dialRefusalOf(this.#options.dialer.readiness());
  }

  // ---- clients

  dial(listener: ServerListener): UpstreamLink {
    if (this.#state.kind === 'closed') throw SHUTTING_DOWN;
    if (this.#state.kind === 'idle') this.#start();
    const refusal = this.#state.kind === 'restarting' ? this.#dialerRefusal() : undefined;
    if (refusal !== undefined) throw refusal;
    const client = new ClientLink(this, listener, this.#options.deps.clock);
    const { owner } = this.#options;
    if (owner !== undefined) client.declare(owner.capabilities, this.#state.kind === 'ready');
    client.node = this.#shared.clients.add(client);
    return client;
  }

  fromClient(client: ClientLink, frame: Frame, exchange: Exchange | undefined): boolean {
    if (this.#state.kind === 'ready') return this.#fromClients.take(this.#state.server, client, frame, exchange);
    return this.#hold({ client, frame, exchange });
  }

  /** The message waits and its client is held back, or is refused where waiting is of no use. */
  #hold(message: HeldMessage): boolean {
    const reason = this.#reasonNotToWait();
    if (reason === undefined) this.#held.add(message);
    else refuse(message, reason);
    return reason !== undefined;
  }

  #reasonNotToWait(): BridgeError | undefined {
    if (this.#state.kind === 'closed') return SHUTTING_DOWN;
    if (this.#held.isFull) {
      return new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting and too many messages wait.`);
    }
    return this.#state.kind === 'restarting' ? this.#dialerRefusal() : undefined;
  }

  leave(client: ClientLink): void {
    client.node?.remove();
    client.node = undefined;
    this.#held.dropOf(client);
    if (this.#state.kind === 'ready') this.#fromClients.leave(this.#state.server, client, CLIENT_LEFT);
    this.#forget(client);
  }

  #forget(client: ClientLink): void {
    this.#shared.subscriptions.removeClient(client);
    this.#shared.levels.set(client, undefined);
  }

  // ---- the child's life

  /** At once, or when nothing is left of the one before. Throws what the dialer throws; nothing has changed then. */
  #start(): void {
    if (!this.#replacement.isClear) return this.#startAfter(0, this.#starting());
    const { dialer, deps, clientInfo, owner, handshakeTimeoutMs } = this.#options;
    const link = dialer.dial(this);
    const giveUp = (): void => this.#giveUp(link, this.#timedOut());
    const cancel = handshakeTimeoutMs === 0 ? () => {} : deps.clock.after(handshakeTimeoutMs, giveUp);
    this.#state = { kind: 'starting', link, cancel };
    const id = this.#shared.nextId();
    this.#shared.own.set(id, (answer) => this.#handshakeAnswered(link, answer));
    const capabilities = owner?.capabilities ?? CARRIED_CAPABILITIES;
    const params = { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities, clientInfo };
    const exchange = owner && new Exchange(id, INITIALIZE, owner.lane, undefined, deps.clock.now());
    link.send(requestFrame(id, INITIALIZE, params), exchange);
  }

  /**
   * Goes on with the next connection of the dialer, which has been through the handshake that was answered so, with the
   * capabilities of the bridge. False: a server has been started meanwhile, or cannot be.
   */
  startInitialized(result: unknown): boolean {
    if (this.#state.kind !== 'idle' || !this.#replacement.isClear) return false;
    const link = this.#options.dialer.dial(this);
    this.#state = { kind: 'starting', link, cancel: () => {} };
    this.#handshakeAnswered(link, resultFrame(this.#shared.nextId(), result as object));
    return true;
  }

  #timedOut(): BridgeError {
    const timeoutMs = this.#options.handshakeTimeoutMs;
    const message = `${this.name} did not answer initialize within ${timeoutMs} ms; raise --request-timeout if it needs longer.`;
    return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'initialize', timeoutMs } });
  }

  #handshakeAnswered(link: UpstreamLink, answer: Frame): void {
    const initializeResult = readInitializeResult(answer);
    if (initializeResult === undefined) return this.#giveUp(link, refusalOf(this.name, answer));
    if (this.#options.owner?.redeclare(initializeResult) === true) return this.#startOver(link);
    if (this.#state.kind === 'starting') this.#state.cancel();
    const server: ReadyServer = { link, initializeResult };
    this.#state = { kind: 'ready', server };
    this.#pause.served();
    link.send(notificationFrame(INITIALIZED));
    this.#options.owner?.served(initializeResult);
    const previous = this.#previous;
    this.#previous = initializeResult;
    if (previous !== undefined) this.#resume(server, previous);
    this.#letGo();
  }

  /** A handshake cannot be taken back, nor made twice on one connection. */
  #startOver(link: UpstreamLink): void {
    if (this.#state.kind === 'starting') this.#state.cancel();
    link.close(TOLD_ANEW);
    this.#replacement.awaitExit(link);
    this.#tryStart();
  }

  /** After `close` the link says nothing more, not even that it ended. */
  #giveUp(link: UpstreamLink, reason: BridgeError): void {
    link.close(reason);
    this.#ended(reason);
  }

  /** Brings a new child to where the old one was, and tells the clients to look again: they may have missed changes. */
  #resume(server: ReadyServer, previous: InitializeResult): void {
    if (!isSameOffer(previous, server.initializeResult)) return this.#dismissIntroduced();
    this.#fromClients.restore(server);
    const uris = this.#shared.subscriptions.uris();
    for (const notification of changeNotifications(server.initializeResult.capabilities, uris)) {
      this.#fromServer.take(server.link, notification);
    }
  }

  /** Ends the sessions of those who know another offer than the server makes now; it never heard of their wishes. */
  #dismissIntroduced(): void {
    const reason = `${this.name} was restarted and offers other capabilities than before; open a new session.`;
    for (const client of this.#shared.clients.toArray().filter(({ isIntroduced }) => isIntroduced)) {
      this.#forget(client);
      client.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', reason));
    }
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
    const wasServing = this.#state.kind === 'ready';
    const link = this.#link();
    if (link !== undefined) this.#replacement.awaitExit(link);
    logEnd(this.#options.deps.log, reason, wasServing);
    if (this.#state.kind === 'starting') this.#state.cancel();
    // First of all: whatever the clients do when they hear of it must not go to the child that is gone.
    this.#waitForNext(reason);
    if (wasServing) this.#options.owner?.lost();
    this.#fromClients.lost(reason);
    // A child that never served has nothing to be replaced for: those who wait for it learn why.
    if (!wasServing || this.#dialerRefusal() !== undefined) this.#failHeld(reason);
  }

  #waitForNext(reason: BridgeError): void {
    if (this.#isUnwanted) return this.#rest();
    this.#startAfter(this.#pause.next(reason, this.#options.dialer.readiness()), reason);
  }

  #startAfter(pauseMs: number, error: BridgeError): void {
    this.#state = { kind: 'restarting', error, cancel: this.#replacement.after(pauseMs, () => this.#restart()) };
  }

  #restart(): void {
    if (this.#isUnwanted) return this.#rest();
    this.#tryStart();
  }

  #tryStart(): void {
    try {
      this.#start();
    } catch (thrown) {
      this.#ended(toBridgeError(thrown));
    }
  }

  #rest(): void {
    this.#state = { kind: 'idle' };
  }

  get #isUnwanted(): boolean {
    return this.#shared.clients.isEmpty && !this.#isWarm;
  }

  #failHeld(reason: BridgeError): void {
    for (const held of this.#held.takeAll()) refuse(held, reason);
    this.serverDrained();
  }

  // ---- what the child says

  fromServer(frame: Frame, exchange?: Exchange): void {
    const link = this.#link();
    if (link !== undefined) this.#fromServer.take(link, frame, exchange);
  }

  serverFault(fault: ServerFault): void {
    const link = this.#link();
    if (link === undefined) return;
    // While it starts nothing but the handshake is open: why that failed is why there is no server.
    const isHandshake = this.#state.kind === 'starting' && fault.kind !== 'request' && fault.kind !== 'notification';
    if (isHandshake) this.#giveUp(link, fault.error);
    else this.#fromServer.fault(link, fault);
  }

  serverDrained(): void {
    this.#shared.withdrawn.clear();
    for (const client of this.#shared.clients.toArray()) client.listener.serverDrained();
  }

  #link(): UpstreamLink | undefined {
    if (this.#state.kind === 'ready') return this.#state.server.link;
    return this.#state.kind === 'starting' ? this.#state.link : undefined;
  }

  /** The clients' sessions end with it. */
  async close(): Promise<void> {
    const link = this.#link();
    if (this.#state.kind === 'starting' || this.#state.kind === 'restarting') this.#state.cancel();
    this.#state = { kind: 'closed' };
    this.#shared.unclear.clear();
    for (const client of this.#shared.clients.toArray()) client.listener.serverClosed(SHUTTING_DOWN);
    link?.close(SHUTTING_DOWN);
    await this.#options.dialer.close();
  }

  killNow(): void {
    this.#options.dialer.killNow();
  }
}

const TOLD_ANEW = new BridgeError('ERR_SESSION_CLOSED', 'The server is told anew what its client can do.');
const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client that was asked is gone.');
