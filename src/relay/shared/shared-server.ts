import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { changeNotifications } from '../../mcp/change-notifications.ts';
import { CARRIED_CAPABILITIES } from '../../mcp/client-capabilities.ts';
import { CANCELLED, INITIALIZE, INITIALIZED, SET_LEVEL, SUBSCRIBE } from '../../mcp/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/revisions.ts';
import { rpcErrorOf } from '../../mcp/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame } from '../../wire/write-message.ts';
import type { Exchange } from '../exchange.ts';
import type { Readiness, ServerFault, ServerListener, UpstreamDialer, UpstreamLink } from '../ports.ts';
import { FromSeats } from './from-seats.ts';
import { FromServer } from './from-server.ts';
import { Seat, type SeatHost } from './seat.ts';
import { type InitializeResult, type ReadyServer, SharedState } from './shared-state.ts';

export interface SharedServerOptions {
  readonly dialer: UpstreamDialer;
  readonly deps: Deps;
  /** Start the server at once instead of with the first client. */
  readonly prewarm: boolean;
  /** What the server is told it talks to. */
  readonly clientInfo: { readonly name: string; readonly version: string };
}

/** Messages that may wait while the server starts. */
const MAX_HELD = 1024;
/** Pause before a server that ended is started again; a dialer that knows better says so. */
const RESTART_MS = 250;

interface Held {
  readonly seat: Seat;
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

/**
 * - `idle`: no child; the first client starts one.
 * - `starting`: the handshake is under way; messages wait.
 * - `ready`: serving.
 * - `restarting`: the child ended, another follows after a pause; messages wait.
 * - `closed`: for good.
 */
type ServerState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'starting'; readonly link: UpstreamLink }
  | { readonly kind: 'ready'; readonly server: ReadyServer }
  | { readonly kind: 'restarting'; readonly error: BridgeError; readonly cancel: () => void }
  | { readonly kind: 'closed' };

/**
 * One server for all clients: `--isolation shared`. Each client has a seat, which its relay takes for a link of its
 * own; one child serves them all and is replaced when it ends, brought up to date without the clients' help.
 */
export class SharedServer implements UpstreamDialer, ServerListener, SeatHost {
  readonly #options: SharedServerOptions;
  readonly #shared = new SharedState();
  readonly #fromSeats: FromSeats;
  readonly #fromServer: FromServer;
  #state: ServerState = { kind: 'idle' };
  #held: Held[] = [];
  /** What the previous child said; a next one must offer the same to go on with its clients. */
  #previous: InitializeResult | undefined;

  constructor(options: SharedServerOptions) {
    this.#options = options;
    this.#fromSeats = new FromSeats(this.#shared);
    this.#fromServer = new FromServer(this.#shared, options.deps.log);
    if (options.prewarm) this.#start();
  }

  get name(): string {
    return this.#options.dialer.name;
  }

  readiness(): Readiness {
    switch (this.#state.kind) {
      case 'idle':
        return this.#options.dialer.readiness();
      case 'ready':
        return { ready: true };
      case 'starting':
        return { ready: false, error: new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting.`) };
      case 'restarting':
        return { ready: false, error: this.#state.error };
      case 'closed':
        return { ready: false, error: SHUTTING_DOWN };
    }
  }

  // ---- clients

  dial(listener: ServerListener): UpstreamLink {
    if (this.#state.kind === 'idle') this.#start();
    if (this.#state.kind === 'restarting' && !this.#options.dialer.readiness().ready) throw this.#state.error;
    const seat = new Seat(this, listener);
    this.#shared.seats.add(seat);
    return seat;
  }

  fromSeat(seat: Seat, frame: Frame, exchange: Exchange | undefined): boolean {
    if (this.#state.kind === 'ready') return this.#fromSeats.take(this.#state.server, seat, frame, exchange);
    if (this.#held.length < MAX_HELD) this.#held.push({ seat, frame, exchange });
    else if (exchange !== undefined) {
      const error = new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting and too many messages wait.`);
      seat.listener.fromServer(errorFrame(exchange.id, rpcErrorOf(error)), exchange);
    }
    return true;
  }

  leave(seat: Seat): void {
    this.#shared.seats.delete(seat);
    this.#held = this.#held.filter((held) => held.seat !== seat);
    if (this.#state.kind === 'ready') this.#fromSeats.leave(this.#state.server, seat, CLIENT_LEFT);
    this.#shared.subscriptions.removeClient(seat);
    this.#shared.levels.delete(seat);
  }

  // ---- the child's life

  #start(): void {
    let link: UpstreamLink;
    try {
      link = this.#options.dialer.dial(this);
    } catch (thrown) {
      return this.#scheduleRestart(toBridgeError(thrown));
    }
    this.#state = { kind: 'starting', link };
    const id = this.#shared.nextId();
    this.#shared.own.set(id, (answer) => this.#handshakeAnswered(link, answer));
    link.send(
      requestFrame(id, INITIALIZE, {
        protocolVersion: LATEST_LEGACY_REVISION.id,
        capabilities: CARRIED_CAPABILITIES,
        clientInfo: this.#options.clientInfo,
      }),
    );
  }

  #handshakeAnswered(link: UpstreamLink, answer: Frame): void {
    if (answer.kind === 'error') {
      const { error } = answer.json() as { error?: { message?: unknown } };
      const message = `${this.name} refused initialize: ${String(error?.message).slice(0, 200)}`;
      return link.close(new BridgeError('ERR_UPSTREAM_PROTOCOL', message));
    }
    const { result } = answer.json() as { result: InitializeResult };
    const server: ReadyServer = { link, initializeResult: result };
    this.#state = { kind: 'ready', server };
    link.send(notificationFrame(INITIALIZED));
    const previous = this.#previous;
    this.#previous = result;
    if (previous !== undefined) this.#resume(server, previous);
    const held = this.#held;
    this.#held = [];
    for (const { seat, frame, exchange } of held) {
      if (exchange === undefined || exchange.state.kind === 'open') this.fromSeat(seat, frame, exchange);
    }
  }

  /** Brings a new child to where the old one was, and tells the clients to look again: they may have missed changes. */
  #resume(server: ReadyServer, previous: InitializeResult): void {
    const { seats, subscriptions, levels } = this.#shared;
    if (!isSameOffer(previous, server.initializeResult)) {
      const reason = `${this.name} was restarted and offers other capabilities than before; open a new session.`;
      for (const seat of [...seats]) seat.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', reason));
      return;
    }
    const level = levels.mostVerbose();
    if (level !== undefined) this.#fromSeats.tell(server, SET_LEVEL, { level });
    for (const uri of subscriptions.uris()) this.#fromSeats.tell(server, SUBSCRIBE, { uri });
    for (const notification of changeNotifications(server.initializeResult.capabilities, subscriptions.uris())) {
      this.#fromServer.take(server.link, notification);
    }
  }

  serverClosed(reason: BridgeError): void {
    if (this.#state.kind === 'closed') return;
    const wasServing = this.#state.kind === 'ready';
    this.#shared.own.clear();
    for (const { seat, exchange, idToken } of this.#shared.calls.takeAll()) {
      seat.listener.fromServer(errorFrame(idToken, rpcErrorOf(reason)), exchange);
    }
    for (const { seat, id } of this.#shared.questions.takeAll()) {
      const params = { requestId: id, reason: 'the server ended' };
      seat.listener.fromServer(notificationFrame(CANCELLED, params));
    }
    // A child that never served has nothing to be replaced for: those who wait for it learn why.
    if (!wasServing) this.#failHeld(reason);
    if (this.#shared.seats.size === 0 && !this.#options.prewarm) this.#state = { kind: 'idle' };
    else this.#scheduleRestart(reason);
  }

  #scheduleRestart(error: BridgeError): void {
    const readiness = this.#options.dialer.readiness();
    const delayMs = (readiness.ready ? undefined : readiness.error.retryAfterMs) ?? RESTART_MS;
    if (!readiness.ready) this.#failHeld(readiness.error);
    const cancel = this.#options.deps.clock.after(delayMs, () => this.#start());
    this.#state = { kind: 'restarting', error, cancel };
  }

  #failHeld(reason: BridgeError): void {
    const held = this.#held;
    this.#held = [];
    for (const { seat, exchange } of held) {
      if (exchange?.state.kind !== 'open') continue;
      seat.listener.fromServer(errorFrame(exchange.id, rpcErrorOf(reason)), exchange);
    }
  }

  // ---- what the child says

  fromServer(frame: Frame): void {
    const link = this.#link();
    if (link !== undefined) this.#fromServer.take(link, frame);
  }

  serverFault(fault: ServerFault): void {
    const link = this.#link();
    if (link !== undefined) this.#fromServer.fault(link, fault);
  }

  serverDrained(): void {
    for (const seat of [...this.#shared.seats]) seat.listener.serverDrained();
  }

  #link(): UpstreamLink | undefined {
    if (this.#state.kind === 'ready') return this.#state.server.link;
    return this.#state.kind === 'starting' ? this.#state.link : undefined;
  }

  async close(): Promise<void> {
    const link = this.#link();
    if (this.#state.kind === 'restarting') this.#state.cancel();
    this.#state = { kind: 'closed' };
    link?.close(SHUTTING_DOWN);
    await this.#options.dialer.close();
  }

  killNow(): void {
    this.#options.dialer.killNow();
  }
}

const SHUTTING_DOWN = new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down.');
const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client that was asked is gone.');

function isSameOffer(a: InitializeResult, b: InitializeResult): boolean {
  return JSON.stringify(a.capabilities) === JSON.stringify(b.capabilities) && a.protocolVersion === b.protocolVersion;
}
