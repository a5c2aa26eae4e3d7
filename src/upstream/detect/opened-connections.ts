import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Readiness } from '../../relay/readiness.ts';
import type { Connection, Connector } from '../connection.ts';

/** Clients that waited for the verdict connect at once, so a connection that is not taken within this time is closed. */
export const HANDOVER_MS = 10_000;

interface Offer {
  readonly connection: Connection;
  readonly cancel: () => void;
}

/**
 * Returns the connection that detection has used before it opens new ones. Closes only a connection that was not taken,
 * because the connector below has another owner.
 */
export class OpenedConnections implements Connector {
  readonly #connector: Connector;
  readonly #clock: Clock;
  #offer: Offer | undefined;
  #isClosed = false;

  constructor(connector: Connector, clock: Clock) {
    this.#connector = connector;
    this.#clock = clock;
  }

  get name(): string {
    return this.#connector.name;
  }

  /** Keeps a connection for the next call of `connect`. An earlier one that was not taken is closed. */
  offer(connection: Connection): void {
    this.withdraw();
    if (this.#isClosed) return connection.close(NOT_TAKEN);
    const cancel = this.#clock.after(HANDOVER_MS, () => this.withdraw());
    this.#offer = { connection, cancel };
    connection.onUnheard = ({ kind }) => {
      if (kind === 'end') this.withdraw();
      return 'kept';
    };
  }

  /** Closes the connection that was offered and not taken. */
  withdraw(): void {
    this.#take()?.close(NOT_TAKEN);
  }

  #take(): Connection | undefined {
    const offer = this.#offer;
    this.#offer = undefined;
    offer?.cancel();
    return offer?.connection;
  }

  connect(): Connection {
    return this.#take() ?? this.#connector.connect();
  }

  readiness(): Readiness {
    return this.#connector.readiness();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.withdraw();
    return Promise.resolve();
  }

  killNow(): void {
    this.#connector.killNow();
  }
}

const NOT_TAKEN = new BridgeError(
  'ERR_SESSION_CLOSED',
  'No client has taken the connection that detection had opened.',
);
