import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { systemClock } from '../../src/cli/system-deps.ts';
import type { Clock } from '../../src/deps.ts';
import { handleUpgrades } from '../../src/http/server/upgrades.ts';
import { Forwarder } from '../../src/replicas/forwarding/forwarder.ts';
import type { ForwardOutcome } from '../../src/replicas/forwarding/forwarding.ts';
import { EntryLinks } from '../../src/replicas/forwarding/link/entry-links.ts';
import { LinkSecrets } from '../../src/replicas/forwarding/link/link-secrets.ts';
import { OwnerLinks } from '../../src/replicas/forwarding/link/owner-links.ts';
import { LINK_PROTOCOL } from '../../src/replicas/forwarding/link/upgrade.ts';
import type { Owner } from '../../src/replicas/ownership/owner-tags.ts';
import { PeerLeases } from '../../src/replicas/ownership/peer-leases.ts';
import { ClusterKey } from '../../src/replicas/store/cluster-key.ts';
import { MemoryStore } from './memory-store.ts';

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

export const CLUSTER_KEY = new ClusterKey(['k'.repeat(40)]);
/** The owner shows no signs, and lives for as long as a test takes. */
const LEASE_MS = 600_000;
const log = pino({ level: 'silent' });

export interface TestServer {
  readonly port: number;
  /** Connections that have been made to it, in their order. */
  readonly sockets: readonly Socket[];
}

export async function listen(t: ExecutionContext, server: Server): Promise<TestServer> {
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

export interface OwnerOptions {
  readonly key?: ClusterKey;
  readonly ids?: readonly [string, ...string[]];
  readonly maxHeaderBytes?: number;
  /** What links go by. */
  readonly clock?: Clock;
}

export interface LinkedOwner extends TestServer {
  readonly owner: Owner;
  readonly links: OwnerLinks;
}

/** What other replicas pass on to it is served by `handle`, and nothing else is served. */
export async function startOwner(
  t: ExecutionContext,
  handle: Handle,
  options: OwnerOptions = {},
): Promise<LinkedOwner> {
  const { key = CLUSTER_KEY, ids = ['owner'], maxHeaderBytes = 16_384, clock = systemClock } = options;
  const links = new OwnerLinks({ secrets: new LinkSecrets(key, () => ids), deps: { clock, log } });
  const server = createServer((_, response) => response.writeHead(404).end());
  handleUpgrades(server, [LINK_PROTOCOL], (request, response) => {
    links.answer({ request, response, maxHeaderBytes, serve: handle });
  });
  const listening = await listen(t, server);
  return { ...listening, links, owner: { id: ids[0], address: `http://127.0.0.1:${listening.port}` } };
}

export interface EntryOptions {
  readonly key?: ClusterKey;
  readonly leaseMs?: number;
  /** What links go by. */
  readonly clock?: Clock;
}

export interface EntrySide {
  readonly links: EntryLinks;
  readonly store: MemoryStore;
}

/** The links of a replica to others. */
export function createEntryLinks(t: ExecutionContext, options: EntryOptions = {}): EntrySide {
  const { key = CLUSTER_KEY, leaseMs = LEASE_MS, clock = systemClock } = options;
  const store = new MemoryStore();
  const links = new EntryLinks({
    secrets: new LinkSecrets(key, () => ['entry']),
    peers: new PeerLeases({ leases: store.leases, ttlMs: leaseMs, clock: systemClock }),
    leaseMs,
    deps: { clock, log },
  });
  t.teardown(() => links.close());
  return { links, store };
}

export interface LinkedEntry extends TestServer, EntrySide {
  readonly outcomes: readonly ForwardOutcome[];
}

/** A replica that passes everything on to an owner. What it gets back without a response, it says as the status 599. */
export async function startEntry(t: ExecutionContext, owner: Owner, options: EntryOptions = {}): Promise<LinkedEntry> {
  const { links, store } = createEntryLinks(t, options);
  const forwarder = new Forwarder(links);
  const outcomes: ForwardOutcome[] = [];
  const server = createServer((request, response) => {
    forwarder.forward(owner, { request, response, principal: 'alice', body: undefined }, (outcome) => {
      outcomes.push(outcome);
      if (outcome.kind !== 'responded') response.writeHead(599).end(outcome.kind);
    });
  });
  return { ...(await listen(t, server)), outcomes, links, store };
}
