import { get, type IncomingMessage } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import { ServerRecords } from '../../../src/observe/status/server-records.ts';
import type { StatusDocument } from '../../../src/observe/status/status-document.ts';
import { KEEP_ALIVE_MS, MAX_WATCHERS, STALLED_MS, UPDATE_MS } from '../../../src/observe/status/status-stream.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { client, inspectedServer, inspection, NO_REFUSALS, runCall, WallClock } from './seen.ts';
import { startStatusServer } from './status-server.ts';

async function start(t: ExecutionContext, snippet = '', names: readonly string[] = ['everything']) {
  const clock = new FakeClock();
  const wallClock = new WallClock();
  const activity = new Activity({ wallClock: wallClock.now });
  const world = { looks: 0, snippet };
  const inspect = () => {
    world.looks += 1;
    return inspection({ servers: names.map((name) => inspectedServer({ name })) });
  };
  const snippets = () => world.snippet;
  const status = createStatus({
    inspect,
    activity,
    refusals: NO_REFUSALS,
    usage: undefined,
    hosts: ['cursor'],
    snippets,
  });
  const records = new ServerRecords({ wallClock: wallClock.now });
  const server = await startStatusServer(status, clock, { detailOf: (name) => records.detailOf(name) });
  t.teardown(() => server.close());
  return { clock, wallClock, activity, records, server, world };
}

class Watcher {
  text = '';
  isOver = false;
  readonly response: IncomingMessage;

  constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding('utf8');
    response.on('close', () => {
      this.isOver = true;
    });
    response.on('error', () => undefined);
  }

  read(): this {
    this.response.on('data', (text: string) => {
      this.text += text;
    });
    return this;
  }

  get events(): readonly { readonly type: string; readonly data: Partial<StatusDocument> }[] {
    return this.text
      .split('\n\n')
      .slice(0, -1)
      .filter((event) => !event.startsWith(':'))
      .map((event) => {
        const [type = '', data = ''] = event.split('\n');
        return { type: type.replace('event: ', ''), data: JSON.parse(data.replace('data: ', '')) };
      });
  }
}

async function connect(url: string, query = ''): Promise<Watcher> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/status/events${query}`, { agent: false }, resolve).on('error', reject);
  });
  return new Watcher(response);
}

test('tells the whole document first, and then only what has changed', async (t) => {
  const { clock, activity, server } = await start(t);
  const watcher = (await connect(server.url)).read();
  await waitFor(() => watcher.events.length === 1);
  t.is(watcher.events[0]?.type, 'status');
  t.like(watcher.events[0]?.data, { shape: 2, moreClients: 0, bridge: { version: '0.1.0' } });

  clock.advance(UPDATE_MS);
  activity.connected(client(), undefined);
  clock.advance(UPDATE_MS);
  await waitFor(() => watcher.events.length === 2);
  t.is(watcher.events[1]?.type, 'change');
  t.deepEqual(Object.keys(watcher.events[1]?.data ?? {}), ['atMs', 'clients']);
  t.is(watcher.events[1]?.data.clients?.[0]?.name, 'cursor');

  runCall(activity);
  clock.advance(UPDATE_MS);
  await waitFor(() => watcher.events.length === 3);
  t.deepEqual(Object.keys(watcher.events[2]?.data ?? {}), ['atMs', 'servers', 'clients', 'calls']);
});

test('a watcher is told more about the server that it names, and others are not', async (t) => {
  const { clock, records, server } = await start(t, '', ['files', 'weather']);
  const [ofFiles, ofWeather, ofNone, ofAnother] = await Promise.all(
    ['?server=files', '?server=weather', '', '?server=gone'].map((query) => connect(server.url, query)),
  );
  const all = [ofFiles, ofWeather, ofNone, ofAnother].flatMap((watcher) => watcher?.read() ?? []);
  await waitFor(() => all.every(({ events }) => events.length === 1));
  t.deepEqual(
    all.map(({ events }) => events[0]?.data.detail?.server),
    ['files', 'weather', undefined, undefined],
  );
  records.observe('files').wrote('out of disk space');
  clock.advance(UPDATE_MS);
  await waitFor(() => ofFiles?.events.length === 2);
  t.deepEqual(Object.keys(ofFiles?.events[1]?.data ?? {}), ['atMs', 'detail']);
  t.is(ofFiles?.events[1]?.data.detail?.stderr[0]?.text, 'out of disk space');
  t.true([ofWeather, ofNone, ofAnother].every((watcher) => watcher?.events.length === 1));
});

test('who comes later gets the whole document, and the others miss nothing by it', async (t) => {
  const { clock, activity, server } = await start(t);
  const first = (await connect(server.url)).read();
  await waitFor(() => first.events.length === 1);
  activity.connected(client(), undefined);
  const second = (await connect(server.url)).read();
  await waitFor(() => second.events.length === 1 && first.events.length === 2);
  t.is(second.events[0]?.type, 'status');
  t.is(first.events[1]?.type, 'change');
  clock.advance(UPDATE_MS);
  t.is(first.events.length, 2);
});

test('keeps the connection alive while nothing happens', async (t) => {
  const { clock, server } = await start(t);
  const watcher = (await connect(server.url)).read();
  await waitFor(() => watcher.events.length === 1);
  clock.advance(KEEP_ALIVE_MS);
  await waitFor(() => watcher.text.endsWith(': keep-alive\n\n'));
  t.is(watcher.events.length, 1);
});

test('does nothing while nobody watches', async (t) => {
  const { clock, server, world } = await start(t);
  t.is(clock.pendingTimers, 0);
  const watcher = (await connect(server.url)).read();
  await waitFor(() => watcher.events.length === 1);
  t.is(clock.pendingTimers, 1);
  watcher.response.destroy();
  await waitFor(() => clock.pendingTimers === 0);
  const { looks } = world;
  clock.advance(60_000);
  t.is(world.looks, looks);
});

test('a slow watcher skips updates, nothing is queued for it, and then it gets the whole document', async (t) => {
  const megabytes = 'x'.repeat(8_000_000);
  const { clock, server, world } = await start(t, megabytes);
  const slow = await connect(server.url);
  const [response] = server.responses;
  await waitFor(() => response?.writableNeedDrain);
  for (let index = 0; index < 20; index += 1) {
    world.snippet = `${index}${megabytes}`;
    clock.advance(UPDATE_MS);
  }
  t.true((response?.writableLength ?? 0) < 10_000_000, `${response?.writableLength}`);
  slow.read();
  await waitFor(() => slow.text.length > 8_000_000 && response?.writableNeedDrain === false);
  clock.advance(UPDATE_MS);
  await waitFor(() => slow.events.length === 2);
  t.is(slow.events[1]?.type, 'status');
  t.true(slow.events[1]?.data.snippets?.[0]?.text.startsWith('19'));
});

test('gives the place of a watcher that reads nothing to others after a while', async (t) => {
  const { clock, server } = await start(t, 'x'.repeat(8_000_000));
  await connect(server.url);
  const [response] = server.responses;
  await waitFor(() => response?.writableNeedDrain);
  clock.advance(STALLED_MS);
  await waitFor(() => clock.pendingTimers === 0);
  t.true(response?.destroyed);
});

test('refuses more watchers than there may be, until one has left', async (t) => {
  const { server } = await start(t);
  const watchers = await Promise.all(Array.from({ length: MAX_WATCHERS }, () => connect(server.url)));
  const refused = await connect(server.url);
  t.is(refused.response.statusCode, 503);
  t.is(refused.response.headers['retry-after'], '10');
  watchers[0]?.response.destroy();
  await waitFor(async () => (await connect(server.url)).response.statusCode === 200);
});

test('ends all streams when the bridge ends', async (t) => {
  const { clock, server } = await start(t);
  const watcher = (await connect(server.url)).read();
  await waitFor(() => watcher.events.length === 1);
  server.routes.close();
  await waitFor(() => watcher.isOver);
  t.is(clock.pendingTimers, 0);
});
