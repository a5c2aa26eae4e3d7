import type { BridgeError } from '../../../src/errors.ts';
import type { Exchange } from '../../../src/relay/exchange.ts';
import type { Readiness, ServerFault, ServerListener, SessionDialer, UpstreamLink } from '../../../src/relay/ports.ts';
import type { Frame } from '../../../src/wire/frame.ts';

/** What went over one connection. */
export interface Recording {
  /** Methods of what was sent, in order. */
  readonly sent: string[];
  readonly received: Frame[];
  isClosed: boolean;
}

/** A dialer that keeps what passes. */
export class RecordingDialer implements SessionDialer {
  readonly connections: Recording[] = [];
  readonly #dialer: SessionDialer;

  constructor(dialer: SessionDialer) {
    this.#dialer = dialer;
  }

  get name(): string {
    return this.#dialer.name;
  }

  /** What was sent on all connections, one list each. */
  get sent(): readonly (readonly string[])[] {
    return this.connections.map((connection) => connection.sent);
  }

  dial(listener: ServerListener): UpstreamLink {
    const recording: Recording = { sent: [], received: [], isClosed: false };
    this.connections.push(recording);
    const link = this.#dialer.dial({
      fromServer(frame: Frame, exchange?: Exchange) {
        recording.received.push(frame);
        listener.fromServer(frame, exchange);
      },
      serverFault: (fault: ServerFault) => listener.serverFault(fault),
      serverDrained: () => listener.serverDrained(),
      serverClosed: (reason: BridgeError) => listener.serverClosed(reason),
    });
    return {
      process: link.process,
      send(frame: Frame, exchange?: Exchange) {
        recording.sent.push(frame.method ?? frame.kind);
        return link.send(frame, exchange);
      },
      pause: () => link.pause(),
      resume: () => link.resume(),
      close(reason: BridgeError) {
        recording.isClosed = true;
        link.close(reason);
      },
    };
  }

  readiness(): Readiness {
    return this.#dialer.readiness();
  }

  close(): Promise<void> {
    return this.#dialer.close();
  }

  killNow(): void {
    this.#dialer.killNow();
  }
}
