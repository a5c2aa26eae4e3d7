/** Redis as people run it: behind sentinels, as a cluster, with TLS. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis, type RedisOptions } from 'ioredis';
import { ownPort } from './own-port.ts';
import { type RedisServer, startRedis } from './redis-server.ts';
import { waitFor } from './wait-for.ts';

const MASTER = 'main';
/** Short, so that tests see what follows. */
const DOWN_AFTER_MS = 1000;

export interface SentinelBed {
  readonly url: string;
  /** Who the sentinel says is the master now. */
  master(): Promise<RedisServer>;
  /** The master, once there is another that could take its place; undefined: there is none yet. */
  ready(): Promise<RedisServer | undefined>;
  stop(): Promise<void>;
}

export interface TopologyOptions {
  /** Whether all of it is spoken to over TLS, also by each other. */
  readonly tls?: 'on' | 'off';
  /** Of each server, such as users. */
  readonly further?: readonly string[];
}

/** A master, a server that follows it, and a sentinel that makes one of them the master. */
export async function startSentinelBed({ tls = 'off', further = [] }: TopologyOptions = {}): Promise<SentinelBed> {
  const settingsOf = (own: readonly string[]) => (place: number) => [...own, ...further, ...placeOf(place, tls)];
  const first = await startRedis(settingsOf([]));
  const second = await startRedis(settingsOf(['--replicaof', '127.0.0.1', String(first.port)]));
  const port = await ownPort();
  const folder = await mkdtemp(join(tmpdir(), 'portage-sentinel-'));
  const file = join(folder, 'sentinel.conf');
  const settings = [
    ...lines(['--port', String(port), ...placeOf(port, tls)]),
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor ${MASTER} 127.0.0.1 ${first.port} 1`,
    `sentinel down-after-milliseconds ${MASTER} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER} 3000`,
    'requirepass watched',
  ];
  await writeFile(file, settings.join('\n'));
  const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  const killWithRunner = () => void child.kill('SIGKILL');
  process.once('exit', killWithRunner);
  child.once('exit', () => process.off('exit', killWithRunner));
  const sentinel = new Redis({ port, host: '127.0.0.1', password: 'watched', ...trustedBy(tls) });
  sentinel.on('error', () => undefined);
  await waitFor(
    async () => {
      const followers = await sentinel.call('SENTINEL', 'replicas', MASTER).catch(() => []);
      return Array.isArray(followers) && followers.length === 1;
    },
    { message: 'the sentinel to know both' },
  );
  const master = async (): Promise<RedisServer> => {
    const found = await sentinel.call('SENTINEL', 'get-master-addr-by-name', MASTER);
    const named = [first, second].find((server) => Array.isArray(found) && String(server.port) === found[1]);
    if (named === undefined) throw new Error('the sentinel names a server of somebody else');
    return named;
  };
  return {
    url: `${tls === 'on' ? 'rediss' : 'redis'}+sentinel://127.0.0.1:${port}/${MASTER}?sentinel-password=watched`,
    master,
    async ready() {
      const followers = await sentinel.call('SENTINEL', 'replicas', MASTER);
      const isReady =
        JSON.stringify(followers).includes('"master-link-status","ok"') && !/down/.test(flagsOf(followers));
      return isReady ? master() : undefined;
    },
    async stop() {
      sentinel.disconnect();
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      await Promise.all([first.stop(), second.stop(), rm(folder, { recursive: true, force: true })]);
    },
  };
}

/** What the sentinel thinks of the first of them. */
function flagsOf(followers: unknown): string {
  const [first]: readonly unknown[] = Array.isArray(followers) ? followers : [];
  const fields: readonly unknown[] = Array.isArray(first) ? first : [];
  return String(fields[fields.indexOf('flags') + 1]);
}

export interface ClusterBed {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  stop(): Promise<void>;
}

const SLOTS = 16_384;

/** A Redis Cluster of three masters, each with a third of the keys. */
export async function startClusterBed({ tls = 'off', further = [] }: TopologyOptions = {}): Promise<ClusterBed> {
  const buses = [await ownPort(), await ownPort(), await ownPort()];
  const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(DOWN_AFTER_MS), ...further];
  const nodes: RedisServer[] = [];
  for (const bus of buses) {
    nodes.push(await startRedis((port) => [...settings, '--cluster-port', String(bus), ...placeOf(port, tls)]));
  }
  const clients = nodes.map(({ port }) => new Redis({ port, host: '127.0.0.1', ...trustedBy(tls) }));
  try {
    const [first] = clients;
    for (const [index, client] of clients.entries()) {
      const share = Math.ceil(SLOTS / clients.length);
      await client.cluster('ADDSLOTSRANGE', index * share, Math.min((index + 1) * share, SLOTS) - 1);
      const [{ port }, bus] = [nodes[index] ?? { port: 0 }, buses[index] ?? 0];
      if (index > 0) await first?.call('CLUSTER', 'MEET', '127.0.0.1', port, bus);
    }
    for (const client of clients) {
      await waitFor(async () => String(await client.cluster('INFO')).includes('cluster_state:ok'), {
        message: 'the nodes to know each other',
      });
    }
  } finally {
    for (const client of clients) client.disconnect();
  }
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`);
  return {
    url: `${tls === 'on' ? 'rediss' : 'redis'}+cluster://${hosts.slice(0, 2).join(',')}`,
    nodes,
    stop: async () => void (await Promise.all(nodes.map((node) => node.stop()))),
  };
}

const fixtureOf = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}.pem`, import.meta.url));

/** Settings of a server that speaks TLS only at this port. @param clients whether they have to show a certificate */
function tlsAt(port: number, clients: 'yes' | 'no'): readonly string[] {
  const files = ['--tls-cert-file', fixtureOf('server'), '--tls-key-file', fixtureOf('server-key')];
  const trust = ['--tls-ca-cert-file', fixtureOf('ca'), '--tls-auth-clients', clients];
  return ['--port', '0', '--tls-port', String(port), ...files, ...trust];
}

/** Further settings of one that speaks TLS with others of its kind, too, if it does. */
function placeOf(port: number, tls: 'on' | 'off'): readonly string[] {
  // Nodes of a cluster are clients of each other, and have to show that.
  const shown = ['--tls-client-cert-file', fixtureOf('client'), '--tls-client-key-file', fixtureOf('client-key')];
  return tls === 'on' ? [...tlsAt(port, 'no'), ...shown, '--tls-replication', 'yes', '--tls-cluster', 'yes'] : [];
}

/** As the lines of a file; the last of several for one setting counts. */
function lines(words: readonly string[]): readonly string[] {
  return words.flatMap((word, index) => (index % 2 === 0 ? `${word.slice(2)} ${words[index + 1]}` : []));
}

function trustedBy(tls: 'on' | 'off'): Pick<RedisOptions, 'tls'> {
  return tls === 'on' ? { tls: { ca: readFileSync(fixtureOf('ca')) } } : {};
}

/** Redis that speaks TLS only. @param clients whether they have to show a certificate */
export function startTlsRedis(clients: 'yes' | 'no', further: readonly string[] = []): Promise<RedisServer> {
  return startRedis((port) => [...tlsAt(port, clients), ...further]);
}
