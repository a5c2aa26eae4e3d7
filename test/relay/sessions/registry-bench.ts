/** A registry of sessions between clients and servers that only keep what they get. */
import { BridgeError } from '../../../src/errors.ts';
import type { Calls } from '../../../src/relay/calls.ts';
import { forEveryCaller } from '../../../src/relay/dialer-adapters.ts';
import type { ClientListener } from '../../../src/relay/ports.ts';
import type { Session } from '../../../src/relay/sessions/session-entry.ts';
import {
  type SessionClient,
  SessionRegistry,
  type SessionRegistryOptions,
} from '../../../src/relay/sessions/session-registry.ts';
import { type CallsParts, createCalls } from '../../support/calls.ts';
import { createFakeDeps, FakeDialer, FakeLane, FakePeer } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';

export const SESSION_TIMEOUT_MS = 10_000;
/** A client that can be told from others. */
export type Named = SessionClient & { readonly principal: string; readonly era: 'legacy' };

export const ALICE: Named = { transport: 'streamable-http', era: 'legacy', principal: 'alice', environment: undefined };
export const BOB: Named = { ...ALICE, principal: 'bob' };
export const STDIO: SessionClient = { transport: 'stdio', era: 'legacy', principal: undefined, environment: undefined };
export const REASON = new BridgeError('ERR_SESSION_CLOSED', 'over');

export interface Opened extends Session {
  readonly peer: FakePeer;
  readonly listener: ClientListener;
  readonly server: FakeDialer['dialed'][number];
}

export interface RegistryOptions extends Partial<Omit<SessionRegistryOptions, 'calls'>> {
  readonly calls?: CallsParts;
}

export class Registry {
  readonly dialer = new FakeDialer();
  readonly deps = createFakeDeps();
  readonly sessions: SessionRegistry;

  readonly calls: Calls;

  constructor({ calls, ...options }: RegistryOptions = {}) {
    this.calls = createCalls(this.deps.clock, calls);
    this.sessions = new SessionRegistry({
      dialers: forEveryCaller(this.dialer),
      deps: this.deps,
      maxSessions: 10,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      calls: this.calls,
      requestTimeoutMs: 0,
      ...options,
    });
  }

  open(peer = new FakePeer(), client: SessionClient = ALICE): Opened {
    const listeners: ClientListener[] = [];
    const session = this.sessions.open((_id, listener) => {
      listeners.push(listener);
      return peer;
    }, client);
    const [listener] = listeners as [ClientListener];
    return { ...session, peer, listener, server: this.dialer.latest };
  }

  /** Nobody is connected: the session is on its own. */
  openIdle(): Opened {
    const session = this.open();
    session.peer.isConnected = false;
    return session;
  }
}

export function call(session: Opened, id: number, params: object = {}): void {
  session.relay.fromClient(clientFrame({ id, method: 'tools/call', params }), new FakeLane());
}

/** Nobody is connected, but its client has come back since `initialize`. */
export function openAbandoned(registry: Registry, client: Named = ALICE): Opened {
  const session = registry.open(new FakePeer(), client);
  session.peer.isConnected = false;
  registry.sessions.use(session.id, client.principal);
  return session;
}
