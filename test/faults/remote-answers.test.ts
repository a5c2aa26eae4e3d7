/** What a server at a URL can answer, through the built bridge. Needs a current build. */
import test, { type ExecutionContext } from 'ava';
import { event } from '../fixtures/http-servers/scripted.ts';
import type { Outcome } from './fault-clients.ts';
import { rssMiBOf } from './faulty-bridge.ts';
import {
  type Answer,
  type AskedCall,
  echo,
  REMOTE_KINDS,
  REMOTE_NAMES,
  type RemoteName,
  resultOf,
  startRemote,
} from './faulty-remote.ts';

const MIB = 1024 * 1024;

/** What comes of the call, and what the log says. */
interface Fate {
  /** Code of the error; without one the call gets its answer. */
  readonly error?: string;
  readonly log?: readonly string[];
}

interface Misbehavior {
  readonly title: string;
  readonly answer: Answer;
  readonly fates: Readonly<Record<RemoteName, Fate>>;
}

const forAll = (fate: Fate): Misbehavior['fates'] => ({ streamable: fate, modern: fate, httpSse: fate });
const fails = (error: string, level = 'error'): Fate => ({ error, log: [`${level} ${error}`] });

/** Said once of a server, whose URL takes the place of SERVER. */
const matchesNothing = (type: 'string' | 'number'): string =>
  `warn Server "SERVER" sent an answer that matches no open call and is dropped; its id is a ${type}`;

const UNREADABLE = forAll(fails('ERR_UPSTREAM_UNREADABLE'));

const MISBEHAVIORS: readonly Misbehavior[] = [
  {
    title: 'answers bytes that are no HTTP',
    answer: ({ response }) => void response.socket?.end(Buffer.of(0x16, 0x03, 0x01, 0xff, 0x00, 0x0d, 0x0a)),
    fates: UNREADABLE,
  },
  {
    title: 'sends headers without end',
    answer: ({ response: { socket } }) => {
      socket?.write('HTTP/1.1 200 OK\r\n');
      const timer = setInterval(() => socket?.write(`X-${'x'.repeat(4000)}: ${'y'.repeat(4000)}\r\n`), 1);
      socket?.once('close', () => clearInterval(timer));
    },
    fates: UNREADABLE,
  },
  {
    title: 'sends a gibibyte of spaces as a body',
    answer: (call) => {
      const { response } = call;
      response.writeHead(200, { 'Content-Type': 'application/json' });
      flood(response, 1024, () => response.end('{}'));
      if (call.stream !== response) echo(call);
    },
    fates: {
      ...forAll(fails('ERR_UPSTREAM_TOO_LARGE')),
      // That body says nothing there.
      httpSse: {},
    },
  },
  {
    title: 'sends 256 MiB of spaces as an event',
    answer: ({ stream }) => {
      stream.write('data: ');
      // All of it is read: something may follow.
      flood(stream, 256, () => stream.write('{}\n\n'));
    },
    fates: forAll(fails('ERR_UPSTREAM_TOO_LARGE')),
  },
  {
    title: 'answers under wrong ids, then its own',
    answer: (call) => {
      for (const id of ['nobody', 12345, `x${call.id}`]) call.stream.write(resultOf({ id }, 'wrong'));
      echo(call);
    },
    fates: forAll({ log: [matchesNothing('string')] }),
  },
  {
    title: 'answers twice, and adds what nobody asked',
    answer: (call) => {
      call.stream.write(resultOf(call, call.text));
      call.stream.write(resultOf(call, 'again'));
      call.stream.write(resultOf({ id: 'nobody' }, 'nobody asked'));
      call.done();
    },
    // The connection of a modern call ends with its answer; of a session every answer is looked for.
    fates: {
      streamable: { log: [matchesNothing('string')] },
      modern: {},
      httpSse: { log: [matchesNothing('number')] },
    },
  },
  {
    title: 'sends garbage between events',
    answer: (call) => {
      call.stream.write('data: {"jsonrpc"\n\ndata: \u0000\n\nevent: x\ndata: [[[[\n\n:\n\nno colon\n\n');
      call.stream.write(event('{"jsonrpc":"2.0"}'));
      echo(call);
    },
    fates: forAll({}),
  },
];

function flood(to: AskedCall['stream'], mebibytes: number, end: () => void): void {
  const spaces = Buffer.alloc(MIB, ' ');
  let left = mebibytes;
  const send = (): void => {
    while (left > 0) {
      if (to.destroyed) return;
      left -= 1;
      if (!to.write(spaces)) return void to.once('drain', send);
    }
    end();
  };
  send();
}

for (const { title, answer, fates } of MISBEHAVIORS) {
  for (const name of REMOTE_NAMES) {
    const { error, log = [] }: Fate = fates[name];
    const outcome = error === undefined ? 'the call gets its answer, once' : `one error ${error}`;
    test.serial(`server over ${REMOTE_KINDS[name].title} ${title}: ${outcome}, and the session goes on`, async (t) => {
      const { bridge, network, server, victim, recovered } = await startRemote(t, name, ['--max-message-bytes', '1m']);
      const before = rssMiBOf(bridge.pid);
      server.answer = answer;
      const met = await victim.call('echo', 'mine');
      server.answer = echo;
      checkOutcome(t, met, error);
      t.true(rssMiBOf(bridge.pid) - before < 150, `${rssMiBOf(bridge.pid) - before} MiB more`);
      t.is((await victim.call('echo', 'and on')).text, 'and on');
      await recovered({ log: log.map((line) => line.replace('SERVER', network.through(server.url).href)) });
    });
  }
}

function checkOutcome(t: ExecutionContext, { text, error }: Outcome, expected: string | undefined): void {
  if (expected === undefined) return void t.is(text, 'mine');
  t.like(error, { data: { bridge: { reason: expected } } });
}
