import { Writable } from 'node:stream';
import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { Child } from '../../../src/process/child.ts';
import { RestartPolicy } from '../../../src/process/supervisor.ts';
import { IdWarnings } from '../../../src/upstream/answer-ids.ts';
import { DuplexConnection } from '../../../src/upstream/duplex/connection.ts';
import { StdioCarrier } from '../../../src/upstream/stdio/carrier.ts';
import { notificationFrame, requestFrame } from '../../../src/wire/write-message.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';

/** A connection to a process that only exists as far as the connection can tell. */
function createLink({ name = 'node server.js' } = {}) {
  const clock = new FakeClock();
  const { log, entries } = collectLog();
  const child = {
    name,
    pid: 1,
    stdin: new Writable({ write: (_chunk, _encoding, done) => done() }),
    lastHeardMs: 0,
    isEnding: false,
    hasFailed: false,
    pauseOutput: () => undefined,
    resumeOutput: () => undefined,
    terminate: () => Promise.resolve(),
    killNow: () => undefined,
    gone: Promise.resolve(),
  } satisfies Child;
  const listener = new RecordingServerListener();
  const policy = new RestartPolicy({ name, clock, random: () => 0, noted: () => {} });
  const start = (): Child => child;
  const carried = {
    name,
    maxMessageBytes: 1000,
    withheldEnv: [],
    failureLevel: 'warn',
    policy,
    clock,
    log,
    start,
  } as const;
  const link = new DuplexConnection({
    idWarnings: new IdWarnings(name, log),
    log,
    carry: (connection) => new StdioCarrier(carried, connection),
  });
  link.listener = listener;
  const warnings = () => entries.filter(({ level }) => level === 40).map(({ msg }) => msg);
  const told = () => entries.map(({ msg }) => msg);
  return { link, child, clock, warnings, told };
}

const ANSWER = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}\n');

test('says once in the log that a server is silent for ten seconds before its first answer, and what that may mean', (t) => {
  const { link, clock, warnings } = createLink();
  clock.advance(60_000);
  link.send(notificationFrame('notifications/roots/list_changed'));
  clock.advance(60_000);
  t.deepEqual(warnings(), [], 'nobody has asked it anything');
  link.send(requestFrame(1, 'initialize'));
  clock.advance(9999);
  t.deepEqual(warnings(), []);
  clock.advance(1);
  link.send(requestFrame(2, 'ping'));
  clock.advance(60_000);
  t.is(warnings().length, 1);
  t.regex(
    warnings()[0] ?? '',
    /^no answer and nothing else for 10 s: .* does not speak MCP on stdin and stdout\. .* by its URL$/,
  );
});

for (const [name, message] of [
  ['npx some-server', 'starting npx some-server, no answer yet; a package may be downloading'],
  ['uvx', 'starting uvx, no answer yet; a package may be downloading'],
  ['node server.js', 'starting node server.js, no answer yet'],
] as const) {
  test(`says in the log that it waits for ${name} when there is no answer after two seconds`, (t) => {
    const { link, child, clock, told } = createLink({ name });
    link.send(requestFrame(1, 'initialize'));
    clock.advance(1000);
    child.lastHeardMs = clock.now();
    clock.advance(1999);
    t.deepEqual(told(), [], 'it has just printed something');
    clock.advance(1);
    t.deepEqual(told(), [message]);
    clock.advance(23_000);
    link.carrier.output(ANSWER);
    clock.advance(60_000);
    t.is(told().at(-1), `${name} answered after 26 s`);
    t.is(clock.pendingTimers, 0);
  });
}

test('says nothing of how long a start took that was no wait', (t) => {
  const { link, clock, told } = createLink();
  link.send(requestFrame(1, 'initialize'));
  clock.advance(1999);
  link.carrier.output(ANSWER);
  t.deepEqual(told(), []);
});

test('says nothing of a server that only prints, until it stops that, too', (t) => {
  const { link, child, clock, warnings } = createLink();
  link.send(requestFrame(1, 'initialize'));
  for (let second = 0; second < 60; second++) {
    child.lastHeardMs = clock.now();
    clock.advance(1000);
  }
  clock.advance(8999);
  t.deepEqual(warnings(), []);
  clock.advance(1);
  t.is(warnings().length, 1);
  t.is(clock.pendingTimers, 0);
});

test('says nothing of a server that has answered, or that was left', (t) => {
  const answering = createLink();
  answering.link.send(requestFrame(1, 'initialize'));
  answering.link.carrier.output(ANSWER);
  answering.link.send(requestFrame(2, 'tools/call'));
  const left = createLink();
  left.link.send(requestFrame(1, 'initialize'));
  left.link.close(new BridgeError('ERR_SESSION_CLOSED', 'the client left'));
  for (const { clock, warnings } of [answering, left]) {
    t.is(clock.pendingTimers, 0);
    clock.advance(60_000);
    t.deepEqual(warnings(), []);
  }
});

test('says in the log that a process could not be started after all', (t) => {
  const { link, warnings } = createLink();
  link.carrier.failed(new BridgeError('ERR_UPSTREAM_SPAWN', 'Cannot start the server: too many files are open.'));
  t.deepEqual(warnings(), ['Cannot start the server: too many files are open.']);
});
