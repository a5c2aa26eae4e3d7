/** Servers, and gateways before them, that return ids with another JSON type, over every carrier. */

import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import test, { type ExecutionContext } from 'ava';
import type { SessionDialer } from '../../src/relay/ports.ts';
import { asSessionDialer } from '../../src/upstream/connection.ts';
import { ModernClient } from '../contract/modern-client.ts';
import { type Message, RelayedClient } from '../contract/relayed-client.ts';
import { changeId } from '../fixtures/http-servers/change-id.js';
import { listenOld } from '../fixtures/http-servers/old-server.ts';
import { type Act, event, listenScripted, openStream } from '../fixtures/http-servers/scripted.ts';
import { answer } from '../fixtures/servers/mcp-stub.js';
import { fixture } from '../process/child-spec.ts';
import { collectLog, createTestDeps, type LogEntry } from '../process/collected-log.ts';
import { dialScript } from '../support/dialers.ts';
import { startWebSocketServer } from '../support/websocket-server.ts';
import { dialByteStream } from './byte-stream/dial.ts';
import { dialHttpSse, dialStateless, dialStreamable, dialWebSocket } from './remote-dialers.ts';

type Type = 'text' | 'number' | 'fraction' | 'batch';

interface Dialed {
  readonly dialer: SessionDialer;
  readonly entries: readonly LogEntry[];
}

/** What a server answers, as it writes it; empty for what needs no answer. */
const write = (type: Type, message: object): string => {
  const response = answer(message as Parameters<typeof answer>[0]);
  return response === undefined ? '' : changeId(response, type);
};

const overHttp =
  (type: Type, isStream: boolean): Act =>
  ({ message }, response) => {
    const text = write(type, message);
    if (text === '') return void response.writeHead(202).end();
    if (isStream) return void openStream(response).end(event(text));
    response.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 's' }).end(text);
  };

async function scripted(t: ExecutionContext, type: Type, isStream: boolean): Promise<URL> {
  const act = overHttp(type, isStream);
  const server = await listenScripted({ POST: act, initialize: act });
  t.teardown(() => server.close());
  return server.url;
}

const CARRIERS: Readonly<Record<string, (t: ExecutionContext, type: Type) => Promise<Dialed>>> = {
  stdio: async (_t, type) => {
    const { deps, entries } = createTestDeps();
    const dialer = dialScript(fixture('changes-ids'), { deps, args: [type] });
    return { dialer, entries };
  },
  'a byte stream': async (t, type) => {
    const server = createServer((socket) => {
      createInterface({ input: socket }).on('line', (line) => socket.write(`${write(type, JSON.parse(line))}\n`));
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    t.teardown(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { dialer, entries } = dialByteStream({ kind: 'tcp', host: '127.0.0.1', port, tls: 'off' });
    return { dialer: asSessionDialer(dialer), entries };
  },
  'a WebSocket': async (t, type) => {
    const server = await startWebSocketServer({
      connected: (socket) => {
        socket.on('message', (data) => {
          const text = write(type, JSON.parse(String(data)) as object);
          if (text !== '') socket.send(text);
        });
      },
    });
    t.teardown(() => server.stop());
    const { log, entries } = collectLog();
    return { dialer: dialWebSocket(server.url, { log }), entries };
  },
  'HTTP with JSON': async (t, type) => {
    const { log, entries } = collectLog();
    return { dialer: dialStreamable(await scripted(t, type, false), { log }), entries };
  },
  'HTTP with event streams': async (t, type) => {
    const { log, entries } = collectLog();
    return { dialer: dialStreamable(await scripted(t, type, true), { log }), entries };
  },
  'HTTP+SSE': async (t, type) => {
    const { server, streams } = await listenOld({
      post: ({ message }, response) => {
        response.writeHead(202).end();
        streams.at(-1)?.write(event(write(type, message)));
      },
    });
    t.teardown(() => server.close());
    const { log, entries } = collectLog();
    return { dialer: dialHttpSse(server.url, { log }), entries };
  },
};

/** Lists tools under these ids, twice, in two sessions of the same server. */
async function ask(t: ExecutionContext, dialer: SessionDialer, ids: readonly (string | number)[]): Promise<Message[]> {
  const answers: Message[] = [];
  for (const client of [new RelayedClient(dialer), new RelayedClient(dialer)]) {
    t.teardown(() => client.close());
    await client.initialize();
    for (const id of ids) client.start('tools/list', {}, id);
    for (const id of ids) answers.push(await client.answer(id));
  }
  t.teardown(() => dialer.close());
  return answers;
}

const warningsOf = (entries: readonly LogEntry[]): readonly string[] =>
  entries.filter(({ level }) => level >= 40).map(({ msg }) => msg);

for (const [carrier, start] of Object.entries(CARRIERS)) {
  for (const [type, ids] of [
    ['text', [5, 6]],
    ['number', ['5', '6']],
    ['fraction', [5, 6]],
    ['batch', [5, 6]],
  ] as const) {
    test(`over ${carrier}, a client gets its own ids back from a server that returns each as a ${type}`, async (t) => {
      const { dialer, entries } = await start(t, type);
      const answers = await ask(t, dialer, ids);
      t.deepEqual(
        answers.map(({ id, result }) => [id, result !== undefined]),
        [...ids, ...ids].map((id) => [id, true]),
      );
      t.is(warningsOf(entries).length, 1, warningsOf(entries).join('\n'));
    });
  }
}

for (const isStream of [false, true]) {
  test(`a modern client gets its own id back over HTTP with ${isStream ? 'event streams' : 'JSON'}`, async (t) => {
    const { log, entries } = collectLog();
    const dialer = dialStateless(await scripted(t, 'text', isStream), { log });
    for (const client of [new ModernClient(dialer), new ModernClient(dialer)]) {
      t.teardown(() => client.close());
      client.start('tools/list', {}, 'mine');
      t.truthy((await client.answer('mine')).result);
    }
    t.teardown(() => dialer.close());
    t.is(warningsOf(entries).length, 1);
  });
}
