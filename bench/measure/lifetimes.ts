/** Starting a bridge, opening sessions on it, and the memory it holds. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Endpoint } from '../bridges/endpoint.ts';
import type { Entrant, HttpServer } from '../cases.ts';
import type { Opener } from '../extras.ts';
import type { Client } from '../load/client.ts';
import { drive } from '../load/drive.ts';
import { Numbers } from '../load/numbers.ts';
import { SMALL_32 } from '../load/workload.ts';
import type { Effort } from './effort.ts';
import { listChildren, readCpuNanos, readRssMiB } from './proc.ts';
import { stop } from './processes.ts';
import type { Metric } from './records.ts';
import { median } from './statistics.ts';

type Values = Partial<Record<Metric, number | undefined>>;

/** Long enough for what a bridge does after its last answer, and for a collection of garbage where it does one. */
const SETTLE_MS = 500;

async function withEndpoint<T>(
  entrant: Entrant,
  server: HttpServer,
  use: (endpoint: Endpoint) => Promise<T>,
): Promise<T> {
  const endpoint = await entrant.start(server);
  try {
    return await use(endpoint);
  } finally {
    await stop(endpoint.started);
  }
}

async function openClients(endpoint: Endpoint, entrant: Entrant, count: number): Promise<Client[]> {
  const clients: Client[] = [];
  const common = new Numbers();
  for (let index = 0; index < count; index += 1) {
    const numbers = entrant.ids === 'own' ? new Numbers() : common;
    clients.push(await endpoint.openClient({ name: `client${index}`, era: 'legacy', answersIn: 'legacy', numbers }));
  }
  return clients;
}

/** From its spawn to its first answer. */
export async function measureStart(entrant: Entrant, server: HttpServer): Promise<Values> {
  const startedAt = performance.now();
  return withEndpoint(entrant, server, async (endpoint) => {
    await openClients(endpoint, entrant, 1);
    return { p50Ms: performance.now() - startedAt, cpu: toMicros(readCpuNanos(endpoint.started.pid)) };
  });
}

/** Sessions one after the other, each closed only when all were opened. */
export async function measureOpening(
  { entrant, workload, sessions, prewarmed }: Opener,
  server: HttpServer,
): Promise<Values> {
  return withEndpoint(entrant, server, async (endpoint) => {
    const { pid } = endpoint.started;
    const clients = await openClients(endpoint, entrant, 2);
    const before = readCpuNanos(pid);
    const lengths: number[] = [];
    for (let index = 0; index < sessions; index += 1) {
      if (workload === 'open-apart') await delay(APART_MS);
      if (prewarmed > 0) await waitForChildren(pid, clients.length + prewarmed);
      const startedAt = performance.now();
      const [client] = await openClients(endpoint, entrant, 1);
      lengths.push(performance.now() - startedAt);
      if (client !== undefined) clients.push(client);
    }
    const after = readCpuNanos(pid);
    for (const client of clients) await client.close();
    const nanos = before === undefined || after === undefined ? undefined : (after - before) / sessions;
    return { p50Ms: median(lengths), cpu: toMicros(nanos) };
  });
}

/** Longer than a prewarmed child takes to be ready, so that all wait equally long. */
const APART_MS = 1000;

/** A prewarmed child is ready when it waits: when it has used no processor for a while. */
async function waitForChildren(pid: number, count: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  let used = -1;
  while (performance.now() < deadline) {
    await delay(100);
    const children = listChildren(pid);
    const usedNow = children.reduce((sum, child) => sum + (readCpuNanos(child) ?? 0), 0);
    if (children.length >= count && usedNow === used) return;
    used = usedNow;
  }
}

export async function measureIdle(entrant: Entrant, server: HttpServer): Promise<Values> {
  return withEndpoint(entrant, server, async (endpoint) => {
    await openClients(endpoint, entrant, 1);
    await delay(SETTLE_MS);
    return { rssMiB: readRssMiB(endpoint.started.pid) };
  });
}

/** Memory with many sessions, and the cost of a call that comes from one of them in turn. */
export async function measureSessions(
  entrant: Entrant,
  server: HttpServer,
  count: number,
  { sliceMs, warmUpCalls, maxWarmUpMs }: Effort,
): Promise<Values> {
  return withEndpoint(entrant, server, async (endpoint) => {
    const { pid } = endpoint.started;
    const clients = await openClients(endpoint, entrant, count);
    await delay(SETTLE_MS);
    const rssMiB = readRssMiB(pid);
    await drive({ clients, workload: SMALL_32, forMs: maxWarmUpMs, maxCalls: warmUpCalls });
    const edges: (number | undefined)[] = [];
    const driven = await drive({
      clients,
      workload: SMALL_32,
      forMs: sliceMs,
      maxCalls: Number.POSITIVE_INFINITY,
      onEdge: () => edges.push(readCpuNanos(pid)),
    });
    const [before, after] = edges;
    const nanos = before === undefined || after === undefined ? undefined : (after - before) / driven.calls;
    return { rssMiB, cpu: toMicros(nanos), callsPerSecond: driven.calls / driven.seconds };
  });
}

/** What memory grows by over many calls, from when a tenth of them has warmed everything up. */
export async function measureGrowth(entrant: Entrant, server: HttpServer, calls: number): Promise<Values> {
  return withEndpoint(entrant, server, async (endpoint) => {
    const clients = await openClients(endpoint, entrant, 2);
    const limits = { clients, workload: SMALL_32, forMs: Number.POSITIVE_INFINITY };
    await drive({ ...limits, maxCalls: calls / 10 });
    await delay(SETTLE_MS);
    const before = readRssMiB(endpoint.started.pid);
    await drive({ ...limits, maxCalls: calls });
    await delay(SETTLE_MS);
    const after = readRssMiB(endpoint.started.pid);
    return { rssMiB: before === undefined || after === undefined ? undefined : after - before };
  });
}

function toMicros(nanos: number | undefined): number | undefined {
  return nanos === undefined ? undefined : nanos / 1000;
}
