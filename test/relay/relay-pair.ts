import type { BridgeError } from '../../src/errors.ts';
import type { Era, Revision } from '../../src/mcp/vocabulary/revisions.ts';
import type { Call } from '../../src/relay/call.ts';
import type { Calls } from '../../src/relay/calls.ts';
import type { ClientOrigin } from '../../src/relay/observer.ts';
import { Relay } from '../../src/relay/relay.ts';
import type { ToolView } from '../../src/relay/tool-view.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { createCalls, FakeObserver, ORIGIN } from '../support/calls.ts';
import { createFakeDeps, FakeLane, FakeLink, FakePeer } from '../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';

const INITIALIZE = {
  id: 'init',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
};
const INITIALIZE_RESULT = {
  id: 'init',
  result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } },
};

export interface RelayPairOptions {
  readonly requestTimeoutMs?: number;
  readonly maxCallTimeMs?: number;
  /** False: the test joins the two ends itself. */
  readonly joined?: boolean;
  readonly era?: Era;
  readonly tools?: ToolView;
  readonly origin?: ClientOrigin;
}

/** A relay between a client and a server that only keep what they get. */
export class RelayPair {
  readonly clock;
  readonly relay: Relay;
  readonly peer = new FakePeer();
  readonly link = new FakeLink();
  readonly ready: Revision[] = [];
  readonly ends: BridgeError[] = [];
  readonly calls: Calls;
  readonly observer = new FakeObserver();

  constructor({
    requestTimeoutMs = 0,
    maxCallTimeMs = 0,
    joined = true,
    era = 'legacy',
    tools,
    origin = ORIGIN,
  }: RelayPairOptions = {}) {
    const { log, clock } = createFakeDeps();
    this.clock = clock;
    this.calls = createCalls(clock, { observer: this.observer, tools });
    this.relay = new Relay({
      log,
      calls: this.calls,
      origin,
      era,
      requestTimeoutMs,
      maxCallTimeMs,
      onReady: (revision) => void this.ready.push(revision),
      onEnd: (reason) => void this.ends.push(reason),
    });
    if (joined) this.relay.join(this.peer, this.link);
  }

  /** Says something on behalf of the client; returns the frame the relay was given. */
  client(message: string | object, lane = new FakeLane()): Frame {
    const frame = clientFrame(message);
    this.relay.fromClient(frame, lane);
    return frame;
  }

  /** The same on behalf of the server. */
  server(message: string | object, known?: Call): Frame {
    const frame = serverFrame(message);
    this.relay.fromServer(frame, known);
    return frame;
  }

  /** Sends a request of the client, and returns its call. */
  call(id: string | number, method = 'tools/call', params: object = {}): Call {
    this.client({ id, method, params });
    const call = this.link.sent.at(-1)?.call;
    if (call === undefined) throw new Error('the call was not forwarded');
    return call;
  }
}

/** After the handshake, with nothing kept of it. */
export function readyPair(options: RelayPairOptions = {}): RelayPair {
  const pair = new RelayPair(options);
  pair.client(INITIALIZE);
  pair.server(INITIALIZE_RESULT);
  pair.client({ method: 'notifications/initialized' });
  pair.peer.take();
  pair.link.take();
  return pair;
}

/** Of the modern era, where a client begins with its first request. */
export function modernPair({ requestTimeoutMs = 0 } = {}): RelayPair {
  return new RelayPair({ requestTimeoutMs, era: 'modern' });
}
