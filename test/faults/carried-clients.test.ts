/** What clients on connections can do wrong that both ends keep, through the built bridge. Needs a current build. */
import test, { type ExecutionContext } from 'ava';
import { startBridge } from '../support/bridge.ts';
import { assertGone } from '../support/processes.ts';
import { says } from '../support/says.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  answerTo,
  CARRIER_NAMES,
  CARRIERS,
  type CarriedClient,
  type CarrierName,
  openCarried,
  SERVE_CARRIED,
} from './carried-clients.ts';
import { type Faulty, type FaultyOptions, faulty, rssMiBOf, startFaulty } from './faulty-bridge.ts';

const MIB = 1024 * 1024;
/** What docker waits before it kills the bridge, and for a machine that is busy meanwhile. */
const DOCKER_MS = 10_000;
const BUSY_MS = 2000;

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
}

async function startCarried(t: ExecutionContext, name: CarrierName, options: FaultyOptions = {}): Promise<Carried> {
  const faults = await startFaulty(t, { ...options, options: [...SERVE_CARRIED, ...(options.options ?? [])] });
  const before = faults.bridge.children();
  const client = await openCarried(name, faults.bridge);
  t.teardown(() => client.socket.destroy());
  const childPid = faults.bridge.children().find((pid) => !before.includes(pid)) ?? Number.NaN;
  return { ...faults, client, childPid };
}

for (const name of CARRIER_NAMES) {
  const { title } = CARRIERS[name];

  test.serial(
    `client on a ${title} stops reading: its server waits, others are served, and nothing is lost when it reads on`,
    async (t) => {
      const { bridge, client, witness, recovered } = await startCarried(t, name);
      const before = rssMiBOf(bridge.pid);
      client.pause();
      const calls = 64;
      for (let id = 1; id <= calls; id += 1) client.say(callOf(id, 'echo', `${id} ${'x'.repeat(MIB)}`));
      await isStuck(client);
      t.is((await witness.call('echo', 'and I?')).text, 'and I?');
      const grown = rssMiBOf(bridge.pid) - before;
      t.true(grown < 150, `${grown} MiB more`);
      client.resume();
      for (let id = 1; id <= calls; id += 1)
        t.true(String(textOf(await answerTo(client, id))).startsWith(`${id} xxx`), `answer ${id}`);
      t.is(client.heard.length, calls + 1, 'each once');
      await client.leave();
      await recovered();
    },
  );

  test.serial(
    `client on a ${title} is reset in the middle of a message, with a call open: nothing stays`,
    async (t) => {
      const { client, childPid, recovered } = await startCarried(t, name);
      client.say(callOf(1, 'never-answers', ''));
      client.say(callOf(2, 'echo', 'there'));
      t.is(textOf(await answerTo(client, 2)), 'there');
      client.sayHalf(callOf(3, 'echo', 'x'.repeat(MIB)));
      await waitFor(() => client.socket.writableLength === 0);
      await client.reset();
      await assertGone([childPid]);
      // Half a line is the last line; half a message over WebSocket is none.
      await recovered({ log: name === 'stream' ? ['warn ERR_WIRE_PARSE'] : [] });
    },
  );

  test.serial(
    `client on a ${title} floods a server that reads nothing: it is held back, and let go when its time is over`,
    async (t) => {
      const options = ['--request-timeout', '5s'];
      const { bridge, client, childPid, witness, recovered } = await startCarried(t, name, { options });
      client.say(callOf(1, 'stops-reading', 'deaf'));
      t.is(textOf(await answerTo(client, 1)), 'deaf');
      const before = rssMiBOf(bridge.pid);
      const note = { jsonrpc: '2.0', method: 'notifications/x', params: { text: 'x'.repeat(MIB) } };
      for (let sent = 0; sent < 200; sent += 1) client.say(note);
      // Or it has been let go by then.
      await isStuck(client);
      t.is((await witness.call('echo', 'and I?')).text, 'and I?');
      const grown = rssMiBOf(bridge.pid) - before;
      t.true(grown < 100, `${grown} MiB more`);
      // Nobody would see it leave.
      await assertGone([childPid]);
      client.socket.destroy();
      await recovered({ log: ['warn ERR_UPSTREAM_TIMEOUT'] });
    },
  );

  test.serial(
    `client on a ${title} loses its server: its call gets one error, then the connection ends and says why`,
    async (t) => {
      const { client, recovered } = await startCarried(t, name);
      client.say(callOf(1, 'dies-within-an-answer', 'x'));
      t.like((await answerTo(client, 1)).error, { data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } });
      t.is(await client.ended, name === 'webSocket' ? '1011' : 'end');
      client.socket.destroy();
      await recovered({
        log: [
          'warn ERR_UPSTREAM_EXITED',
          'warn prints to stdout something that is not MCP; skipping it (--log-level debug shows it)',
        ],
      });
    },
  );
}

test.serial(
  'many clients leave unfinished messages: they hold what a few messages may, and others are served',
  async (t) => {
    const { bridge, witness, recovered } = await startFaulty(t, {
      options: [...SERVE_CARRIED, '--max-message-bytes', '2m'],
    });
    const before = rssMiBOf(bridge.pid);
    const clients: CarriedClient[] = [];
    for (const name of CARRIER_NAMES) for (let n = 0; n < 80; n += 1) clients.push(await CARRIERS[name].open(bridge));
    // Each is a mebibyte and three quarters short of its end.
    const message = { jsonrpc: '2.0', method: 'x', params: { text: 'x'.repeat(3.5 * MIB) } };
    for (const client of clients) client.sayHalf(message);
    let ended = 0;
    for (const client of clients) void client.ended.then(() => (ended += 1));
    await waitFor(() => ended >= clients.length - 20, { message: () => `${ended} refusals` });
    t.is((await witness.call('echo', 'and I?')).text, 'and I?');
    const grown = rssMiBOf(bridge.pid) - before;
    t.true(grown < 16 * 2 + 150, `${grown} MiB more`);
    for (const client of clients) client.socket.destroy();
    await recovered();
  },
);

test.serial('serve ends in time with clients on every carrier and servers that cannot be asked to end', async (t) => {
  const bridge = await startBridge([...SERVE_CARRIED, ...faulty('stubborn')]);
  t.teardown(() => bridge.stop());
  const clients: CarriedClient[] = [];
  for (const name of CARRIER_NAMES) clients.push(await openCarried(name, bridge));
  for (const client of clients) {
    client.say(callOf(1, 'never-answers', ''));
    client.say(callOf(2, 'echo', 'there'));
    await answerTo(client, 2);
  }
  const children = bridge.children();
  t.is(children.length, 2);
  const sinceMs = Date.now();
  bridge.kill('SIGTERM');
  for (const client of clients)
    t.like((await answerTo(client, 1)).error, { data: { bridge: { reason: 'ERR_SESSION_CLOSED' } } });
  t.deepEqual(await Promise.all(clients.map(({ ended }) => ended)), ['1001', 'end']);
  for (const client of clients) client.socket.destroy();
  t.deepEqual(await bridge.exited, { code: 0, signal: null });
  t.true(Date.now() - sinceMs < DOCKER_MS + BUSY_MS, `${Date.now() - sinceMs} ms`);
  await assertGone(children);
  says(t, bridge, []);
});

/** Nothing moves anymore on the way in. */
async function isStuck({ socket }: CarriedClient): Promise<void> {
  let last = -1;
  let times = 0;
  await waitFor(() => {
    times = socket.writableLength === last ? times + 1 : 0;
    last = socket.writableLength;
    return times > 20;
  });
}
