/** Sessions with remote servers that do not know them any more once their replica is gone: another one opens them anew. */
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import anyTest, { type TestFn } from 'ava';
import { fromServer } from '../matrix/matrix-client.ts';
import { type RunningServer, SERVERS, type ServerName } from '../matrix/servers.ts';
import { waitFor } from '../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { type Seen, wrongRuns } from './counted-runs.ts';
import { SteadyClient } from './steady-client.ts';
import { type Place, startTestBed, type TestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const UPDATED = 'notifications/resources/updated';
const URI = 'test://static';
const CLIENTS_OF_ONE = 2;
const MOVED = ['httpSse', 'modernHttp', 'webSocket', 'modernWebSocket'] as const satisfies readonly ServerName[];

/** How a replica ends, before another run of it starts. */
const ENDS = {
  /** Without a word. */
  killed: async ({ bridge }: Place): Promise<void> => {
    bridge.kill('SIGKILL');
    await bridge.exited;
  },
  /** After it has handed over what it can. */
  stopped: async ({ bridge }: Place): Promise<void> => void (await bridge.stop()),
} as const;

/** Everybody calls, and goes on to call after each replica has ended and come back. */
async function callWhileEachEnds(
  { places }: TestBed,
  clients: readonly SteadyClient[],
  end: keyof typeof ENDS,
): Promise<void> {
  let isOver = false;
  const callers = clients.map(async (client) => {
    while (!isOver) {
      await client.call();
      await delay(20);
    }
  });
  const answered = (): readonly number[] =>
    clients.map(({ attempts }) => attempts.filter(({ outcome }) => outcome === 'answered').length);
  for (const place of places) {
    await ENDS[end](place);
    await place.start();
    const before = answered();
    await waitFor(() => answered().every((count, index) => count >= (before[index] ?? 0) + 3), {
      message: 'everybody to be answered again',
    });
  }
  isOver = true;
  await Promise.all(callers);
}

async function seenBy({ look }: RunningServer): Promise<readonly Seen[]> {
  const view = await look?.();
  return (view?.entries ?? []) as readonly Seen[];
}

test(`sessions with servers that do not know them any more outlive their replicas${WHY}`, async (t) => {
  const servers = await Promise.all(MOVED.map((name) => SERVERS[name].start()));
  const file = join(tmpdir(), `portage-moved-${randomUUID()}.json`);
  const entries = MOVED.map((name, index) => [name, { url: servers[index]?.target[0] }] as const);
  await writeFile(file, JSON.stringify({ mcpServers: Object.fromEntries(entries) }));
  const bed = await startTestBed({ args: ['--config', file] });
  const clientsOf = MOVED.map((name) =>
    Array.from(
      { length: CLIENTS_OF_ONE },
      (_, index) =>
        new SteadyClient(`${name} ${index}`, 'streamable', new URL(`/${name}/mcp`, bed.url), async (client) => {
          await client.subscribe(URI);
          await client.setLevel('error');
        }),
    ),
  );
  const clients = clientsOf.flat();
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
    await Promise.all(servers.map((server) => server.stop()));
    await rm(file, { force: true });
  });
  await Promise.all(clients.map((client) => client.call()));
  await callWhileEachEnds(bed, clients, 'stopped');
  t.deepEqual(
    clients.flatMap(({ failures }) => failures),
    [],
    'nothing is lost where replicas hand over what they have',
  );
  await callWhileEachEnds(bed, clients, 'killed');
  t.log(`calls: ${clients.map(({ attempts }) => attempts.length)}`);
  t.log(...new Set(clients.flatMap(({ failures }) => failures.map((reason) => reason.slice(0, 150)))));
  t.deepEqual(
    clients.map(({ connections }) => connections),
    clients.map(() => 1),
  );
  for (const [index, server] of servers.entries()) {
    const attempts = (clientsOf[index] ?? []).flatMap((client) => client.attempts);
    t.deepEqual(wrongRuns(attempts, await seenBy(server)), [], MOVED[index]);
  }
  // The subscriptions are there, and so are the streams on which their clients hear of them.
  for (const [first, ...others] of clientsOf) {
    const all = first === undefined ? others : [first, ...others];
    const before = await Promise.all(all.map(async (client) => fromServer(await client.client(), UPDATED).length));
    await (await first?.client())?.callTool('touch', { uri: URI });
    await waitFor(
      async () => {
        const heard = await Promise.all(all.map((client, index) => client.heard(UPDATED, before[index] ?? 0)));
        return heard.every(Boolean);
      },
      { message: 'everybody to hear of the resource' },
    );
  }
});
