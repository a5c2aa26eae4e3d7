/** What clients on connections can do wrong that both ends keep, through the built bridge. Needs a current build. */
import test, { type ExecutionContext } from 'ava';
import { MAX_STREAMS_PER_CONNECTION } from '../../src/downstream/grpc/listener.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { assertGone } from '../support/processes.ts';
import { says } from '../support/says.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  answerTo,
  CARRIER_NAMES,
  CARRIERS,
  type CarriedClient,
  type CarrierKind,
  type CarrierName,
  connectGrpc,
  openCarried,
  sayHalf,
} from './carried-clients.ts';
import { type Faulty, type FaultyOptions, faulty, rssMiBOf, startFaulty } from './faulty-bridge.ts';

const MIB = 1024 * 1024;
/** What docker waits before it kills the bridge, and for a machine that is busy meanwhile. */
const DOCKER_MS = 10_000;
const BUSY_MS = 2000;

const NOTE = { jsonrpc: '2.0', method: 'notifications/x', params: { text: 'x'.repeat(MIB) } };
const LONG_TEXT = 'x'.repeat(300_000);

const callOf = (id: number, name: string, text: string): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: { text } },
});

const textOf = ({ result }: { readonly result?: unknown }): unknown =>
  (result as { readonly content?: readonly { readonly text: string }[] } | undefined)?.content?.[0]?.text;

interface Carried extends Faulty {
  readonly client: CarriedClient;
  /** Of the client's server. */
  readonly childPid: number;
  /** Another client on the same carrier, which answers nothing but what it is asked. */
  readonly neighbor: CarriedClient;
}

async function startCarried(
  t: ExecutionContext,
  name: CarrierName,
  { options = [], ...more }: FaultyOptions = {},
): Promise<Carried> {
  const carrying = await (CARRIERS[name] as CarrierKind).start(t);
  const isReady = async (bridge: Bridge): Promise<void> => (await openCarried(carrying, bridge)).leave();
  const faults = await startFaulty(t, { ...more, isReady, options: [...carrying.options, ...options] });
  const { bridge } = faults;
  const neighbor = await openCarried(carrying, bridge);
  const before = bridge.children();
  const client = await openCarried(carrying, bridge);
  for (const { destroy } of [client, neighbor]) t.teardown(destroy);
  const childPid = bridge.children().find((pid) => !before.includes(pid)) ?? Number.NaN;
  const recovered: Faulty['recovered'] = async (aftermath) => {
    await neighbor.leave();
    await faults.recovered(aftermath);
  };
  return { ...faults, client, childPid, neighbor, recovered };
}

/** Neither over HTTP nor on the same carrier does another client notice anything. */
async function othersAreServed(t: ExecutionContext, { witness, neighbor }: Carried): Promise<void> {
  const id = neighbor.heard.length + 1000;
  neighbor.say(callOf(id, 'echo', 'and I?'));
  t.is(textOf(await answerTo(neighbor, id)), 'and I?');
  t.is((await witness.call('echo', 'and I?')).text, 'and I?');
}

for (const name of CARRIER_NAMES) {
  const { title, isDirect, endings }: CarrierKind = CARRIERS[name];

  test.serial(
    `client on a ${title} stops reading: others are served, and nothing is lost when it reads on`,
    async (t) => {
      const carried = await startCarried(t, name);
      const { bridge, client, recovered } = carried;
      const before = rssMiBOf(bridge.pid);
      client.pause();
      // A client at a broker loses its session if it is too far ahead of its server.
      const calls = isDirect ? 64 : 12;
      for (let id = 1; id <= calls; id += 1) client.say(callOf(id, 'echo', `${id} ${'x'.repeat(MIB)}`));
      await isStuck(client);
      await othersAreServed(t, carried);
      const grown = rssMiBOf(bridge.pid) - before;
      t.true(grown < 150, `${grown} MiB more`);
      client.resume();
      for (let id = 1; id <= calls; id += 1) {
        const answer = await answerTo(client, id);
        t.true(String(textOf(answer)).startsWith(`${id} xxx`), JSON.stringify(answer).slice(0, 200));
      }
      t.is(client.heard.length, calls + 1, 'each once');
      await client.leave();
      await recovered();
    },
  );

  if (isDirect) {
    test.serial(
      `client on a ${title} says a message byte by byte: others are served meanwhile, and it is answered`,
      async (t) => {
        const carried = await startCarried(t, name);
        const { client, recovered } = carried;
        const bytes = client.encode(callOf(1, 'echo', 'slow €'.repeat(20)));
        for (let at = 0; at < bytes.length; at += 1) {
          client.write(bytes.subarray(at, at + 1), at === bytes.length - 1 ? 'last' : 'inner');
          await waitFor(() => client.unsentBytes() === 0);
          if (at === bytes.length >> 1) await othersAreServed(t, carried);
        }
        t.is(textOf(await answerTo(client, 1)), 'slow €'.repeat(20));
        await client.leave();
        await recovered();
      },
    );
  }

  test.serial(
    `client on a ${title} is reset in the middle of a message, with a call open: nothing stays`,
    async (t) => {
      const carried = await startCarried(t, name);
      const { client, childPid, recovered } = carried;
      client.say(callOf(1, 'never-answers', ''));
      client.say(callOf(2, 'echo', 'there'));
      t.is(textOf(await answerTo(client, 2)), 'there');
      sayHalf(client, callOf(3, 'echo', 'x'.repeat(MIB)));
      await waitFor(() => client.unsentBytes() === 0);
      await client.reset();
      await assertGone([childPid]);
      await othersAreServed(t, carried);
      // Half a line is the last line; half a message elsewhere is none.
      await recovered({ log: name === 'stream' ? ['warn ERR_WIRE_PARSE'] : [] });
    },
  );

  test.serial(
    `client on a ${title} floods a server that reads nothing: ${isDirect ? 'it is held back, and let go when its time is over' : 'its session is over'}`,
    async (t) => {
      const options = ['--request-timeout', '5s'];
      const carried = await startCarried(t, name, { options });
      const { bridge, client, childPid, recovered } = carried;
      client.say(callOf(1, 'stops-reading', 'deaf'));
      t.is(textOf(await answerTo(client, 1)), 'deaf');
      const before = rssMiBOf(bridge.pid);
      for (let sent = 0; sent < 200; sent += 1) client.say(NOTE);
      // Or it has been let go by then.
      await isStuck(client);
      await othersAreServed(t, carried);
      const grown = rssMiBOf(bridge.pid) - before;
      t.true(grown < 100, `${grown} MiB more`);
      // Nobody would see it leave.
      await assertGone([childPid]);
      t.is(await client.ended, endings.ofServer);
      client.destroy();
      const crowded = 'warn a client at the broker sent more than its server takes; its session was ended';
      await recovered({ log: [isDirect ? 'warn ERR_UPSTREAM_TIMEOUT' : crowded] });
    },
  );

  test.serial(
    `client on a ${title} loses its server: its call gets one error, then the connection ends and says why`,
    async (t) => {
      const { client, recovered } = await startCarried(t, name);
      client.say(callOf(1, 'dies-within-an-answer', 'x'));
      t.like((await answerTo(client, 1)).error, { data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } });
      t.is(await client.ended, endings.ofServer);
      client.destroy();
      await recovered({
        log: [
          'warn ERR_UPSTREAM_EXITED',
          'warn prints to stdout something that is not MCP; skipping it (--log-level debug shows it)',
        ],
      });
    },
  );
}

test.serial('gRPC: streams whose servers read nothing do not hold up another one of their connection', async (t) => {
  const { options } = await CARRIERS.grpc.start();
  const { bridge, witness, recovered } = await startFaulty(t, { options });
  const connection = await connectGrpc(bridge);
  t.teardown(() => connection.socket.destroy());
  const openOne = (): Promise<CarriedClient> => openCarried({ options, open: async () => connection.open() }, bridge);
  for (let n = 0; n < 6; n += 1) {
    const flooding = await openOne();
    flooding.say(callOf(1, 'stops-reading', 'deaf'));
    t.is(textOf(await answerTo(flooding, 1)), 'deaf');
    for (let sent = 0; sent < 16; sent += 1) flooding.say(NOTE);
    await isStuck(flooding);
    t.true(flooding.unsentBytes() > 0);
  }
  const other = await openOne();
  other.say(callOf(1, 'echo', LONG_TEXT));
  t.is(textOf(await answerTo(other, 1)), LONG_TEXT);
  t.is((await witness.call('echo', 'and I?')).text, 'and I?');
  connection.session.destroy();
  await recovered();
});

test.serial('gRPC: streams that are not read do not hold up another one of their connection', async (t) => {
  const { options } = await CARRIERS.grpc.start();
  const { bridge, witness, recovered } = await startFaulty(t, { options: [...options, '--isolation', 'shared'] });
  const connection = await connectGrpc(bridge);
  t.teardown(() => connection.socket.destroy());
  const openOne = (): Promise<CarriedClient> => openCarried({ options, open: async () => connection.open() }, bridge);
  // As many as a connection may have, but for the other one.
  const unread = await Promise.all(Array.from({ length: MAX_STREAMS_PER_CONNECTION - 1 }, openOne));
  for (const client of unread) {
    client.pause();
    client.say(callOf(1, 'echo', LONG_TEXT));
  }
  const other = await openOne();
  for (let id = 1; id <= 3; id += 1) {
    other.say(callOf(id, 'echo', LONG_TEXT));
    t.is(textOf(await answerTo(other, id)), LONG_TEXT);
  }
  t.is((await witness.call('echo', 'and I?')).text, 'and I?');
  for (const client of unread) client.resume();
  for (const client of unread) t.is(textOf(await answerTo(client, 1)), LONG_TEXT);
  connection.session.destroy();
  await recovered();
});

test.serial(
  'many clients leave unfinished messages: they hold what a few messages may, and others are served',
  async (t) => {
    // At a broker nothing is unfinished but for the broker.
    const kinds = CARRIER_NAMES.map((name): CarrierKind => CARRIERS[name]).filter(({ isDirect }) => isDirect);
    const carrying = await Promise.all(kinds.map(({ start }) => start(t)));
    const { bridge, witness, recovered } = await startFaulty(t, {
      options: [...carrying.flatMap(({ options }) => options), '--max-message-bytes', '2m'],
    });
    const before = rssMiBOf(bridge.pid);
    const clients: CarriedClient[] = [];
    for (const { open } of carrying) for (let n = 0; n < 80; n += 1) clients.push(await open(bridge));
    const message = { jsonrpc: '2.0', method: 'x', params: { text: 'x'.repeat(1.9 * MIB) } };
    for (const client of clients) client.write(client.encode(message).subarray(0, 1.75 * MIB), 'inner');
    let ended = 0;
    for (const client of clients) void client.ended.then(() => (ended += 1));
    await waitFor(() => ended >= clients.length - 20, { message: () => `${ended} refusals` });
    t.is((await witness.call('echo', 'and I?')).text, 'and I?');
    const grown = rssMiBOf(bridge.pid) - before;
    t.true(grown < 16 * 2 + 150, `${grown} MiB more`);
    for (const client of clients) client.destroy();
    await recovered();
  },
);

test.serial('serve ends in time with clients on every carrier and servers that cannot be asked to end', async (t) => {
  const kinds = CARRIER_NAMES.map((name): CarrierKind => CARRIERS[name]);
  const carrying = await Promise.all(kinds.map(({ start }) => start(t)));
  const bridge = await startBridge([...carrying.flatMap(({ options }) => options), ...faulty('stubborn')]);
  t.teardown(() => bridge.stop());
  const clients: CarriedClient[] = [];
  for (const one of carrying) clients.push(await openCarried(one, bridge));
  for (const client of clients) {
    client.say(callOf(1, 'never-answers', ''));
    client.say(callOf(2, 'echo', 'there'));
    await answerTo(client, 2);
  }
  const children = bridge.children();
  t.is(children.length, clients.length);
  const sinceMs = Date.now();
  bridge.kill('SIGTERM');
  for (const client of clients)
    t.like((await answerTo(client, 1)).error, { data: { bridge: { reason: 'ERR_SESSION_CLOSED' } } });
  t.deepEqual(
    await Promise.all(clients.map(({ ended }) => ended)),
    kinds.map(({ endings }) => endings.ofBridge),
  );
  for (const client of clients) client.destroy();
  t.deepEqual(await bridge.exited, { code: 0, signal: null });
  t.true(Date.now() - sinceMs < DOCKER_MS + BUSY_MS, `${Date.now() - sinceMs} ms`);
  await assertGone(children);
  says(t, bridge, []);
});

/** Nothing moves anymore on the way in. */
async function isStuck(client: CarriedClient): Promise<void> {
  let last = -1;
  let times = 0;
  await waitFor(() => {
    const unsentBytes = client.unsentBytes();
    times = unsentBytes === last ? times + 1 : 0;
    last = unsentBytes;
    return times > 20;
  });
}
