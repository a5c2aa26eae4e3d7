import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import { SessionCookies } from '../../http/client/cookies.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { TappedConnection } from '../../relay/message-tap.ts';
import type { CallContext } from '../../relay/ports.ts';
import type { Readiness } from '../../relay/readiness.ts';
import { SessionState } from '../../relay/sessions/session-state.ts';
import { IdWarnings } from '../answer-ids.ts';
import type { Connection, Connector } from '../connection.ts';
import {
  CallerHeaders,
  type RemoteConnectorOptions,
  type RemoteEnvironment,
  type ServerEnvironment,
} from './remote-environment.ts';

/** The options that a new connection to a remote server gets from its connector. */
export interface RemoteLinkOptions {
  readonly environment: RemoteEnvironment;
  /** Call with undefined when the server has answered, otherwise with the reason why it could not be reached. */
  readonly reachable: (error: BridgeError | undefined) => void;
  /**
   * Call once, when the connection is closed.
   * @param farewell for this the connector waits before it closes the sockets
   */
  readonly left: (farewell?: Promise<unknown>) => void;
}

/** The client that a connection is for: a session, or modern requests of one caller. */
export type RemoteClient =
  | { readonly kind: 'session'; readonly session: SessionState }
  | { readonly kind: 'calls'; readonly context: CallContext };

/** Creates a connection over one transport. */
export type ConnectRemote = (options: RemoteLinkOptions, client: RemoteClient) => Connection;

/** Opens connections to one remote server, over any transport that uses HTTP. */
export class RemoteConnector implements Connector {
  readonly name: string;
  readonly environment: ServerEnvironment;
  readonly #options: RemoteConnectorOptions;
  readonly #create: ConnectRemote;
  readonly #tapped: TappedConnection | undefined;
  readonly #connections = new Set<Connection>();
  readonly #farewells = new Set<Promise<unknown>>();
  #isClosed = false;

  /** @param tapped describes the connections in recordings. Undefined where they are tapped by another connector. */
  constructor(options: RemoteConnectorOptions, create: ConnectRemote, tapped?: TappedConnection) {
    this.name = showUrl(options.url);
    this.#options = options;
    this.#create = create;
    this.#tapped = tapped;
    const { deps, credentials: _, reachability: __, ...remote } = options;
    this.environment = { ...remote, idWarnings: new IdWarnings(this.name, deps.log), log: deps.log };
  }

  connect(session = new SessionState()): Connection {
    const connection = this.#open({ kind: 'session', session }, undefined);
    connection.check = this.#options.createLifeCheck?.(connection, session);
    return connection;
  }

  /** Opens a connection for modern requests of one caller. Throws what `connect` throws. */
  connectCalls(context: CallContext): Connection {
    return this.#open({ kind: 'calls', context }, context.headers);
  }

  #open(client: RemoteClient, forwarded: CallContext['headers']): Connection {
    this.checkOpen();
    const environment: RemoteEnvironment = {
      ...this.environment,
      // Cookies of one client are never sent with requests of another.
      cookies: new SessionCookies(),
      caller: new CallerHeaders(forwarded),
    };
    const connection = this.#create(
      {
        environment,
        reachable: (error) => this.noteReachable(error),
        left: (farewell) => {
          this.#connections.delete(connection);
          if (farewell !== undefined) this.#waitFor(farewell);
        },
      },
      client,
    );
    if (this.#tapped !== undefined) connection.tap = this.#options.taps?.connection(this.#tapped);
    connection.guard = this.#options.createGuard?.(
      connection,
      client.kind === 'calls' ? client.context.principal : undefined,
    );
    this.#connections.add(connection);
    return connection;
  }

  /** Throws a BridgeError once the connector is closed. */
  checkOpen(): void {
    if (!this.#isClosed) return;
    throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more sessions.');
  }

  /** Notes that the server has answered, or the error because of which it could not be reached. */
  noteReachable(error: BridgeError | undefined): void {
    this.#options.reachability.note(error);
  }

  #waitFor(farewell: Promise<unknown>): void {
    this.#farewells.add(farewell);
    void farewell.finally(() => this.#farewells.delete(farewell));
  }

  readiness(): Readiness {
    return this.#options.reachability.readiness();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#options.credentials?.close();
    for (const connection of [...this.#connections]) connection.close(SHUTTING_DOWN);
    await Promise.all(this.#farewells);
    this.#options.http.close();
  }

  killNow(): void {
    this.#isClosed = true;
    this.#options.credentials?.close();
    this.#options.http.close();
  }
}
