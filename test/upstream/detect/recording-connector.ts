import type { BridgeError } from '../../../src/errors.ts';
import type { Call } from '../../../src/relay/call.ts';
import type { ServerProcess } from '../../../src/relay/ports.ts';
import type { Readiness } from '../../../src/relay/readiness.ts';
import { Connection, type Connector } from '../../../src/upstream/connection.ts';
import type { Frame } from '../../../src/wire/frame.ts';

/** What went over one connection. */
export interface Recording {
  /** Methods of what was sent, in order. */
  readonly sent: string[];
  readonly received: Frame[];
  isClosed: boolean;
}

class RecordedConnection extends Connection implements Recording {
  readonly sent: string[] = [];
  readonly received: Frame[] = [];
  isClosed = false;
  readonly #connection: Connection;

  constructor(connection: Connection) {
    super();
    this.#connection = connection;
    connection.listener = this;
  }

  get process(): ServerProcess | undefined {
    return this.#connection.process;
  }

  protected override write(frame: Frame, call: Call | undefined): boolean {
    this.sent.push(frame.method ?? frame.kind);
    return this.#connection.send(frame, call);
  }

  protected override pauseSource(): void {
    this.#connection.pause();
  }

  protected override resumeSource(): void {
    this.#connection.resume();
  }

  protected override end(reason: BridgeError): void {
    this.isClosed = true;
    this.#connection.close(reason);
  }

  override fromServer(frame: Frame, call?: Call): void {
    this.received.push(frame);
    super.fromServer(frame, call);
  }
}

/** A connector that keeps what passes. */
export class RecordingConnector implements Connector {
  readonly connections: Recording[] = [];
  readonly #connector: Connector;

  constructor(connector: Connector) {
    this.#connector = connector;
  }

  get name(): string {
    return this.#connector.name;
  }

  /** What was sent on all connections, one list each. */
  get sent(): readonly (readonly string[])[] {
    return this.connections.map((connection) => connection.sent);
  }

  connect(): Connection {
    const connection = new RecordedConnection(this.#connector.connect());
    this.connections.push(connection);
    return connection;
  }

  readiness(): Readiness {
    return this.#connector.readiness();
  }

  close(): Promise<void> {
    return this.#connector.close();
  }

  killNow(): void {
    this.#connector.killNow();
  }
}
