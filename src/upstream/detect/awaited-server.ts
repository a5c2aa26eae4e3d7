import { toBridgeError } from '../../errors.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import type { Lane } from '../../relay/call.ts';
import type { CallHandler, CallServer, ModernCall } from '../../relay/modern-call.ts';
import type { Frame } from '../../wire/frame.ts';
import { MAX_HELD_BYTES } from './detecting-link.ts';

/** Finds the server for the requests of a caller with these headers. Rejects with a BridgeError. */
export type FindCallServer = (headers: Lane['headers']) => Promise<CallServer>;

/** A server that is being found. Modern calls wait for it, and are given to it. */
export class AwaitedServer implements CallServer {
  readonly #find: FindCallServer;

  constructor(find: FindCallServer) {
    this.#find = find;
  }

  /** Returns false for a large request, of which few may wait. */
  take(call: ModernCall, request: Frame, metadata: RequestMetadata): boolean {
    const waiting = new WaitingCall({ call, request, metadata });
    call.servedBy = waiting;
    void waiting.passTo(this.#find(call.lane.headers));
    return request.bytes.length < MAX_HELD_BYTES;
  }
}

interface Waiting {
  readonly call: ModernCall;
  readonly request: Frame;
  readonly metadata: RequestMetadata;
}

class WaitingCall implements CallHandler {
  /** Undefined once the call is over, so that nothing of it is kept until the server is found. */
  #waiting: Waiting | undefined;

  constructor(waiting: Waiting) {
    this.#waiting = waiting;
  }

  async passTo(found: Promise<CallServer>): Promise<void> {
    try {
      const server = await found;
      if (this.#waiting === undefined) return;
      const { call, request, metadata } = this.#waiting;
      if (server.take(call, request, metadata)) call.serverDrained();
    } catch (thrown) {
      this.#waiting?.call.fail(toBridgeError(thrown));
    }
  }

  withdraw(): void {
    this.#waiting = undefined;
  }

  /** A client that does not keep up stops no server yet, because the server sends nothing before it is found. */
  pause(): void {}
  resume(): void {}
}
