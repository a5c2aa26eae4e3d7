/** What can happen on the way between the bridge and a server at a URL, through the built bridge. Needs a current build. */
import type { ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import {
  type AskedMessage,
  event,
  listenScripted,
  openStream,
  resultOf,
  type Script,
  type ScriptedServer,
} from '../fixtures/http-servers/scripted.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Faulty, type Outcome, startFaulty } from './faulty-bridge.ts';

const CLOSED = { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_CLOSED' } } };
/** Stands in the answers that the network damages, and nowhere else. */
const MARK = '€';

interface Remote extends Faulty {
  readonly server: ScriptedServer;
  readonly network: FaultProxy;
}

/** Answers `echo` in a stream, and everything else like `how` says. */
async function startRemote(t: ExecutionContext, options: readonly string[] = [], script: Script = {}): Promise<Remote> {
  const echo = (asked: AskedMessage, response: ServerResponse): void => {
    const { text = '' } = (asked.message.params?.arguments ?? {}) as { text?: string };
    openStream(response).end(event(resultOf(asked, text)));
  };
  const server = await listenScripted({ 'tools/call': echo, ...script });
  const network = await startFaultProxy(server.url);
  t.teardown(async () => {
    await network.close();
    await server.close();
  });
  return { server, network, ...(await startFaulty(t, options, [network.through(server.url).href])) };
}

for (const by of ['end', 'reset'] as const) {
  const cuts = { 'in the middle of an event': -20, 'in the middle of a character': 1 };
  for (const [where, keep] of Object.entries(cuts)) {
    test.serial(`network truncates an answer ${where} (${by}): one error, and the session goes on`, async (t) => {
      const { network, victim, recovered, logged } = await startRemote(t);
      network.fault = { kind: 'truncate', marker: MARK, keep, by };
      const { error } = await victim.call('echo', `some text, ${MARK} and more`);
      t.like(error, CLOSED);
      t.is((await victim.call('echo', `whole ${MARK}`)).text, `whole ${MARK}`);
      await logged('ERR_UPSTREAM_CLOSED');
      await recovered();
    });
  }
}

test.serial('network cut during a call whose stream can be resumed: the answer arrives, once', async (t) => {
  const resumed = (asked: AskedMessage, response: ServerResponse): void => {
    const lastEventId = asked.headers['last-event-id'];
    if (lastEventId === undefined) return void response.writeHead(405).end();
    openStream(response).end(
      event({ jsonrpc: '2.0', id: waiting, result: { content: [{ type: 'text', text: 'resumed' }] } }, '2'),
    );
  };
  let waiting: unknown;
  const { network, victim, recovered, server } = await startRemote(t, [], { GET: resumed });
  server.rewrite({
    'tools/call': (asked, response) => {
      waiting = asked.message.id;
      openStream(response).write(`retry: 10\n${event({ jsonrpc: '2.0', method: 'x/event' }, '1')}`);
    },
  });
  const call = victim.call('slow', 'x');
  await waitFor(() => waiting !== undefined);
  // What was said before the cut has arrived.
  await waitFor(() => network.open > 0);
  setTimeout(() => network.reset(), 200);
  t.is((await call).text, 'resumed');
  server.rewrite({
    'tools/call': (asked, response) => openStream(response).end(event(resultOf(asked, echoed(asked)))),
  });
  await recovered();
});

const echoed = ({ message }: AskedMessage): string =>
  String((message.params?.arguments as { text?: string } | undefined)?.text);

test.serial('network resets a connection between two calls: the next call is answered', async (t) => {
  const { network, victim, recovered } = await startRemote(t);
  t.is((await victim.call('echo', 'one')).text, 'one');
  network.reset();
  t.is((await victim.call('echo', 'two')).text, 'two');
  await recovered();
});

test.serial('network resets every connection: calls fail in plain words, and work when it is back', async (t) => {
  const { network, victim, recovered } = await startRemote(t);
  network.fault = { kind: 'refuse' };
  network.reset();
  const { error } = await victim.call('echo', 'x');
  t.is(error?.code, -32603);
  t.regex(JSON.stringify(error?.data), /ERR_UPSTREAM_(CLOSED|CONNECT)/);
  network.fault = { kind: 'none' };
  t.is((await victim.call('echo', 'back')).text, 'back');
  await recovered();
});

test.serial('network delays everything: answers come late and whole', async (t) => {
  const { network, victim, recovered } = await startRemote(t);
  network.fault = { kind: 'delay', ms: 300 };
  t.is((await victim.call('echo', `late ${MARK}`)).text, `late ${MARK}`);
  network.fault = { kind: 'none' };
  await recovered();
});

test.serial('network falls silent: the call times out, and works when it is back', async (t) => {
  const { network, victim, recovered } = await startRemote(t, ['--request-timeout', '500ms']);
  network.fault = { kind: 'silence' };
  const { error } = await victim.call('echo', 'x');
  t.like(error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT' } } });
  network.fault = { kind: 'none' };
  network.reset();
  t.is((await victim.call('echo', 'back')).text, 'back');
  await recovered();
});

// ---- what a server says over HTTP

type Answer = (asked: AskedMessage, response: ServerResponse) => void;

/** One call answered like this, then calls that are answered as they should be. */
function afterAnswer(
  title: string,
  answer: Answer,
  check: (t: ExecutionContext, outcome: Outcome, text: string) => void,
) {
  test.serial(`server ${title}`, async (t) => {
    const { server, victim, recovered } = await startRemote(t, ['--max-message-bytes', '1m']);
    server.rewrite({ 'tools/call': answer });
    const outcome = await victim.call('echo', 'mine');
    server.rewrite({
      'tools/call': (asked, response) => openStream(response).end(event(resultOf(asked, echoed(asked)))),
    });
    check(t, outcome, 'mine');
    t.is((await victim.call('echo', 'and on')).text, 'and on', 'the session goes on');
    await recovered();
  });
}

const fails = (t: ExecutionContext, { error }: Outcome): void => {
  t.is(error?.code, -32603);
  t.regex(JSON.stringify(error?.data), /"reason":"ERR_UPSTREAM_(PROTOCOL|CLOSED|CONNECT)"/);
};
const succeeds = (t: ExecutionContext, outcome: Outcome, text: string): void => void t.is(outcome.text, text);

afterAnswer(
  'answers bytes that are no HTTP: one error',
  (_, response) => {
    response.socket?.end(Buffer.of(0x16, 0x03, 0x01, 0xff, 0x00, 0x0d, 0x0a));
  },
  fails,
);

afterAnswer(
  'sends headers without end: one error, long before memory is full',
  (_, response) => {
    const { socket } = response;
    socket?.write('HTTP/1.1 200 OK\r\n');
    const timer = setInterval(() => socket?.write(`X-${'x'.repeat(4000)}: ${'y'.repeat(4000)}\r\n`), 1);
    socket?.once('close', () => clearInterval(timer));
  },
  fails,
);

afterAnswer(
  'sends a gibibyte of spaces: one error at the limit',
  (_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const spaces = Buffer.alloc(1 << 20, 0x20);
    let left = 1024;
    const send = (): void => {
      while (left > 0 && !response.destroyed) {
        left -= 1;
        if (!response.write(spaces)) return void response.once('drain', send);
      }
      response.end('{}');
    };
    send();
  },
  (t, { error }) => {
    t.is(error?.code, -32600);
    t.regex(JSON.stringify(error?.data), /ERR_WIRE_FRAME_TOO_LARGE/);
  },
);

afterAnswer(
  'answers under wrong ids, then its own: the call gets its own',
  (asked, response) => {
    openStream(response);
    for (const id of ['nobody', 12345, String(asked.message.id)])
      response.write(event({ jsonrpc: '2.0', id, result: {} }));
    response.end(event(resultOf(asked, 'mine')));
  },
  succeeds,
);

afterAnswer(
  'answers twice, and adds what nobody asked: the call gets the first',
  (asked, response) => {
    openStream(response).write(event(resultOf(asked, 'mine')));
    response.write(event(resultOf(asked, 'again')));
    response.end(event({ jsonrpc: '2.0', id: 'nobody', result: {} }));
  },
  succeeds,
);

afterAnswer(
  'sends garbage between events: the call gets its answer',
  (asked, response) => {
    openStream(response).write('data: {"jsonrpc"\n\ndata: \u0000\n\nevent: x\ndata: [[[[\n\n:\n\nno colon\n\n');
    response.end(event(resultOf(asked, 'mine')));
  },
  succeeds,
);
