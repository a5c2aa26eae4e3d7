import type { LinkedList } from '../../collections/short-lived-values.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { separateMessages } from '../../wire/read-message.ts';
import type { Call } from '../call.ts';
import type { ModernCall } from '../modern-call.ts';
import type { Dialer, LinkOwner, ServerFault, SessionDialer, UpstreamLink } from '../ports.ts';
import { dialRefusalOf, type NotReady, READY, type Readiness } from '../readiness.ts';
import { type Held, HeldMessages, refuseHeld, type WaitingClient } from './held-messages.ts';
import { logEnd, ProcessReplacement, RestartPause } from './process-replacement.ts';
import { type ClientHost, refuse, type SharedClient } from './shared-client.ts';
import type { WithdrawnRequests } from './withdrawn-requests.ts';

/**
 * The part of a shared server that its era decides: how the server is spoken to, and which client a message belongs to.
 */
export interface SharedEra<Client extends SharedClient, LoneCall extends ModernCall = never> {
  readonly clients: LinkedList<Client>;
  /** Modern calls that come alone and that the server works on. A legacy server has none. */
  readonly openCalls: readonly LoneCall[];
  readonly withdrawn: WithdrawnRequests;
  readonly fromClients: {
    /** False: the server's pipe is full. */
    take(link: UpstreamLink, sender: Client | LoneCall, frame: Frame, call: Call | undefined): boolean;
    /** Withdraws what the sender has open; without a link there is nobody to tell. */
    withdraw(link: UpstreamLink | undefined, sender: Client | LoneCall): void;
  };
  readonly fromServer: {
    /** `known`: the call on the shared link that the message belongs to, where its transport can tell. */
    take(link: UpstreamLink, frame: Frame, known: Call | undefined): void;
    fault(link: UpstreamLink, fault: ServerFault): void;
  };
  /**
   * The state of a server that was just dialed. A server that has to shake hands is dialed for the first client, any
   * other one for the first request.
   */
  readonly firstState: 'handshaking' | 'unheard';
  /** Deals with a message that the server need not get. Returns false if the server has to get it. */
  takeUnsent(sender: Client | LoneCall, frame: Frame, call: Call | undefined): boolean;
  /** A child was started. */
  started(lifecycle: ServerLifecycle): void;
  /** Another child has taken the place of the one that serves, and goes on where that was. This is its handshake. */
  replaced?(answer: Frame): void;
  /** The child is gone, or could not be started: nothing is answered anymore, neither by it nor to it. */
  ended(end: ServerEnd): void;
  close(): void;
}

export interface ServerEnd {
  readonly reason: BridgeError;
  readonly wasServing: boolean;
}

/** Takes the outcome of the handshake of an era. */
export interface ServerLifecycle {
  readonly name: string;
  /** The link to the child that was started. A server that is found later replaces it. */
  readonly link: UpstreamLink;
  /** Called when the handshake has succeeded. */
  serving(): void;
  /** Sends what has waited and lets the clients go on, unless that filled the server's pipe. */
  letGo(): void;
  /** Called when the handshake has failed. */
  giveUp(reason: BridgeError): void;
  /** Called when the handshake has to be made again, which takes another connection. */
  startOver(reason: BridgeError): void;
}

export interface SharedServerOptions {
  /** Each link that it dials is a process of the server of its own. */
  readonly dialer: SessionDialer;
  readonly deps: Deps;
  /** Start the server at once instead of for the first client, and keep it running. */
  readonly prewarm: boolean;
}

/**
 * - `idle`: no child; the first client starts one, or the first request.
 * - `handshaking`: the handshake is under way; messages wait.
 * - `unheard`: it is spoken to, and has said nothing yet.
 * - `serving`: it has shaken hands, or said something.
 * - `restarting`: the child ended, another follows after a pause and when nothing is left of it; messages wait.
 * - `closed`: for good.
 */
type ServerState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'handshaking' | 'unheard' | 'serving'; readonly link: UpstreamLink }
  | { readonly kind: 'restarting'; readonly error: BridgeError; readonly cancel: () => void }
  | { readonly kind: 'closed' };

/**
 * A server for several clients, as with `--isolation shared`. One child serves all clients that have joined, and is
 * replaced when it ends. The era decides what passes between them, and brings a new child to where the old one was.
 */
export class SharedServer<Client extends SharedClient, LoneCall extends ModernCall = never>
  implements Dialer, LinkOwner, ClientHost<Client>, ServerLifecycle
{
  readonly #options: SharedServerOptions;
  readonly #era: SharedEra<Client, LoneCall>;
  readonly #held = new HeldMessages<Client | LoneCall>();
  readonly #pause = new RestartPause();
  readonly #replacement: ProcessReplacement;
  #state: ServerState = { kind: 'idle' };
  /** Time at which the server was started, or has ceased to serve. */
  #lastServedMs = 0;
  #isWarm = false;

  constructor(era: SharedEra<Client, LoneCall>, options: SharedServerOptions) {
    this.#options = options;
    this.#era = era;
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

  /** Starts the server for nobody yet. False: it runs, or cannot be started now. */
  startIdle(): boolean {
    if (this.#state.kind !== 'idle' || !this.#replacement.isClear) return false;
    this.#tryStart();
    return 'link' in this.#state;
  }

  readiness(): Readiness {
    switch (this.#state.kind) {
      case 'idle':
      case 'unheard':
        return this.#options.dialer.readiness();
      case 'serving':
        return READY;
      case 'handshaking':
        return this.#notReady('starting', this.#starting());
      case 'restarting': {
        const refusal = this.#dialerRefusal();
        if (refusal !== undefined) return this.#notReady('stopped', refusal);
        const { error } = this.#state;
        // A process that waits for the end of the one before it has not failed.
        return this.#notReady(error.code === 'ERR_UPSTREAM_STARTING' ? 'starting' : 'failing', error);
      }
      case 'closed':
        return this.#notReady('stopped', SHUTTING_DOWN);
    }
  }

  #notReady(state: NotReady['state'], error: BridgeError): NotReady {
    return { state, error, sinceMs: this.#lastServedMs, dialing: 'refused' };
  }

  #starting(): BridgeError {
    return new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting.`);
  }

  #dialerRefusal(): BridgeError | undefined {
    return dialRefusalOf(this.#options.dialer.readiness());
  }

  // ---- clients

  /** Throws why the server cannot be started now, if it does not run. */
  checkReady(): void {
    if (this.#state.kind === 'closed') throw SHUTTING_DOWN;
    if (this.#state.kind === 'idle' && this.#era.firstState === 'handshaking') this.#start();
    const refusal = 'link' in this.#state ? undefined : this.#dialerRefusal();
    if (refusal !== undefined) throw refusal;
  }

  /** Throws what `checkReady` throws. */
  join(client: Client): void {
    this.checkReady();
    this.#era.clients.add(client);
  }

  /** Takes a message of a client that has joined, or a call that comes alone, with its request. */
  send(sender: Client | LoneCall, frame: Frame, call: Call | undefined): boolean {
    const state = this.#state;
    if (state.kind === 'serving' || state.kind === 'unheard') {
      return this.#era.fromClients.take(state.link, sender, frame, call);
    }
    if (state.kind === 'idle') return frame.kind !== 'request' || this.#startFor(sender, frame, call);
    return this.#era.takeUnsent(sender, frame, call) || this.#hold({ sender, frame, call });
  }

  #startFor(sender: Client | LoneCall, frame: Frame, call: Call | undefined): boolean {
    try {
      this.#start();
    } catch (thrown) {
      return refuse(sender, frame, call, toBridgeError(thrown));
    }
    return this.send(sender, frame, call);
  }

  /** Says when the server serves, at once if it does. The client has joined. */
  whenServing(waiting: WaitingClient<Client>): void {
    if (this.#state.kind === 'serving' || this.#state.kind === 'unheard') waiting.ready();
    else this.#hold(waiting);
  }

  /** Holds back a message or a client, or refuses it where waiting is of no use. */
  #hold(held: Held<Client | LoneCall>): boolean {
    const reason = this.#reasonNotToWait();
    if (reason !== undefined) return refuseHeld(held, reason);
    this.#held.add(held);
    return false;
  }

  #reasonNotToWait(): BridgeError | undefined {
    if (this.#state.kind === 'closed') return SHUTTING_DOWN;
    if (this.#held.isFull) {
      return new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting and too many messages wait.`);
    }
    return this.#state.kind === 'restarting' ? this.#dialerRefusal() : undefined;
  }

  leave(client: Client): void {
    client.unlink();
    this.withdraw(client);
  }

  /** Withdraws what the sender has open, or has waiting. */
  withdraw(sender: Client | LoneCall): void {
    this.#held.dropOf(sender);
    const state = this.#state;
    this.#era.fromClients.withdraw('link' in state && state.kind !== 'handshaking' ? state.link : undefined, sender);
  }

  // ---- the child's life

  /** At once, or when nothing is left of the one before. Throws what the dialer throws; nothing has changed then. */
  #start(): void {
    if (!this.#replacement.isClear) return this.#startAfter(0, this.#starting());
    const link = this.#options.dialer.dial(this);
    if (this.#state.kind === 'idle') this.#lastServedMs = this.#options.deps.clock.now();
    this.#state = { kind: this.#era.firstState, link };
    this.#era.withdrawn.clear();
    this.#era.started(this);
  }

  get link(): UpstreamLink {
    if (!('link' in this.#state)) throw new Error('no server runs');
    return this.#state.link;
  }

  serverFound(link: UpstreamLink): void {
    if ('link' in this.#state) this.#state = { ...this.#state, link };
  }

  serving(): void {
    this.#state = { kind: 'serving', link: this.link };
    this.#pause.served();
  }

  letGo(): void {
    const hasCapacity = this.#held.passOn((sender, frame, call) => this.send(sender, frame, call));
    if (hasCapacity) this.serverDrained();
  }

  giveUp(reason: BridgeError): void {
    // The link says nothing more, not even that it ended.
    this.link.close(reason);
    this.#ended(reason);
  }

  startOver(reason: BridgeError): void {
    const { link } = this;
    link.close(reason);
    this.#replacement.awaitExit(link);
    this.#tryStart();
  }

  serverClosed(reason: BridgeError): void {
    if ('link' in this.#state) this.#ended(reason);
  }

  /** The child is gone, or could not be started. */
  #ended(reason: BridgeError): void {
    const wasServing = this.#state.kind === 'serving';
    if (wasServing) this.#lastServedMs = this.#options.deps.clock.now();
    if ('link' in this.#state) this.#replacement.awaitExit(this.#state.link);
    logEnd(this.#options.deps.log, reason, wasServing);
    // First of all: whatever the clients do when they hear of it must not go to the child that is gone.
    this.#waitForNext(reason);
    this.#era.ended({ reason, wasServing });
    // A child that never served has nothing to be replaced for: those who wait for it learn why.
    if (!wasServing || this.#dialerRefusal() !== undefined) this.#failHeld(reason);
  }

  #waitForNext(reason: BridgeError): void {
    if (this.#isUnwanted) this.#state = { kind: 'idle' };
    else this.#startAfter(this.#pause.next(reason, this.#options.dialer.readiness()), reason);
  }

  #startAfter(pauseMs: number, error: BridgeError): void {
    this.#state = { kind: 'restarting', error, cancel: this.#replacement.after(pauseMs, () => this.#restart()) };
  }

  #restart(): void {
    if (this.#isUnwanted) this.#state = { kind: 'idle' };
    else this.#tryStart();
  }

  #tryStart(): void {
    try {
      this.#start();
    } catch (thrown) {
      return this.#ended(toBridgeError(thrown));
    }
    if (this.#state.kind === 'unheard') this.letGo();
  }

  get #isUnwanted(): boolean {
    const { clients, openCalls } = this.#era;
    return clients.isEmpty && openCalls.length === 0 && this.#held.isEmpty && !this.#isWarm;
  }

  #failHeld(reason: BridgeError): void {
    this.#held.refuseAll(reason);
    this.serverDrained();
  }

  // ---- what the child says

  fromServer(frame: Frame, call?: Call): void {
    const state = this.#state;
    if (!('link' in state)) return;
    if (state.kind === 'unheard') this.serving();
    const several = separateMessages(frame);
    if (several === undefined) return this.#era.fromServer.take(state.link, frame, call);
    for (const one of several) this.#era.fromServer.take(state.link, one, call);
  }

  serverFault(fault: ServerFault): void {
    const state = this.#state;
    if (!('link' in state)) return;
    // Only the handshake is open during `handshaking`, so the fault is the reason why there is no server.
    const isHandshake = state.kind === 'handshaking' && fault.kind !== 'request' && fault.kind !== 'notification';
    if (isHandshake) this.giveUp(fault.error);
    else this.#era.fromServer.fault(state.link, fault);
  }

  serverReplaced(answer: Frame): void {
    if (this.#state.kind === 'serving') this.#era.replaced?.(answer);
  }

  serverDrained(): void {
    this.#era.withdrawn.clear();
    for (const client of this.#era.clients.toArray()) client.listener.serverDrained();
    for (const call of this.#era.openCalls) call.serverDrained();
  }

  /** The clients' sessions end with the server, and so do the calls that came alone. */
  async close(): Promise<void> {
    const state = this.#state;
    if (state.kind === 'restarting') state.cancel();
    this.#state = { kind: 'closed' };
    this.#era.close();
    for (const client of this.#era.clients.toArray()) {
      this.#held.dropOf(client);
      client.listener.serverClosed(SHUTTING_DOWN);
    }
    for (const call of this.#era.openCalls) call.fail(SHUTTING_DOWN);
    // Calls that came alone and wait are of no client.
    this.#held.refuseAll(SHUTTING_DOWN);
    if ('link' in state) state.link.close(SHUTTING_DOWN);
    await this.#options.dialer.close();
  }

  killNow(): void {
    this.#options.dialer.killNow();
  }
}
