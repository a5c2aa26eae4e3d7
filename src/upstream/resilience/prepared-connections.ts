import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import type { Call } from '../../relay/call.ts';
import { logFailure } from '../../relay/log-failure.ts';
import type { LinkOwner, ServerProcess, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Readiness } from '../../relay/readiness.ts';
import { Frame } from '../../wire/frame.ts';
import type { Arrival, Connection, Connector } from '../connection.ts';

/** Time before another attempt to start a server ahead of its client, if the last one failed. */
const REFILL_RETRY_MS = 1000;
/**
 * Delay before a prepared connection that was taken is replaced. To start a process stops everything else for some 10 ms,
 * and the session that took the connection is opened first.
 */
const REFILL_AFTER_MS = 100;
/** Longest handshake that is sent ahead. Capabilities and a name are a few hundred bytes. */
const MAX_HANDSHAKE_BYTES = 16 * 1024;

const UNNEEDED = new BridgeError('ERR_SESSION_CLOSED', 'This server was started for a client that did not come.');
const REFUSED = new BridgeError(
  'ERR_SESSION_CLOSED',
  'The server did not accept a handshake ahead of its client; none is sent ahead until clients have succeeded.',
);

/** A connection that was opened ahead of its client. Messages of the server wait in the connection. */
class PreparedConnection {
  readonly connection: Connection;
  /** The handshake that was sent ahead of the client. */
  #asked: Frame | undefined;
  #isLost = false;

  /** @param lost called when the connection has ended, or its server has refused the handshake */
  constructor(connection: Connection, lost: (prepared: PreparedConnection, reason: BridgeError) => void) {
    this.connection = connection;
    const lose = (reason: BridgeError): void => {
      this.#isLost = true;
      connection.close(reason);
      lost(this, reason);
    };
    connection.onUnheard = (arrival) => {
      if (arrival.kind === 'end') lose(arrival.reason);
      else if (this.isAsked && refuses(arrival)) lose(REFUSED);
      return 'kept';
    };
  }

  /** True if a handshake was sent ahead. */
  get isAsked(): boolean {
    return this.#asked !== undefined;
  }

  /** True if exactly this handshake was sent ahead, and its answer is here or still to be expected. */
  wasAsked({ bytes }: Frame): boolean {
    return !this.#isLost && this.#asked?.bytes.equals(bytes) === true;
  }

  ask(handshake: Frame): void {
    this.#asked = handshake;
    this.connection.send(handshake);
  }
}

/**
 * Returns true if the server has refused the handshake. That answer is not kept for a client, because the server may
 * accept the handshake at another time.
 */
function refuses(arrival: Arrival): boolean {
  return arrival.kind === 'fault' || (arrival.kind === 'message' && arrival.frame.kind === 'error');
}

/**
 * Keeps `size` connections open ahead of need, so that a new session does not wait for a process. Clients of one kind send
 * the same `initialize`, byte for byte. Once two clients have sent the same one after the other, it is sent ahead on all
 * prepared connections but one: a client that sends it has its answer at once. One stays as it is, for clients of another
 * kind.
 */
export class PreparedConnections implements Connector, SessionDialer {
  readonly #connector: Connector;
  readonly #size: number;
  readonly #deps: Deps;
  readonly #prepared: PreparedConnection[] = [];
  #lastHandshake: Buffer | undefined;
  /** The handshake that two clients have sent one after the other. */
  #usualHandshake: Frame | undefined;
  #cancelRefill: (() => void) | undefined;
  #isClosed = false;

  constructor(connector: Connector, size: number, deps: Deps) {
    this.#connector = connector;
    this.#size = size;
    this.#deps = deps;
    this.#scheduleRefill(0);
  }

  get name(): string {
    return this.#connector.name;
  }

  readiness(): Readiness {
    return this.#connector.readiness();
  }

  /** Opens a connection on which nothing was sent. */
  connect(): Connection {
    this.#scheduleRefill(REFILL_AFTER_MS);
    return this.#connectUnasked();
  }

  dial(owner: LinkOwner): UpstreamLink {
    this.#scheduleRefill(REFILL_AFTER_MS);
    const first = this.#take(isAsked) ?? this.#connectUnasked();
    const link = new PooledLink({ owner, first, pool: this });
    // With a single prepared connection nothing is sent ahead, so the first message decides nothing.
    return this.#size === 1 && !(first instanceof PreparedConnection) ? first : link;
  }

  #take(isWanted: (prepared: PreparedConnection) => boolean): PreparedConnection | undefined {
    const index = this.#prepared.findIndex(isWanted);
    return index < 0 ? undefined : this.#prepared.splice(index, 1)[0];
  }

  #connectUnasked(): Connection {
    return this.#take((prepared) => !isAsked(prepared))?.connection ?? this.#connector.connect();
  }

  /** Opens a connection on which nothing was sent, for a client that sends another handshake than expected. */
  exchange(asked: PreparedConnection): Connection {
    try {
      const connection = this.#connectUnasked();
      this.giveBack(asked);
      return connection;
    } catch (thrown) {
      if (toBridgeError(thrown).code !== 'ERR_SESSION_LIMIT') {
        this.giveBack(asked);
        throw thrown;
      }
      // An unused connection must keep no client out. It is closed, which frees its place under the limit.
      asked.connection.close(UNNEEDED);
      return this.#connectUnasked();
    }
  }

  /** Takes back a connection on which no client has sent anything. */
  giveBack(prepared: PreparedConnection): void {
    const usual = this.#usualHandshake;
    const isWanted = usual !== undefined && prepared.wasAsked(usual) && this.#prepared.length < this.#size;
    if (isWanted && !this.#isClosed) this.#prepared.unshift(prepared);
    else prepared.connection.close(UNNEEDED);
  }

  /** Notes the first message of a client. */
  note(frame: Frame): void {
    const { bytes, method, kind } = frame;
    if (kind !== 'request' || method !== INITIALIZE || bytes.length > MAX_HANDSHAKE_BYTES) return;
    if (this.#lastHandshake?.equals(bytes) !== true) {
      this.#lastHandshake = Buffer.from(bytes);
      return;
    }
    if (this.#usualHandshake?.bytes.equals(bytes) === true) return;
    this.#usualHandshake = new Frame(this.#lastHandshake, frame);
    for (const outdated of this.#prepared.filter(isAsked)) {
      this.#take((prepared) => prepared === outdated);
      outdated.connection.close(UNNEEDED);
    }
    this.#scheduleRefill(REFILL_AFTER_MS);
  }

  #scheduleRefill(delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancelRefill ??= this.#deps.clock.after(delayMs, () => {
      this.#cancelRefill = undefined;
      this.#refill();
    });
  }

  #refill(): void {
    while (this.#prepared.length < this.#size) {
      try {
        const lost = (prepared: PreparedConnection, reason: BridgeError): void => this.#lost(prepared, reason);
        this.#prepared.push(new PreparedConnection(this.#connector.connect(), lost));
      } catch (thrown) {
        const error = toBridgeError(thrown);
        logFailure(this.#deps.log, error, 'a server process could not be prepared');
        return this.#scheduleRefill(error.retryAfterMs ?? REFILL_RETRY_MS);
      }
    }
    const [, ...others] = this.#prepared.filter((prepared) => !isAsked(prepared));
    if (this.#usualHandshake !== undefined) for (const prepared of others) prepared.ask(this.#usualHandshake);
  }

  #lost(lost: PreparedConnection, reason: BridgeError): void {
    // A server that refuses the handshake, or ends before the client comes, might be started for it again and again.
    if (isAsked(lost)) this.#forgetHandshake();
    if (this.#take((prepared) => prepared === lost) === undefined) return;
    if (!this.#isClosed) logFailure(this.#deps.log, reason, 'a prepared server process has ended');
    this.#scheduleRefill(REFILL_RETRY_MS);
  }

  #forgetHandshake(): void {
    this.#lastHandshake = undefined;
    this.#usualHandshake = undefined;
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRefill?.();
    for (const { connection } of this.#prepared.splice(0)) connection.close(SHUTTING_DOWN);
    return this.#connector.close();
  }

  killNow(): void {
    this.#connector.killNow();
  }
}

function isAsked(prepared: PreparedConnection): boolean {
  return prepared.isAsked;
}

interface PooledLinkOptions {
  readonly owner: LinkOwner;
  /** A connection on which a handshake was sent ahead, or one on which nothing was sent. */
  readonly first: PreparedConnection | Connection;
  readonly pool: PreparedConnections;
}

/**
 * - `asked`: a handshake was sent ahead on this connection. The client's first message shows if it is the same.
 * - `unasked`: the client has this connection, whatever it sends first.
 * - `over`: the first message has come, or the client has left.
 */
type PooledState =
  | { readonly kind: 'asked'; readonly prepared: PreparedConnection }
  | { readonly kind: 'unasked'; readonly connection: Connection }
  | { readonly kind: 'over' };

/** The link of a client until its first message decides which connection it gets. */
class PooledLink implements UpstreamLink {
  listener: LinkOwner;
  readonly #pool: PreparedConnections;
  #state: PooledState;

  constructor({ owner, first, pool }: PooledLinkOptions) {
    this.listener = owner;
    this.#pool = pool;
    if (first instanceof PreparedConnection) {
      this.#state = { kind: 'asked', prepared: first };
    } else {
      first.listener = owner;
      this.#state = { kind: 'unasked', connection: first };
    }
  }

  get process(): ServerProcess | undefined {
    return this.#state.kind === 'unasked' ? this.#state.connection.process : undefined;
  }

  send(frame: Frame, call?: Call): boolean {
    const state = this.#state;
    this.#state = { kind: 'over' };
    switch (state.kind) {
      case 'asked':
        this.#pool.note(frame);
        return this.#sendFirst(state.prepared, frame, call);
      case 'unasked':
        this.#pool.note(frame);
        this.listener.serverFound(state.connection);
        return state.connection.send(frame, call);
      case 'over':
        return true;
    }
  }

  #sendFirst(prepared: PreparedConnection, frame: Frame, call: Call | undefined): boolean {
    const wasSent = prepared.wasAsked(frame);
    try {
      const connection = wasSent ? prepared.connection : this.#pool.exchange(prepared);
      connection.listener = this.listener;
      this.listener.serverFound(connection);
      return wasSent || connection.send(frame, call);
    } catch (thrown) {
      const error = toBridgeError(thrown);
      queueMicrotask(() => this.listener.serverClosed(error));
      return true;
    }
  }

  pause(): void {
    if (this.#state.kind === 'unasked') this.#state.connection.pause();
  }

  resume(): void {
    if (this.#state.kind === 'unasked') this.#state.connection.resume();
  }

  close(reason: BridgeError): void {
    const state = this.#state;
    this.#state = { kind: 'over' };
    if (state.kind === 'asked') this.#pool.giveBack(state.prepared);
    if (state.kind === 'unasked') state.connection.close(reason);
  }
}
