import { ByteQueue } from '../collections/bounded-collections.ts';
import type { BridgeError } from '../errors.ts';
import type { Call } from '../relay/call.ts';
import type { MessageTap } from '../relay/message-tap.ts';
import type {
  Dialer,
  KnownServerDialer,
  ServerFault,
  ServerListener,
  ServerProcess,
  UpstreamLink,
} from '../relay/ports.ts';
import type { SessionState } from '../relay/sessions/session-state.ts';
import type { Frame } from '../wire/frame.ts';

/** Number of arrivals that a connection keeps while nobody listens. From then on it does not read its server. */
export const MAX_UNHEARD = 100;
/** Bytes that a connection keeps while nobody listens; a message that exceeds the limit is still taken. */
export const MAX_UNHEARD_BYTES = 1024 * 1024;

/** An event of a connection, as its listener is told of it. */
export type Arrival =
  | { readonly kind: 'message'; readonly frame: Frame; readonly call: Call | undefined }
  | { readonly kind: 'fault'; readonly fault: ServerFault }
  | { readonly kind: 'end'; readonly reason: BridgeError };

/** Finds out if the server of a connection lives. Told of everything that passes while the connection is open. */
export interface LifeCheck {
  /** Called after each message that the connection's owner has sent. */
  sent(frame: Frame, call: Call | undefined): void;
  /** Called with each message of the server. Returns true if it answers a question of the check, and is for nobody else. */
  takes(frame: Frame, call: Call | undefined): boolean;
  /** The server is not read anymore, so signs of its life would not be seen. */
  paused(): void;
  resumed(): void;
  /** Called last, when the connection has ended or was closed. */
  ended(): void;
}

/**
 * Creates the check of a connection.
 * @param session its state, if it is kept up to date
 */
export type CreateLifeCheck = (connection: Connection, session?: SessionState) => LifeCheck;

/**
 * Decides which messages pass between the owner of a connection and the server. A guard sees them as the server reads
 * and writes them, whatever the owner makes of them, and stays when the connection is handed over.
 */
export interface Guard {
  /** Called with each message of the owner, which the guard sends with `pass`, now or later. Returns what `send` returns. */
  sends(frame: Frame, call: Call | undefined): boolean;
  /** Called with each message of the server. Returns it as the owner gets it. Undefined if it is for nobody else. */
  receives(frame: Frame, call: Call | undefined): Frame | undefined;
  /** Called with each fault. Returns true if it is for nobody else. */
  faults(fault: ServerFault): boolean;
  /** Called last, when the connection has ended or was closed. */
  ended(): void;
}

export type CreateGuard = (connection: Connection, principal?: string) => Guard;

/** Creates the tap of a new connection. */
export type CreateTap = () => MessageTap;

/** What is given to each connection of a server that is opened. */
export interface ConnectionWatch {
  /** Decides which messages pass. Default: all do. */
  readonly createGuard?: CreateGuard | undefined;
  /** Sees what passes between the bridge and the server. Default: nothing is recorded. */
  readonly createTap?: CreateTap | undefined;
}

/**
 * Carries messages between us and one server. Only transports implement it. It has one owner at a time, and is handed
 * over by assigning its listener. A transport tells it everything that it would tell a listener; what arrives is kept in
 * its order while there is none. See docs/internals/decisions/0055-handing-over-connections.md.
 */
export abstract class Connection implements UpstreamLink, ServerListener {
  #check: LifeCheck | undefined;
  #guard: Guard | undefined;
  #tap: MessageTap | undefined;
  #listener: ServerListener | undefined;
  #onUnheard: ((arrival: Arrival) => 'kept' | 'taken') | undefined;
  /** Undefined while nothing waits, as on nearly all connections at nearly all times. */
  #unheard: ByteQueue<Arrival> | undefined;
  /** True once a limit was reached, until everything that waited has been told. */
  #isFull = false;
  /** True if the server has taken everything while nobody listened. */
  #hasDrained = false;
  #isPausedByListener = false;
  #isSourcePaused = false;
  #isClosed = false;

  // ---- implemented by the transport

  abstract readonly process: ServerProcess | undefined;
  /** See `send`. */
  protected abstract write(frame: Frame, call: Call | undefined): boolean;
  /** Ends the connection, and its process if there is one, unless that has happened already. Tells nobody. */
  protected abstract end(reason: BridgeError): void;
  /** Stops and goes on reading what the server says. */
  protected abstract pauseSource(): void;
  protected abstract resumeSource(): void;

  // ---- from the owner

  get listener(): ServerListener | undefined {
    return this.#listener;
  }

  /**
   * Assigning a listener takes the connection over, and assigning undefined lets go of it. The assignment itself tells
   * nothing: what has arrived meanwhile is told in a microtask, in its order, to the listener of that time. Nothing
   * overtakes it, and the end of the connection comes last. A new listener starts unpaused.
   */
  set listener(listener: ServerListener | undefined) {
    if (this.#isClosed) return;
    this.#listener = listener;
    this.#onUnheard = undefined;
    this.#isPausedByListener = false;
    if (listener !== undefined && (this.#unheard !== undefined || this.#hasDrained)) queueMicrotask(() => this.#tell());
    this.#updateSource();
  }

  /**
   * Shown each arrival while nobody listens, until a listener is assigned. The arrival is kept for the next listener
   * unless the function returns `taken`.
   */
  set onUnheard(onUnheard: ((arrival: Arrival) => 'kept' | 'taken') | undefined) {
    this.#onUnheard = onUnheard;
  }

  /** Forgets the messages and faults that wait. The end of the connection is not forgotten. */
  dropUnheard(): void {
    const ends = this.#unheard?.takeAll().filter(({ kind }) => kind === 'end') ?? [];
    this.#unheard = undefined;
    this.#isFull = false;
    for (const end of ends) this.#keep(end);
    this.#updateSource();
  }

  send(frame: Frame, call?: Call): boolean {
    return this.#guard === undefined ? this.pass(frame, call) : this.#guard.sends(frame, call);
  }

  /** Sends a message to the server. A guard calls this for each message that it lets pass, and for its own. */
  pass(frame: Frame, call: Call | undefined): boolean {
    this.#tap?.sent(frame, call);
    const hasCapacity = this.write(frame, call);
    this.#check?.sent(frame, call);
    return hasCapacity;
  }

  pause(): void {
    this.#isPausedByListener = true;
    this.#updateSource();
  }

  resume(): void {
    this.#isPausedByListener = false;
    if (this.#unheard !== undefined) queueMicrotask(() => this.#tell());
    this.#updateSource();
  }

  close(reason: BridgeError): void {
    this.#isClosed = true;
    this.#endWatching();
    this.#listener = undefined;
    this.#onUnheard = undefined;
    this.#unheard = undefined;
    this.end(reason);
  }

  // ---- the tap, the guard and the check

  /** Sees each message as the server reads and writes it, from now on. Assigned once, before the first message. */
  set tap(tap: MessageTap | undefined) {
    this.#tap = tap;
  }

  /** Guards the connection from now on. Assigned once, before the first message. */
  set guard(guard: Guard | undefined) {
    this.#guard = guard;
  }

  /** Watches from now on if the server lives. A connection has at most one check in its life. */
  set check(check: LifeCheck | undefined) {
    this.#check = check;
    if (this.#isSourcePaused) check?.paused();
  }

  /** Sends a question of the check. */
  ask(question: Frame, call?: Call): void {
    this.#tap?.sent(question, call);
    this.write(question, call);
  }

  /** Ends the connection on our side, and tells its listener of the end as if the server had ended it. */
  giveUp(reason: BridgeError): void {
    this.end(reason);
    this.serverClosed(reason);
  }

  #endWatching(): void {
    this.#check?.ended();
    this.#check = undefined;
    this.#guard?.ended();
    this.#guard = undefined;
  }

  // ---- from the transport

  fromServer(frame: Frame, call?: Call): void {
    if (this.#tap === undefined) this.#take(frame, call);
    else this.#tap.received(frame, call, () => this.#take(frame, call));
  }

  #take(frame: Frame, call: Call | undefined): void {
    if (this.#check?.takes(frame, call) === true) return;
    if (this.#guard === undefined) return this.deliver(frame, call);
    const received = this.#guard.receives(frame, call);
    if (received !== undefined) this.deliver(received, call);
  }

  /** Gives a message to the owner, as the server's. A guard calls this for its own answers. */
  deliver(frame: Frame, call: Call | undefined): void {
    if (this.#unheard === undefined && this.#listener !== undefined) this.#listener.fromServer(frame, call);
    else this.#keep({ kind: 'message', frame, call });
  }

  serverFault(fault: ServerFault): void {
    if (this.#guard?.faults(fault) === true) return;
    if (this.#unheard === undefined && this.#listener !== undefined) this.#listener.serverFault(fault);
    else this.#keep({ kind: 'fault', fault });
  }

  /** The next listener is told too, because it may wait for capacity that the one before it has used up. */
  serverDrained(): void {
    if (this.#listener === undefined) this.#hasDrained = true;
    else this.#listener.serverDrained();
  }

  serverReplaced(answer: Frame): void {
    this.#listener?.serverReplaced?.(answer);
  }

  serverClosed(reason: BridgeError): void {
    this.#endWatching();
    if (this.#unheard === undefined && this.#listener !== undefined) this.#listener.serverClosed(reason);
    else this.#keep({ kind: 'end', reason });
  }

  #keep(arrival: Arrival): void {
    const isTaken = this.#listener === undefined && this.#onUnheard?.(arrival) === 'taken';
    // The function that was shown the arrival may have taken over the connection, or closed it.
    if (isTaken || this.#isClosed) return;
    this.#unheard ??= new ByteQueue({ maxItems: MAX_UNHEARD, maxBytes: MAX_UNHEARD_BYTES }, bytesOf);
    this.#unheard.add(arrival);
    this.#isFull ||= this.#unheard.isFull;
    if (this.#listener !== undefined) queueMicrotask(() => this.#tell());
    this.#updateSource();
  }

  /** Tells what waits, one arrival at a time, to the listener of that moment. */
  #tell(): void {
    while (this.#unheard !== undefined && this.#listener !== undefined && !this.#isPausedByListener) {
      const arrival = this.#unheard.shift();
      if (this.#unheard.length === 0) this.#unheard = undefined;
      if (arrival !== undefined) tell(this.#listener, arrival);
    }
    if (this.#unheard === undefined) this.#isFull = false;
    this.#updateSource();
    if (!this.#hasDrained) return;
    this.#hasDrained = this.#listener === undefined;
    this.#listener?.serverDrained();
  }

  #updateSource(): void {
    const isPaused = this.#isPausedByListener || this.#isFull;
    if (this.#isClosed || isPaused === this.#isSourcePaused) return;
    this.#isSourcePaused = isPaused;
    if (isPaused) {
      this.pauseSource();
      this.#check?.paused();
    } else {
      this.resumeSource();
      this.#check?.resumed();
    }
  }
}

function bytesOf(arrival: Arrival): number {
  return arrival.kind === 'message' ? arrival.frame.bytes.length : 0;
}

function tell(listener: ServerListener, arrival: Arrival): void {
  switch (arrival.kind) {
    case 'message':
      return listener.fromServer(arrival.frame, arrival.call);
    case 'fault':
      return listener.serverFault(arrival.fault);
    case 'end':
      return listener.serverClosed(arrival.reason);
  }
}

/** Opens connections to one server. */
export interface Connector extends Dialer {
  /**
   * Opens a connection that nobody listens to yet. Throws a BridgeError when none can be opened now; later failures are
   * the end of the connection.
   * @param session state that a connection with sessions keeps up to date, and continues if it has begun elsewhere
   */
  connect(session?: SessionState): Connection;
}

/** Gives each session a connection of its own. */
export function asSessionDialer(connector: Connector, createLifeCheck?: CreateLifeCheck): KnownServerDialer {
  return {
    name: connector.name,
    dial(listener, session) {
      const connection = connector.connect(session);
      if (createLifeCheck !== undefined) connection.check = createLifeCheck(connection, session);
      connection.listener = listener;
      return connection;
    },
    readiness: () => connector.readiness(),
    close: () => connector.close(),
    killNow: () => connector.killNow(),
  };
}

/** Watches each connection that is opened. */
export function watchConnections(connector: Connector, { createGuard, createTap }: ConnectionWatch): Connector {
  if (createGuard === undefined && createTap === undefined) return connector;
  return {
    name: connector.name,
    connect(session) {
      const connection = connector.connect(session);
      connection.tap = createTap?.();
      connection.guard = createGuard?.(connection);
      return connection;
    },
    readiness: () => connector.readiness(),
    close: () => connector.close(),
    killNow: () => connector.killNow(),
  };
}
