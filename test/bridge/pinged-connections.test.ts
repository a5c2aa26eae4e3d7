/** The connections to remote servers that `--keep-alive` pings. */
import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import test, { type ExecutionContext } from 'ava';
import type { DialerForCaller } from '../../src/relay/ports.ts';
import { RelayedClient } from '../contract/relayed-client.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { serve } from '../support/servers-of-a-test.ts';
import { waitFor } from '../support/wait-for.ts';
import { ModernRequest } from '../upstream/modern-request.ts';
import { dialersOf } from './dialers-of.ts';

const IDLE_MS = 1000;

interface Server {
  readonly address: string;
  /** What it was asked, in order. */
  readonly asked: readonly string[];
}

const startHttp = async (t: ExecutionContext): Promise<Server> => {
  const { url, asked } = await serve(t, 'stateful');
  return { address: url.href, asked };
};

/** A legacy server on a byte stream. */
const startStream = (t: ExecutionContext): Promise<Server> => {
  const asked: string[] = [];
  const server = createServer((socket) => {
    const say = (message: object): void => void socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    createInterface({ input: socket }).on('line', (line) => {
      const { id, method, params } = JSON.parse(line) as { id?: number; method: string; params?: object };
      asked.push(method);
      if (id === undefined) return;
      if (method === 'server/discover') say({ id, error: { code: -32601, message: 'what?' } });
      else if (method === 'initialize') say({ id, result: { ...params, capabilities: {}, serverInfo: SERVER } });
      else say({ id, result: method === 'tools/list' ? { tools: [] } : {} });
    });
  });
  t.teardown(() => server.close());
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve({ address: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`, asked });
    });
  });
};

const SERVER = { name: 'server', version: '1' };

interface Opened {
  readonly clock: FakeClock;
  readonly dialer: DialerForCaller;
  readonly server: Server;
}

async function open(
  t: ExecutionContext,
  start: (t: ExecutionContext) => Promise<Server>,
  options: readonly string[],
): Promise<Opened> {
  const remote = await start(t);
  const clock = new FakeClock();
  const words = ['serve', '--keep-alive', `${IDLE_MS}ms`, ...options, remote.address];
  const dialers = await dialersOf(t, words, { clock });
  return { clock, dialer: dialers.forCaller(undefined), server: remote };
}

type Use = (opened: Opened) => Promise<() => Promise<unknown>>;

/** Returns a call of a client whose session is open. */
const asLegacyClient: Use = async ({ dialer }) => {
  const client = new RelayedClient({
    name: 'server',
    dial: (listener) => dialer.dial(listener),
    readiness: () => ({ state: 'ready' }),
    close: () => Promise.resolve(),
    killNow: () => {},
  });
  await client.initialize();
  return () => client.request('tools/list');
};

const asModernClient: Use = async ({ dialer }) => {
  return () =>
    new ModernRequest({
      name: 'server',
      dialCalls: (listener, context) => dialer.dialCalls(listener, context),
      callServer: () => dialer.callServer(),
      readiness: () => ({ state: 'ready' }),
      close: () => Promise.resolve(),
      killNow: () => {},
    }).answer();
};

const CASES = [
  { what: 'the session of a legacy client at a URL', start: startHttp, use: asLegacyClient, isPinged: true },
  { what: 'the session for modern clients at a URL', start: startHttp, use: asModernClient, isPinged: false },
  { what: 'the session of a legacy client on a byte stream', start: startStream, use: asLegacyClient, isPinged: true },
  { what: 'the session for modern clients on a byte stream', start: startStream, use: asModernClient, isPinged: true },
  {
    what: 'a byte stream that legacy clients share, and that detection has opened',
    start: startStream,
    use: asLegacyClient,
    options: ['--isolation', 'shared'],
    isPinged: true,
  },
  {
    what: 'a byte stream that modern clients share',
    start: startStream,
    use: asModernClient,
    options: ['--isolation', 'shared'],
    isPinged: true,
  },
];

for (const { what, start, use, options = [], isPinged } of CASES) {
  test(`${what} is ${isPinged ? '' : 'not '}pinged`, async (t) => {
    const opened = await open(t, start, options);
    const call = await use(opened);
    await call();
    const pings = () => opened.server.asked.filter((asked) => asked.endsWith('ping')).length;
    t.is(pings(), 0);
    opened.clock.advance(2 * IDLE_MS);
    if (isPinged) await waitFor(() => pings() > 0, { message: 'a ping' });
    // A ping would have been sent before this call.
    await call();
    t.is(pings() > 0, isPinged);
  });
}
