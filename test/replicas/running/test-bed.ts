import { randomBytes } from 'node:crypto';
import type { Bridge } from '../../support/bridge.ts';
import { startBridge } from '../../support/bridge.ts';
import { ownPort } from '../../support/own-port.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { type Balancer, type Balancing, startBalancer } from './balancer.ts';

export const KEY = randomBytes(24).toString('base64');
/** Short, so that tests see what follows; long enough for a machine that others use. */
export const LEASE_MS = 3000;
/**
 * The default, for tests in which nobody has to wait for its end: on a busy machine a replica may be silent for longer than
 * the short one, and then serves nothing that others may have taken over.
 */
export const PATIENT_LEASE_MS = 15_000;

export interface TestBedOptions {
  /** Options of each replica, then the server. */
  readonly args: readonly string[];
  readonly count?: number;
  readonly leaseMs?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Names of servers that clients reach over byte streams, too. */
  readonly streams?: readonly string[];
  readonly balancing?: Balancing;
}

/** One place behind the balancer, where a replica runs most of the time. */
export interface Place {
  readonly port: number;
  readonly streams: ReadonlyMap<string, number>;
  readonly bridge: Bridge;
  /** Another run of it, at the same address. */
  start(): Promise<void>;
}

/** Replicas of the built program behind a balancer, with a store of their own. */
export interface TestBed {
  readonly redis: RedisServer;
  readonly places: readonly Place[];
  readonly balancer: Balancer;
  readonly url: URL;
  readonly sseUrl: URL;
  /**
   * One more replica, which the balancer does not know.
   * @param store where it reaches the store; default: where it is
   * @param more options of this one
   */
  addPlace(store?: URL, more?: readonly string[]): Promise<Place>;
  stop(): Promise<void>;
}

export async function startTestBed({
  args,
  count = 3,
  leaseMs = LEASE_MS,
  env = {},
  streams: streamNames = [],
  balancing = 'round robin',
}: TestBedOptions): Promise<TestBed> {
  const redis = await startRedis();
  const runs: Bridge[] = [];
  const startAt = async (port: number, store: URL, more: readonly string[]): Promise<Bridge> => {
    const address = ['--port', String(port), '--advertise', `http://127.0.0.1:${port}`];
    const shared = ['--store', store.href, '--cluster-key', 'env:TEST_CLUSTER_KEY', '--lease', `${leaseMs}ms`];
    const bridge = await startBridge([...address, ...shared, ...more, ...args], {
      env: { TEST_CLUSTER_KEY: KEY, ...env },
    });
    runs.push(bridge);
    return bridge;
  };
  const addPlace = async (store = redis.url, more: readonly string[] = []): Promise<Place> => {
    const port = await ownPort();
    const streams = new Map(await Promise.all(streamNames.map(async (name) => [name, await ownPort()] as const)));
    const listening = [...streams].flatMap(([name, at]) => ['--stream', `${name}=tcp://127.0.0.1:${at}`]);
    const place = {
      port,
      streams,
      bridge: await startAt(port, store, [...listening, ...more]),
      async start() {
        place.bridge = await startAt(port, store, [...listening, ...more]);
      },
    };
    return place;
  };
  const places = await Promise.all(Array.from({ length: count }, () => addPlace()));
  const balancer = await startBalancer(places, balancing);
  return {
    redis,
    places,
    balancer,
    url: new URL('/mcp', balancer.url),
    sseUrl: new URL('/sse', balancer.url),
    addPlace,
    async stop() {
      for (const run of runs) run.kill('SIGCONT');
      await Promise.all(runs.map((run) => run.stop()));
      await balancer.stop();
      await redis.stop();
    },
  };
}
