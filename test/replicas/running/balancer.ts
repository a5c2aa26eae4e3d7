import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClientName } from '../../matrix/clients.ts';
import { REPOSITORY } from '../../support/bridge.ts';
import { findProgram } from '../../support/find-program.ts';
import { ownPort } from '../../support/own-port.ts';
import { WHY_NO_REDIS } from '../../support/redis-server.ts';
import { waitFor } from '../../support/wait-for.ts';

const HAPROXY = findProgram('haproxy');
/** Why replicas cannot be tested here; undefined: they can. */
export const WHY_NO_CLUSTER = WHY_NO_REDIS ?? (HAPROXY === undefined ? 'haproxy is not installed' : undefined);

export interface Balancer {
  readonly url: URL;
  /** Where the byte stream of each server is. */
  readonly streamUrls: ReadonlyMap<string, URL>;
  stop(): Promise<void>;
}

/** What a replica listens at. */
export interface BalancedPorts {
  readonly port: number;
  /** Where the byte stream of each server listens. */
  readonly streams?: ReadonlyMap<string, number>;
}

/**
 * Which replica gets a request of a session: the next one that is ready, whoever has the session, or the one that HAProxy
 * has seen opening it.
 */
export type Balancing = 'round robin' | 'remembered sessions';

/** HAProxy as the guide sets it up. */
export async function startBalancer(
  replicas: readonly BalancedPorts[],
  balancing: Balancing = 'round robin',
): Promise<Balancer> {
  const port = await ownPort();
  const folder = await mkdtemp(join(tmpdir(), 'portage-haproxy-'));
  const file = join(folder, 'haproxy.cfg');
  const names = [...(replicas[0]?.streams?.keys() ?? [])];
  const streams = new Map(await Promise.all(names.map(async (name) => [name, await ownPort()] as const)));
  const sections = [...streams].map(([name, at]) => streamSection(name, at, replicas));
  await writeFile(file, [await configuration(port, replicas, balancing), ...sections].join('\n'));
  const child = spawn(HAPROXY ?? 'haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const killWithRunner = () => void child.kill('SIGKILL');
  process.once('exit', killWithRunner);
  const url = new URL(`http://127.0.0.1:${port}`);
  const isUp = () =>
    fetch(new URL('/healthz', url)).then(
      ({ status }) => status === 200,
      () => false,
    );
  await waitFor(isUp, { message: () => `the balancer; it said ${said}` });
  return {
    url,
    streamUrls: new Map([...streams].map(([name, at]) => [name, new URL(`tcp://127.0.0.1:${at}`)])),
    async stop() {
      process.off('exit', killWithRunner);
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The example at the address of these replicas. It says what the guide says, so that all tests here are about that. */
async function configuration(port: number, replicas: readonly BalancedPorts[], balancing: Balancing): Promise<string> {
  const example = await readFile(join(REPOSITORY, 'examples/proxies/haproxy-replicas.cfg'), 'utf8');
  const servers = replicas.map((replica, index) => `  server r${index} 127.0.0.1:${replica.port}`);
  const remembering = balancing === 'remembered sessions' ? example.replace(/^ *# (?=stick)/gm, '  ') : example;
  return remembering
    .replace('bind :80', `bind 127.0.0.1:${port}`)
    .replace(/^ *server .*\n/gm, '')
    .concat(`${servers.join('\n')}\n`);
}

/** Connections of clients that speak lines, each of which goes to the next replica that is ready. */
function streamSection(name: string, port: number, replicas: readonly BalancedPorts[]): string {
  const servers = replicas.map(
    ({ port: checked, streams }, index) =>
      `  server r${index} 127.0.0.1:${streams?.get(name)} check port ${checked} inter 200ms fall 2 rise 1`,
  );
  const head = [`listen stream-${name}`, '  mode tcp', `  bind 127.0.0.1:${port}`, '  balance roundrobin'];
  return [...head, '  option httpchk GET /readyz', ...servers, ''].join('\n');
}

/** Where a client of this kind finds a server by its name. */
export function urlOf(
  client: ClientName,
  server: string,
  { url, streamUrls }: Pick<Balancer, 'url' | 'streamUrls'>,
): URL {
  switch (client) {
    case 'stream':
      return streamUrls.get(server) ?? url;
    case 'httpSse':
      return new URL(`/${server}/sse`, url);
    case 'webSocket':
    case 'modernWebSocket':
      return new URL(`/${server}/ws`, `ws://${url.host}`);
    default:
      return new URL(`/${server}/mcp`, url);
  }
}
