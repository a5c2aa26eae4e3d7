/**
 * npm run bench:cluster: what a call costs in a replica that has its session, and in one that passes it on, beside one bridge
 * alone; what Redis is asked meanwhile; and what follows from that for three replicas that get calls in turn. Needs redis-server. Rounds take turns, so that what else the machine does is in all of them.
 */
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { createRequire } from 'node:module';
import { Redis } from 'ioredis';
import { type Bridge, startBridge } from '../test/support/bridge.ts';
import { ownPort } from '../test/support/own-port.ts';
import { startRedis } from '../test/support/redis-server.ts';
import { readCpuNanos } from './measure/proc.ts';

const SERVER = ['--', process.execPath, new URL('../test/fixtures/servers/echo.js', import.meta.url).pathname];
const SESSIONS = 8;
const ROUNDS = Number(process.argv[2] ?? 15);
const CALLS_OF_A_ROUND = 800;
const STORED_SESSIONS = 200;
/** Until the code of replicas that have just started is compiled. */
const WARM_ROUNDS = 8;

const agent = new Agent({ keepAlive: true });

interface Answer {
  readonly status: number;
  readonly sessionId: string | undefined;
  readonly text: string;
}

function post(port: number, message: object, sessionId?: string): Promise<Answer> {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'Content-Length': Buffer.byteLength(body),
    ...(sessionId !== undefined && { 'Mcp-Session-Id': sessionId }),
  };
  return new Promise((resolve, reject) => {
    request({ agent, port, host: '127.0.0.1', path: '/mcp', method: 'POST', headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        const id = response.headers['mcp-session-id'];
        resolve({ status: response.statusCode ?? 0, sessionId: typeof id === 'string' ? id : undefined, text });
      });
    })
      .on('error', reject)
      .end(body);
  });
}

async function openSession(port: number): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const { sessionId = '' } = await post(port, { id: 0, method: 'initialize', params });
  await post(port, { method: 'notifications/initialized' }, sessionId);
  return sessionId;
}

/** As small as a request gets, so that what the bridge adds weighs most. */
const PING = { method: 'ping' };

/** Makes the calls of one round, as many at a time as there are sessions. */
async function callAll(port: number, sessions: readonly string[], message: object): Promise<void> {
  await Promise.all(
    sessions.map(async (session) => {
      for (let call = 0; call < CALLS_OF_A_ROUND / SESSIONS; call += 1) {
        const { status, text } = await post(port, { id: call, ...message }, session);
        if (status !== 200) throw new Error(`${status}: ${text}`);
      }
    }),
  );
}

/** Microseconds a call. */
async function measure(port: number, sessions: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  await callAll(port, sessions, PING);
  return ((performance.now() - startedAt) * 1000) / CALLS_OF_A_ROUND;
}

/**
 * Microseconds of processor time a call, of these bridges and their servers together, where the calls are sent to one of them.
 * Elsewhere than on Linux: not known.
 */
async function work(
  to: Bridge,
  sessions: readonly string[],
  { message, of }: { readonly message: object; readonly of: readonly Bridge[] },
): Promise<number> {
  const processes = of.flatMap((bridge) => [bridge.pid, ...bridge.children()]);
  const spent = (): number => processes.reduce((sum, pid) => sum + (readCpuNanos(pid) ?? Number.NaN), 0);
  const before = spent();
  await callAll(portOf(to), sessions, message);
  return (spent() - before) / 1000 / CALLS_OF_A_ROUND;
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** What the bridge sends by itself; commands of scripts are counted by Redis as well. */
const SENT = ['evalsha', 'eval', 'hmget', 'xrange', 'del'];

/** Commands sent by replicas until now. */
async function commandsOf(client: Redis): Promise<number> {
  const stats = await client.info('commandstats');
  const counted = [...stats.matchAll(/^cmdstat_(\S+):calls=(\d+)/gm)];
  return counted.reduce((sum, [, name = '', calls]) => (SENT.includes(name) ? sum + Number(calls) : sum), 0);
}

const usedMemory = async (client: Redis): Promise<number> =>
  Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1]);

const redis = await startRedis();
const started: Bridge[] = [];
async function startReplica(target: readonly string[]): Promise<Bridge> {
  const port = await ownPort();
  const own = ['--port', String(port), '--advertise', `http://127.0.0.1:${port}`, '--max-sessions', '1000'];
  const shared = ['--store', redis.url.href, '--cluster-key', 'env:BENCH_CLUSTER_KEY'];
  const env = { BENCH_CLUSTER_KEY: key };
  const bridge = await startBridge([...own, ...shared, ...target], { env });
  started.push(bridge);
  return bridge;
}

const portOf = ({ url }: Bridge): number => Number(url.port);

const key = randomBytes(24).toString('base64');
const alone = await startBridge(SERVER);
started.push(alone);
const replicas = [await startReplica(SERVER), await startReplica(SERVER)];
const [owner = 0, other = 0] = replicas.map(portOf);
const own = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(owner)));
const ofAlone = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(Number(alone.url.port))));
const client = new Redis(redis.url.href);

const times = { alone: [] as number[], owned: [] as number[], forwarded: [] as number[] };
for (let warm = 0; warm < 3; warm += 1) {
  await measure(Number(alone.url.port), ofAlone);
  await measure(owner, own);
  await measure(other, own);
}
const before = { commands: await commandsOf(client), atMs: performance.now() };
for (let round = 0; round < ROUNDS; round += 1) {
  times.alone.push(await measure(Number(alone.url.port), ofAlone));
  times.owned.push(await measure(owner, own));
  times.forwarded.push(await measure(other, own));
}
const seconds = (performance.now() - before.atMs) / 1000;
const commands = (await commandsOf(client)) - before.commands;
const ratios = (over: readonly number[], under: readonly number[]): number =>
  median(over.map((time, round) => time / (under[round] ?? Number.NaN)));
console.log(`alone      ${median(times.alone).toFixed(0)} µs a call`);
console.log(
  `owned      ${median(times.owned).toFixed(0)} µs a call, ${ratios(times.owned, times.alone).toFixed(3)} × alone`,
);
console.log(
  `forwarded  ${median(times.forwarded).toFixed(0)} µs a call, ${ratios(times.forwarded, times.owned).toFixed(2)} × owned`,
);
console.log(
  `Redis: ${commands} commands in ${seconds.toFixed(1)} s with ${2 * ROUNDS * CALLS_OF_A_ROUND} calls: ${(commands / seconds).toFixed(1)} a second of two replicas`,
);

// A remote server, whose sessions are stored: the bridge that stands alone is one.
const stored = portOf(await startReplica([alone.url.href]));
const [commandsBefore, memoryBefore] = [await commandsOf(client), await usedMemory(client)];
for (let index = 0; index < STORED_SESSIONS; index += 10) {
  await Promise.all(Array.from({ length: 10 }, () => openSession(stored)));
}
await new Promise((resolve) => setTimeout(resolve, 500));
const perSession = ((await commandsOf(client)) - commandsBefore) / STORED_SESSIONS;
const bytes = ((await usedMemory(client)) - memoryBefore) / STORED_SESSIONS;
console.log(`stored session: ${perSession.toFixed(1)} commands to open it, ${(bytes / 1024).toFixed(1)} KiB in Redis`);

/**
 * What a call costs in work of replicas and their servers, where it arrives and where it is passed on. With three replicas in
 * turn one call of three arrives where its session is.
 */
async function compareWork(title: string, target: readonly string[], message: object): Promise<void> {
  const [first, second] = [await startReplica(target), await startReplica(target)];
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(portOf(first))));
  const costs = { owned: [] as number[], forwarded: [] as number[] };
  for (let round = -WARM_ROUNDS; round < ROUNDS; round += 1) {
    const owned = await work(first, sessions, { message, of: [first] });
    const forwarded = await work(second, sessions, { message, of: [first, second] });
    if (round < 0) continue;
    costs.owned.push(owned);
    costs.forwarded.push(forwarded);
  }
  const ratio = ratios(costs.forwarded, costs.owned);
  console.log(
    `${title.padEnd(10)} ${median(costs.owned).toFixed(0)} µs of work a call, passed on ${ratio.toFixed(2)} × that; three replicas with cores of their own serve ${(9 / (1 + 2 * ratio)).toFixed(1)} × as much as one (calculated)`,
  );
}

await compareWork('ping', SERVER, PING);
const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');
const params = { name: 'echo', arguments: { message: 'hello' } };
await compareWork('tool', ['--', process.execPath, EVERYTHING, 'stdio'], { method: 'tools/call', params });

client.disconnect();
agent.destroy();
await Promise.all(started.map((bridge) => bridge.stop()));
await redis.stop();
