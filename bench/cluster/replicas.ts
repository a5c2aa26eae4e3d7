/** The bridges that are measured: one without a store, and replicas on a Redis that nobody else uses. */
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { type Bridge, startBridge } from '../../test/support/bridge.ts';
import { ownPort } from '../../test/support/own-port.ts';
import { type RedisServer, startRedis } from '../../test/support/redis-server.ts';
import { httpServer, stdioServer } from '../bridges/programs.ts';
import { type Started, startService, stop, waitForPlace } from '../measure/processes.ts';

export const portOf = ({ url }: Bridge): number => Number(url.port);

/** More sessions than any measurement opens. */
const MAX_SESSIONS = ['--max-sessions', '10000', '--max-caller-sessions', '10000'];

/** The server of this bench that does as little as it can, as a command. */
export const LEAST_COMMAND = ['--', process.execPath, ...stdioServer('legacy')];
/** A server made with the official SDK. */
export const SDK_COMMAND = [
  '--',
  process.execPath,
  createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js'),
  'stdio',
];

/** Everything that runs for one run of the bench. */
export class Bed {
  readonly redis: RedisServer;
  readonly #key = randomBytes(24).toString('base64');
  readonly #server: Started;
  readonly #serverPort: number;
  readonly #bridges = new Set<Bridge>();

  static async start(): Promise<Bed> {
    const port = await ownPort();
    const server = startService(httpServer(port));
    await waitForPlace(port, server);
    return new Bed(await startRedis(), server, port);
  }

  private constructor(redis: RedisServer, server: Started, serverPort: number) {
    this.redis = redis;
    this.#server = server;
    this.#serverPort = serverPort;
  }

  /** @param path `mcp`: without streams outside of calls; `streams`: with them; `modern`: of 2026-07-28 */
  remote(path: 'mcp' | 'streams' | 'modern'): readonly string[] {
    return [`http://127.0.0.1:${this.#serverPort}/${path}`];
  }

  async startStoreless(target: readonly string[]): Promise<Bridge> {
    return this.#start([...MAX_SESSIONS, ...target]);
  }

  async startReplica(target: readonly string[], more: readonly string[] = []): Promise<Bridge> {
    const port = await ownPort();
    const address = ['--port', String(port), '--advertise', `http://127.0.0.1:${port}`];
    const shared = ['--store', this.redis.url.href, '--cluster-key', 'env:BENCH_CLUSTER_KEY'];
    return this.#start([...address, ...shared, ...MAX_SESSIONS, ...more, ...target]);
  }

  async #start(args: readonly string[]): Promise<Bridge> {
    const bridge = await startBridge(args, { env: { BENCH_CLUSTER_KEY: this.#key } });
    this.#bridges.add(bridge);
    return bridge;
  }

  async stop(bridges: readonly Bridge[] = [...this.#bridges]): Promise<void> {
    await Promise.all(bridges.map((bridge) => bridge.stop()));
    for (const bridge of bridges) this.#bridges.delete(bridge);
  }

  async close(): Promise<void> {
    await this.stop();
    await stop(this.#server);
    await this.redis.stop();
  }
}
