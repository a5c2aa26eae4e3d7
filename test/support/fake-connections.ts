/** Connections without sockets or processes, whose servers are played by the test. */
import type { BridgeError } from '../../src/errors.ts';
import type { Call } from '../../src/relay/call.ts';
import type { ServerListener, ServerProcess } from '../../src/relay/ports.ts';
import type { Readiness } from '../../src/relay/readiness.ts';
import type { SessionState } from '../../src/relay/sessions/session-state.ts';
import { Connection, type Connector, type CreateLifeCheck } from '../../src/upstream/connection.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { GONE_AT_ONCE, type Sent } from './fake-peers.ts';

export class FakeConnection extends Connection {
  /** What `send` answers. */
  hasCapacity = true;
  isPaused = false;
  process: ServerProcess | undefined;
  readonly sent: Sent[] = [];
  readonly closedWith: BridgeError[] = [];
  /** Called with each message, as a real server would react to it. */
  onSend: (sent: Sent) => void = () => {};

  /** Takes what the server says. */
  get server(): ServerListener {
    return this;
  }

  /** Makes it a connection to a process that was heard of now. */
  heardAt(lastHeardMs: number): void {
    this.process = { gone: GONE_AT_ONCE, ...this.process, lastHeardMs };
  }

  /** Everything since the last look. */
  take(): readonly Sent[] {
    return this.sent.splice(0);
  }

  protected override write(frame: Frame, call: Call | undefined): boolean {
    const sent = { frame, call };
    this.sent.push(sent);
    this.onSend(sent);
    return this.hasCapacity;
  }

  protected override pauseSource(): void {
    this.isPaused = true;
  }

  protected override resumeSource(): void {
    this.isPaused = false;
  }

  protected override end(reason: BridgeError): void {
    this.closedWith.push(reason);
  }
}

/** One connection that was opened, with both its ends. */
export interface Connected {
  readonly link: FakeConnection;
  /** Takes what the server says. */
  readonly listener: ServerListener;
  readonly session: SessionState | undefined;
}

export class FakeConnector implements Connector {
  readonly name = 'fake-server';
  readonly dialed: Connected[] = [];
  /** What `connect` throws, when set. */
  failure: BridgeError | undefined;
  readinessNow: Readiness = { state: 'ready' };
  createLifeCheck: CreateLifeCheck | undefined;
  isClosed = false;
  isKilled = false;
  /** Called with each new connection, before `connect` returns. */
  onDial: (connected: Connected) => void = () => {};

  /** The connection opened last. */
  get latest(): Connected {
    const latest = this.dialed.at(-1);
    if (latest === undefined) throw new Error('nothing was opened yet');
    return latest;
  }

  connect(session?: SessionState): Connection {
    if (this.failure !== undefined) throw this.failure;
    const link = new FakeConnection();
    link.check = this.createLifeCheck?.(link, session);
    const connected = { link, listener: link.server, session };
    this.dialed.push(connected);
    this.onDial(connected);
    return link;
  }

  readiness(): Readiness {
    return this.readinessNow;
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }

  killNow(): void {
    this.isKilled = true;
  }
}
