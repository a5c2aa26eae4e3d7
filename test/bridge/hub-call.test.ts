import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { HubCall } from '../../src/bridge/hub-call.ts';
import { WebSocketHub } from '../../src/bridge/web-socket-hub.ts';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import type { WebSocketHubConfig } from '../../src/config/server.ts';
import { BridgeError } from '../../src/errors.ts';
import type { ConnectionEnd } from '../../src/http/websocket/connection.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebSocketServer } from '../support/websocket-server.ts';

const HUB: Omit<WebSocketHubConfig, 'url'> = {
  kind: 'websocket',
  headers: new Map(),
  token: undefined,
  caFile: undefined,
  proxyEnv: {},
};

interface Serving {
  readonly principal: string | undefined;
  readonly end: (end: ConnectionEnd | undefined) => void;
}

/** A call on fake time, with whatever stands in the place of the endpoint. */
function call(t: ExecutionContext, url: URL, start: () => Promise<void> = async () => undefined) {
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line).msg) });
  const serving: Serving[] = [];
  const deps = { ...createSystemDeps(log), clock };
  const place = new WebSocketHub({
    hub: { ...HUB, url },
    maxMessageBytes: 1024,
    endpoint: async () => {
      await start();
      return {
        serve: ({ socket }, { principal }) =>
          new Promise((resolve) => {
            serving.push({
              principal,
              end: (end) => {
                socket.terminate();
                resolve(end);
              },
            });
          }),
      };
    },
    deps,
  });
  const hub = new HubCall({ hub: place, deps, random: () => 1 });
  t.teardown(() => hub.close());
  return { hub, clock, lines, serving };
}

/** How long the call pauses now, by when the next one begins. */
async function pauseOf(clock: FakeClock, calls: () => number): Promise<number> {
  // What the last call came to is known by then.
  await new Promise((resolve) => setImmediate(resolve));
  const before = calls();
  for (let seconds = 1; seconds <= 120; seconds += 1) {
    clock.advance(1000);
    for (let turn = 0; turn < 20 && calls() === before; turn += 1)
      await new Promise((resolve) => setImmediate(resolve));
    if (calls() > before) return seconds;
  }
  throw new Error('the hub is not called again');
}

test('serves whoever is at the hub, as a caller of that name', async (t) => {
  const server = await startWebSocketServer({ connected: () => undefined });
  t.teardown(() => server.stop());
  const { hub, serving, lines } = call(t, new URL('?key=secret', server.url));
  await waitFor(() => serving.length === 1);
  t.is(serving[0]?.principal, `hub:${server.url.host}`);
  t.deepEqual(hub.inspect(), { url: server.url.href, state: 'connected', problem: undefined });
  t.true(lines.some((line) => line.includes('connected to ws://')));
  t.notRegex(lines.join(), /secret/);
});

test('calls again after ever longer pauses, and says what is wrong once', async (t) => {
  let attempts = 0;
  const failing = async (): Promise<void> => {
    attempts += 1;
    throw new BridgeError('ERR_UPSTREAM_SPAWN', 'There is no such program.');
  };
  const { hub, clock, lines } = call(t, new URL('ws://127.0.0.1:1/'), failing);
  await waitFor(() => hub.inspect().problem !== undefined);
  const pauses: number[] = [];
  for (let round = 0; round < 8; round += 1) pauses.push(await pauseOf(clock, () => attempts));
  t.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
  t.is(lines.filter((line) => line.includes('There is no such program')).length, 1);
});

test('begins anew with short pauses only after a connection that has lasted', async (t) => {
  const server = await startWebSocketServer({ connected: () => undefined });
  t.teardown(() => server.stop());
  const { hub, clock, serving } = call(t, server.url);
  const end = async (lastedMs: number): Promise<number> => {
    const count = serving.length;
    clock.advance(lastedMs);
    serving.at(-1)?.end({ kind: 'closed', code: 4001, reason: 'no' });
    await waitFor(() => hub.inspect().problem !== undefined);
    let seconds = 0;
    await waitFor(() => {
      if (hub.inspect().state === 'calling' && hub.inspect().problem !== undefined) {
        clock.advance(1000);
        seconds += 1;
      }
      return serving.length > count;
    });
    return seconds;
  };
  await waitFor(() => serving.length === 1);
  t.is(await end(10), 1);
  t.is(await end(10), 2);
  t.is(await end(10), 4);
  t.is(await end(60_000), 1);
});

for (const [asked, pause] of [
  ['20', '20.0'],
  ['999999', '60.0'],
] as const) {
  test(`waits as long as a hub that is busy asks for, and no longer than a minute (${asked} s)`, async (t) => {
    const busy = createServer().on('upgrade', (_request, socket) =>
      socket.end(`HTTP/1.1 503 Busy\r\nRetry-After: ${asked}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`),
    );
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
    t.teardown(() => busy.close());
    const { hub, lines } = call(t, new URL(`ws://127.0.0.1:${(busy.address() as AddressInfo).port}/`));
    await waitFor(() => hub.inspect().problem !== undefined);
    t.true(lines.some((line) => line.endsWith(`calling again in ${pause} s`)));
  });
}

test('calls no more when it is closed', async (t) => {
  const { hub, clock } = call(t, new URL('ws://127.0.0.1:1/'));
  await waitFor(() => hub.inspect().problem !== undefined);
  hub.close();
  t.is(clock.pendingTimers, 0);
});
