import type { BridgeError } from '../../../src/errors.ts';
import { servedRevision } from '../../../src/mcp/vocabulary/revisions.ts';
import type { Lane } from '../../../src/relay/call.ts';
import type { RestorePolicy } from '../../../src/relay/ports.ts';
import { Relay } from '../../../src/relay/relay.ts';
import { SessionRestorer } from '../../../src/relay/sessions/session-restorer.ts';
import { SessionState } from '../../../src/relay/sessions/session-state.ts';
import type { Frame, JsonRpcId } from '../../../src/wire/frame.ts';
import { notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { collectLog } from '../../process/collected-log.ts';
import { createCalls, ORIGIN } from '../../support/calls.ts';
import { createFakeDeps, FakeDialer, FakeLane, FakePeer, type Sent } from '../../support/fake-peers.ts';

export const SERVER = { protocolVersion: '2025-06-18', capabilities: { tools: { listChanged: true }, resources: {} } };

export interface RestorableOptions {
  readonly policy: RestorePolicy;
  /** A session that has begun elsewhere, if it has an offer. Default: a new one. */
  readonly state?: SessionState;
}

/** A session that can outlive its connection, between a client and servers that only keep what they get. */
export class RestorableSession {
  readonly dialer = new FakeDialer();
  readonly peer = new FakePeer();
  readonly ends: BridgeError[] = [];
  readonly entries;
  readonly deps;
  readonly relay: Relay;

  constructor({ policy, state = new SessionState() }: RestorableOptions) {
    const { log, entries } = collectLog();
    this.entries = entries;
    this.deps = { ...createFakeDeps(), log };
    this.relay = new Relay({
      log,
      calls: createCalls(this.deps.clock),
      origin: ORIGIN,
      era: 'legacy',
      requestTimeoutMs: 0,
      onReady: () => undefined,
      onEnd: (reason) => void this.ends.push(reason),
    });
    const { deps, dialer, relay: owner } = this;
    const restorer = new SessionRestorer({ deps, policy, state, dialer, owner });
    const isStored = state.offer !== undefined;
    this.relay.join(this.peer, isStored ? restorer.begin() : dialer.dial(owner, state), restorer);
    if (isStored) this.relay.resume(servedRevision(SERVER.protocolVersion));
  }

  /** What the client got since the last look. */
  get received(): readonly Sent[] {
    return this.peer.sent;
  }

  say(frame: Frame, lane: Lane = new FakeLane()): void {
    this.relay.fromClient(frame, lane);
  }

  /** Sends a request of the client. Returns the lane that its answer comes on. */
  call(id: JsonRpcId, method: string, params: object = {}, headers?: Readonly<Record<string, string>>): Lane {
    const lane = Object.assign(new FakeLane(), headers && { headers });
    this.say(requestFrame(id, method, params), lane);
    return lane;
  }

  /** Makes the client's handshake, and drops what was said in it. */
  open(): this {
    this.call(0, 'initialize', { protocolVersion: '2025-06-18' });
    this.dialer.latest.listener.fromServer(resultFrame(0, SERVER));
    this.say(notificationFrame('notifications/initialized'));
    this.dialer.latest.link.take();
    this.peer.take();
    return this;
  }
}

/** Returns the id of the handshake on the newest connection, and drops everything else that its server was told. */
export function handshakeOf({ latest }: FakeDialer): JsonRpcId {
  const id = latest.link.take().find(({ frame }) => frame.method === 'initialize')?.frame.id;
  if (id === undefined) throw new Error('no handshake was begun');
  return id;
}
