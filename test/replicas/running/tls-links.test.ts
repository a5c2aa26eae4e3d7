/** Replicas that advertise addresses with TLS. */
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { fileURLToPath } from 'node:url';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { type Bridge, startBridge } from '../../support/bridge.ts';
import { ownPort } from '../../support/own-port.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { serverProgram } from '../../support/server-program.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { KEY } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;

const tlsFile = (name: string): string => fileURLToPath(new URL(`../../fixtures/tls/${name}`, import.meta.url));
const CA = readFileSync(tlsFile('ca.pem'));
const SERVER = [process.execPath, serverProgram(new URL('../../fixtures/contract-server/server.js', import.meta.url))];

interface Replica {
  readonly port: number;
  readonly bridge: Bridge;
}

async function startReplica(t: ExecutionContext, { url }: RedisServer, env: Record<string, string>): Promise<Replica> {
  const port = await ownPort();
  const address = ['--port', String(port), '--advertise', `https://127.0.0.1:${port}`];
  const certificate = ['--tls-cert', tlsFile('server.pem'), '--tls-key', tlsFile('server-key.pem')];
  const shared = ['--store', url.href, '--cluster-key', 'env:TEST_CLUSTER_KEY'];
  const bridge = await startBridge([...address, ...certificate, ...shared, '--log-level', 'debug', '--', ...SERVER], {
    env: { TEST_CLUSTER_KEY: KEY, ...env },
  });
  t.teardown(() => bridge.stop());
  return { port, bridge };
}

interface Answer {
  readonly status: number | undefined;
  readonly session: string | undefined;
  readonly text: string;
}

function post({ port }: Replica, message: object, session?: string): Promise<Answer> {
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...(session !== undefined && { 'Mcp-Session-Id': session }),
  };
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers, ca: CA }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      const id = response.headers['mcp-session-id'];
      response.on('end', () => resolve({ status: response.statusCode, session: id?.toString(), text }));
    });
    call.on('error', reject).end(JSON.stringify({ jsonrpc: '2.0', ...message }));
  });
}

async function openSession(replica: Replica): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
  const { session = '' } = await post(replica, { id: 1, method: 'initialize', params });
  await post(replica, { method: 'notifications/initialized' }, session);
  return session;
}

const ECHO = { id: 2, method: 'tools/call', params: { name: 'echo', arguments: { value: 'over TLS' } } };

async function startTwo(t: ExecutionContext, env: Record<string, string>): Promise<readonly [Replica, Replica]> {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  return [await startReplica(t, redis, env), await startReplica(t, redis, env)];
}

test(`replicas reach each other over TLS, at addresses that are numbers${WHY}`, async (t) => {
  const [owner, entry] = await startTwo(t, { NODE_EXTRA_CA_CERTS: tlsFile('ca.pem') });
  const session = await openSession(owner);
  const { status, text } = await post(entry, ECHO, session);
  t.is(status, 200);
  t.regex(text, /over TLS/);
  // Node warns of names that are numbers.
  t.notRegex(JSON.stringify(entry.bridge.logs), /Warning/);
});

test(`a replica whose certificate nobody knows is not asked, and the log says so${WHY}`, async (t) => {
  const [owner, entry] = await startTwo(t, { NODE_EXTRA_CA_CERTS: '' });
  const session = await openSession(owner);
  const asking = post(entry, ECHO, session);
  const isSaid = (): boolean => JSON.stringify(entry.bridge.logs).includes('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  t.true(await waitFor(isSaid, { message: 'the log to say why there is no link' }));
  asking.catch(() => undefined);
});
