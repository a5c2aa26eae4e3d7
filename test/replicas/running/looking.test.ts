import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import anyTest, { type TestFn } from 'ava';
import { BRIDGE_COMMAND } from '../../support/bridge.ts';
import { callHttp } from '../../support/http-call.ts';
import { openHttpSession, POST_HEADERS } from '../../support/legacy-clients.ts';
import { connectStreamable } from '../../support/sdk-client.ts';
import { createSocketFetch } from '../../support/socket-fetch.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { LEASE_MS, startTestBed, type TestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const LEGACY = fileURLToPath(new URL('../../matrix/servers/legacy.js', import.meta.url));
const TOKEN = 'who-shows-this-may-look';
const ENV = { TEST_STATUS: TOKEN };
const SERVER = ['--status-token', 'env:TEST_STATUS', '--', process.execPath, LEGACY, 'stdio'];

interface SeenStatus {
  readonly replicas: readonly { readonly address: string; readonly state: string; readonly problem: string | null }[];
  readonly servers: readonly { readonly sessions: number; readonly processes: number }[];
  readonly clients: readonly object[];
}

const look = (url: URL, token = TOKEN): Promise<Response> =>
  fetch(url, { headers: { Authorization: `Bearer ${token}` } });

async function statusOfAll({ balancer }: TestBed): Promise<SeenStatus> {
  const response = await look(new URL('/status.json?replicas=all', balancer.url));
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as SeenStatus;
}

function run(args: readonly string[]): Promise<string> {
  const [node, bin] = BRIDGE_COMMAND;
  return new Promise((resolve) => {
    execFile(node, [bin, ...args], { env: { ...process.env, ...ENV } }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
}

test(`whichever replica is asked shows what all have, and names who does not answer${WHY}`, async (t) => {
  const bed = await startTestBed({ args: ['--metrics', ...SERVER], env: ENV });
  const clients = await Promise.all(Array.from({ length: 4 }, () => connectStreamable(bed.url)));
  t.teardown(async () => {
    // What failed must not wait for a replica that is stopped.
    for (const { bridge } of bed.places) bridge.kill('SIGCONT');
    await Promise.all(clients.map(({ close }) => close().catch(() => undefined)));
    await bed.stop();
  });
  const addresses = bed.places.map(({ port }) => `http://127.0.0.1:${port}`).sort();
  const all = await statusOfAll(bed);
  t.deepEqual(
    all.replicas,
    addresses.map((address) => ({ address, state: 'shown', problem: null })),
  );
  t.is(all.servers[0]?.sessions, 4);
  t.is(all.clients.length, 4);
  const one = (await (await look(new URL('/status.json', bed.balancer.url))).json()) as SeenStatus;
  t.true((one.servers[0]?.sessions ?? 4) < 4);
  t.is(one.replicas.length, 1);

  // Who may look is checked where the request arrives.
  const wrong = await look(new URL('/status.json?replicas=all', bed.balancer.url), 'another-token');
  t.is(wrong.status, 401);

  const screen = await run(['top', '--all', '--status-token', 'env:TEST_STATUS', bed.balancer.url.href]);
  t.regex(screen, /3 replicas/);
  const targets = await (await look(new URL('/metrics/replicas', bed.balancer.url))).json();
  t.deepEqual(targets, [
    { targets: addresses.map((address) => new URL(address).host), labels: { __scheme__: 'http' } },
  ]);

  // It is there, and says nothing: it is named within a bounded time, before its lease is over.
  const [stopped, asked] = bed.places;
  stopped?.bridge.kill('SIGSTOP');
  const silent = await waitFor(
    async () => {
      const startedMs = Date.now();
      const response = await look(new URL(`http://127.0.0.1:${asked?.port}/status.json?replicas=all`));
      const { replicas } = (await response.json()) as SeenStatus;
      t.true(Date.now() - startedMs < LEASE_MS + 2000);
      const found = replicas.filter(({ state }) => state === 'silent');
      // What was asked for a moment ago is shown to others as it was.
      return found.length > 0 ? found : undefined;
    },
    { message: 'the replica that says nothing to be named' },
  );
  t.deepEqual(
    silent.map(({ address }) => address),
    [`http://127.0.0.1:${stopped?.port}`],
  );
  t.regex(silent[0]?.problem ?? '', /did not answer in time/);
});

test(`what a replica has counted outlives it${WHY}`, async (t) => {
  const bed = await startTestBed({ args: ['--usage', ...SERVER], env: ENV });
  t.teardown(() => bed.stop());
  const connected = await Promise.all(Array.from({ length: 3 }, () => connectStreamable(bed.url)));
  for (const { client } of connected) for (let call = 0; call < 5; call += 1) await client.listTools();
  await Promise.all(connected.map(({ close }) => close()));
  // They write it when they leave; another is all that is there afterward.
  const fresh = await bed.addPlace();
  await Promise.all(bed.places.map(({ bridge }) => bridge.stop()));
  const report = async (...more: readonly string[]) => {
    const args = ['report', '--url', `http://127.0.0.1:${fresh.port}`, '--status-token', 'env:TEST_STATUS', '--json'];
    return JSON.stringify(JSON.parse(await run([...args, ...more])));
  };
  await waitFor(async () => /"calls":1[5-9]/.test(await report('--all')), {
    message: 'the calls of replicas that are gone',
  });
  t.notRegex(await report(), /"calls":1[5-9]/);
});

test(`who comes by a socket is led to other replicas by whatever name it uses${WHY}`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'portage-looking-'));
  const path = join(folder, 'mcp.sock');
  const bed = await startTestBed({ args: SERVER, env: ENV, count: 1 });
  const beside = await bed.addPlace(undefined, ['--socket', path]);
  t.teardown(async () => {
    await bed.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const [other] = bed.places;
  const ask = createSocketFetch(path);
  const seen = await ask('http://tools.example/status.json?replicas=all', {
    headers: { Authorization: `Bearer ${TOKEN}` },
  });
  const { replicas } = (await seen.json()) as SeenStatus;
  t.deepEqual(
    replicas.map(({ state, problem }) => [state, problem]),
    [
      ['shown', null],
      ['shown', null],
    ],
  );
  // A session of the other replica, asked for by a name that the other one does not answer to.
  const session = await openHttpSession(other?.port ?? 0);
  const listed = await ask('http://tools.example/mcp', {
    method: 'POST',
    headers: { ...POST_HEADERS, 'Mcp-Session-Id': session.id },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });
  t.is(listed.status, 200);
  t.regex(await listed.text(), /"result"/);
  // Whoever only says that it comes from a replica is refused, by whatever name.
  for (const host of ['tools.example', `127.0.0.1:${beside.port}`]) {
    const claimed = await callHttp({
      port: beside.port,
      path: '/status.json',
      headers: { Host: host, 'Mcp-Portage-Link': 'made-up', Authorization: `Bearer ${TOKEN}` },
    });
    t.is(claimed.status, 403);
  }
});
