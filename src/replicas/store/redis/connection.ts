import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { Logger } from 'pino';
import type { StoreAddress, StoreTls } from '../../../config/cluster.ts';
import { BridgeError } from '../../../errors.ts';
import type { StoreStatus } from '../store.ts';

/** Time limit for a reply. The caller then reports the error to its client, and Redis may recover meanwhile. */
const COMMAND_TIMEOUT_MS = 2000;
const CONNECT_TIMEOUT_MS = 5000;
/** Limit of commands that wait for a reply. More are rejected, because a Redis so far behind would not catch up. */
const MAX_PENDING = 10_000;
/** The message of ioredis for a command that exceeds its time limit. */
const TIMED_OUT = 'Command timed out';
const MIN_RECONNECT_MS = 50;
const MAX_RECONNECT_MS = 2000;

/** A Lua script that uses one key. Redis identifies it by its SHA-1 hash. */
export interface Script {
  readonly lua: string;
  readonly sha1: string;
}

type Argument = string | number | Buffer;

/** The connection to Redis. It reconnects without limit; while it is disconnected, commands fail at once. */
export class RedisConnection {
  readonly #redis: Redis | Cluster;
  readonly #log: Logger;
  #pending = 0;
  #status: StoreStatus = { state: 'unavailable', reason: 'it has not answered yet' };
  #lastError = 'it cannot be reached';
  readonly #onAvailable = new Set<() => void>();

  /** Resolves when Redis is ready for the first time. */
  static async connect(address: StoreAddress, tls: StoreTls, log: Logger): Promise<RedisConnection> {
    const connection = new RedisConnection(await createClient(address, tls), log);
    try {
      await connection.#untilReady(address);
      return connection;
    } catch (thrown) {
      connection.close();
      throw thrown;
    }
  }

  private constructor(redis: Redis | Cluster, log: Logger) {
    this.#redis = redis;
    this.#log = log;
    redis.on('error', (error: Error) => {
      this.#lastError = describe(error);
    });
    redis.on('ready', () => this.#answered());
    redis.on('close', () => this.#failed(this.#lastError));
  }

  get status(): StoreStatus {
    return this.#status;
  }

  /** Calls `run` each time Redis responds again after a failure. Returns the function that ends these calls. */
  onAvailable(run: () => void): () => void {
    this.#onAvailable.add(run);
    return () => void this.#onAvailable.delete(run);
  }

  #untilReady(address: StoreAddress): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(notFound(address, this.#lastError)), CONNECT_TIMEOUT_MS);
      this.#redis.once('ready', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Runs a script on a key. Its text is sent only if Redis does not have it yet. */
  run({ lua, sha1 }: Script, key: string, ...args: readonly Argument[]): Promise<unknown> {
    return this.ask(async (redis) => {
      try {
        return await redis.evalsha(sha1, 1, key, ...args);
      } catch (thrown) {
        if (!(thrown instanceof Error) || !thrown.message.startsWith('NOSCRIPT')) throw thrown;
        return redis.eval(lua, 1, key, ...args);
      }
    });
  }

  /** Rejects with ERR_STORE_UNAVAILABLE, at the latest after the command timeout. */
  async ask<Reply>(command: (redis: Redis | Cluster) => Promise<Reply>): Promise<Reply> {
    if (this.#pending >= MAX_PENDING) throw unavailable(`${MAX_PENDING} commands wait for it`);
    this.#pending += 1;
    try {
      const reply = await command(this.#redis);
      this.#answered();
      return reply;
    } catch (thrown) {
      const reason = describe(thrown);
      this.#failed(reason);
      if (reason === TIMED_OUT) this.#startAnew();
      throw unavailable(reason, thrown);
    } finally {
      this.#pending -= 1;
    }
  }

  /** Reconnects after a timeout, because no event tells whether replies will resume on this connection. */
  #startAnew(): void {
    if (this.#redis.status === 'ready') this.#redis.disconnect(true);
  }

  #answered(): void {
    if (this.#status.state === 'connected') return;
    this.#status = { state: 'connected' };
    this.#log.info('the store is reachable again');
    for (const run of [...this.#onAvailable]) run();
  }

  #failed(reason: string): void {
    if (this.#status.state === 'unavailable') return;
    this.#status = { state: 'unavailable', reason };
    this.#log.warn({ code: 'ERR_STORE_UNAVAILABLE' }, `the store does not answer (${reason}); trying again`);
  }

  close(): void {
    this.#onAvailable.clear();
    this.#redis.removeAllListeners('close');
    this.#redis.disconnect();
  }
}

async function createClient(address: StoreAddress, files: StoreTls): Promise<Redis | Cluster> {
  const { Cluster, Redis } = await import('ioredis');
  const { topology, hosts, masterName, user, password, sentinelLogin, database } = address;
  const { ca, cert, key } = files;
  const tls = address.tls && { ...(ca !== undefined && { ca }), ...(cert !== undefined && { cert, key }) };
  const secret = {
    ...(user !== undefined && { username: user }),
    ...(password !== undefined && { password }),
    ...(tls && { tls }),
  };
  const common = {
    ...secret,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    // A connection without any reply for this long is closed, and its pending commands fail.
    socketTimeout: 3 * COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // A server that has become a replica rejects writes; a new connection leads to its successor.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
    connectionName: 'mcp-portage',
  } satisfies RedisOptions;
  if (topology === 'cluster') {
    return new Cluster(
      hosts.map((host) => ({ ...host })),
      {
        enableOfflineQueue: false,
        slotsRefreshTimeout: COMMAND_TIMEOUT_MS,
        clusterRetryStrategy: reconnectDelay,
        // Certificates are issued for host names, which the library would otherwise replace by addresses.
        ...(tls && { dnsLookup: (host: string, done: (error: null, found: string) => void) => done(null, host) }),
        redisOptions: common,
      },
    );
  }
  const single = { ...common, db: database, enableOfflineQueue: false, retryStrategy: reconnectDelay };
  if (topology === 'single') return new Redis({ ...single, ...hosts[0] });
  return new Redis({
    ...single,
    sentinels: hosts.map((host) => ({ ...host })),
    name: masterName ?? '',
    sentinelRetryStrategy: reconnectDelay,
    sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
    ...(sentinelLogin !== undefined && { sentinelPassword: sentinelLogin.password }),
    ...(sentinelLogin?.user !== undefined && { sentinelUsername: sentinelLogin.user }),
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
  });
}

/**
 * Delay before a reconnection. It grows, and is randomized because replicas tend to lose the connection at the same
 * time.
 */
function reconnectDelay(attempts: number): number {
  return Math.min(MAX_RECONNECT_MS, MIN_RECONNECT_MS * 2 ** Math.min(attempts, 10)) * (0.5 + Math.random() / 2);
}

/** Describes an error by its code or the text of Redis, without the command and its arguments. */
function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return 'unknown';
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
  return code ?? thrown.message.slice(0, 200);
}

/** The error at startup. It names the addresses, since only the operator reads it. */
function notFound({ hosts }: StoreAddress, reason: string): BridgeError {
  const places = hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(', ');
  const message = `Redis at ${places} does not answer (${reason}). Start it, or correct --store.`;
  return new BridgeError('ERR_STORE_UNAVAILABLE', message, { retryAfterMs: 1000 });
}

function unavailable(reason: string, cause?: unknown): BridgeError {
  const message = `The store that the replicas share does not answer (${reason}), and this needs it; try again later.`;
  return new BridgeError('ERR_STORE_UNAVAILABLE', message, { cause, retryAfterMs: 1000 });
}
