/** How `connect` ends, by a clock that stands still: all that happens, happens because of what the client does. */
import { createInterface } from 'node:readline';
import { PassThrough, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import test, { type ExecutionContext } from 'ava';
import { connectStdio } from '../../src/bridge/connect-stdio.ts';
import { INITIALIZE } from '../cli/stdio-program.ts';
import { modern } from '../downstream/stdio-endpoint.ts';
import { fixture } from '../process/child-spec.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { assertGone, isAlive } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { configOf } from './config-of.ts';

interface ConnectOptions {
  readonly output?: Writable;
  /** Before the server's. */
  readonly words?: readonly string[];
}

/** The bridge before a server that has a session. Killed with the test. */
async function connect(
  t: ExecutionContext,
  server: string,
  { output = new PassThrough(), words = [] }: ConnectOptions = {},
) {
  const { deps, entries } = createTestDeps();
  const clock = new FakeClock();
  const input = new PassThrough();
  const config = configOf('connect', ...words, '--', process.execPath, fixture(server));
  const parent = { isDead: false };
  const pipes = { input, output, isOrphaned: () => parent.isDead };
  const bridge = await connectStdio(config, { ...deps, clock, observers: [] }, pipes);
  t.teardown(() => bridge.killNow());
  input.write(`${JSON.stringify(INITIALIZE)}\n`);
  const answered = () => output.writableLength > 0 || (output instanceof PassThrough && output.readableLength > 0);
  await waitFor(answered, { message: 'the answer to initialize' });
  const pid = Number(entries.find(({ msg }) => msg === 'server started')?.childPid);
  const logged = (text: string) => waitFor(() => entries.some(({ msg }) => msg.includes(text)), { message: text });
  return { bridge, clock, input, output, parent, pid, entries, logged };
}

type Connection = Awaited<ReturnType<typeof connect>>;

const WARN = 40;
const INPUT_ENDED = 'the client has ended its input';
const NEVER = { jsonrpc: '2.0', id: 'never', method: 'tools/call', params: { name: 'never-answers', arguments: {} } };
/** The default of --shutdown-grace. */
const GRACE_MS = 4000;
/** Much longer than that, and than anything else that does not wait for answers. */
const LONG_MS = 10 * GRACE_MS;

/** The same with a call that is never answered, after the end of input, whose time is --request-timeout, if any. */
async function connectSilent(t: ExecutionContext, requestTimeout = '0') {
  const connection = await connect(t, 'faulty', { words: ['--request-timeout', requestTimeout] });
  const { bridge, input, output, clock, entries, logged } = connection;
  const messages: { readonly id: unknown; readonly error?: object }[] = [];
  createInterface({ input: output as PassThrough }).on('line', (line) => messages.push(JSON.parse(line)));
  let hasEnded = false;
  void bridge.ended.then(() => {
    hasEnded = true;
  });
  input.end(`${JSON.stringify(NEVER)}\n`);
  await logged(INPUT_ENDED);
  const answer = () => messages.find(({ id }) => id === NEVER.id);
  return {
    ...connection,
    answer,
    /** In steps, for what is open is looked at now and then. */
    pass: (ms: number) => clock.advanceInSteps(ms, 20),
    isWaiting: () =>
      !hasEnded && answer() === undefined && !entries.some(({ msg }) => msg.includes('ending the child')),
    /** That it ends needs no more time to pass. */
    ends: () => waitFor(() => hasEnded, { message: 'the end of the bridge' }),
  };
}

test('after the end of input a call has its time as before: its end is the end of the bridge', async (t) => {
  const { isWaiting, pass, answer, ends, clock, bridge, pid } = await connectSilent(t, '60s');
  await pass(59_000);
  t.true(isWaiting());
  // Calls are looked at every second.
  await pass(2000);
  await ends();
  t.like(answer(), { error: { data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT', phase: 'response' } } } });
  t.is(await bridge.ended, undefined, 'which is no failure');
  await assertGone([pid]);
  // The bridge hears of the end of the server in its own time.
  await waitFor(() => clock.pendingTimers === 0, { message: 'no timer to be left' });
});

test('after the end of input a call that may be silent has all of --max-call-time', async (t) => {
  const { isWaiting, clock } = await connectSilent(t);
  await clock.advanceInSteps(23 * 3_600_000, 3_600_000);
  t.true(isWaiting());
});

/** What tells that nobody waits for an answer anymore, or not for long. */
const REASONS = {
  'Ctrl-C': ({ bridge }) => void bridge.shutdown('SIGINT'),
  'a terminal that closes': ({ bridge }) => void bridge.shutdown('SIGHUP'),
  'a reader that has gone': ({ output }) => void output.destroy(),
  'a parent that has died': async ({ parent, clock }) => {
    parent.isDead = true;
    await clock.advanceInSteps(1000, 20);
  },
} satisfies Record<string, (connection: Connection) => unknown>;

for (const [reason, tell] of Object.entries(REASONS)) {
  test(`${reason}, long after the end of input: what is open has --shutdown-grace from then`, async (t) => {
    const connection = await connectSilent(t);
    const { isWaiting, pass, ends, logged, output, answer, pid } = connection;
    await pass(LONG_MS);
    t.true(isWaiting());
    await tell(connection);
    if (reason !== 'Ctrl-C' && reason !== 'a terminal that closes') await logged('the client is gone');
    await pass(GRACE_MS - 1);
    t.true(isWaiting());
    await pass(1);
    await ends();
    if (!output.destroyed) t.like(answer(), { error: { data: { bridge: { reason: 'ERR_SESSION_CLOSED' } } } });
    await assertGone([pid]);
  });
}

/** More than the pipe of a process and what the bridge writes ahead hold together. */
const MUCH = `${JSON.stringify({ jsonrpc: '2.0', method: 'x/y', params: { text: 'x'.repeat(1000) } })}\n`.repeat(2000);

test('a server that takes nothing of what was said before the end of input has --request-timeout for it', async (t) => {
  const words = ['--request-timeout', '60s'];
  const { input, clock, bridge, entries, logged, pid } = await connect(t, 'faulty', { words });
  input.write(`${JSON.stringify({ ...NEVER, params: { name: 'stops-reading', arguments: { text: '' } } })}\n`);
  input.write(MUCH);
  // Read by itself, and held back behind that.
  input.end(MUCH);
  await finished(input);
  const warnings = () => entries.filter(({ level }) => level >= WARN);
  await clock.advanceInSteps(59_000, 1000);
  t.true(isAlive(pid));
  t.deepEqual(warnings(), []);
  await clock.advanceInSteps(1000, 20);
  // It does not see the end of its own input.
  await logged('ending the child: close-stdin');
  await clock.advanceInSteps(GRACE_MS, 20);
  t.is(await bridge.ended, undefined);
  await assertGone([pid]);
  t.like(warnings(), [{ code: 'ERR_UPSTREAM_TIMEOUT' }]);
  t.regex(warnings()[0]?.msg ?? '', /for 60000 ms .* of the last \d+ bytes .* raise --request-timeout/);
});

test('a parent that has died is noticed while the server takes nothing of what the client has said', async (t) => {
  const { input, parent, clock, logged, bridge, pid } = await connect(t, 'faulty', {
    words: ['--request-timeout', '0'],
  });
  input.write(`${JSON.stringify({ ...NEVER, params: { name: 'stops-reading', arguments: { text: '' } } })}\n`);
  input.write(MUCH);
  // Read by itself, and held back behind that.
  input.end(MUCH);
  await finished(input);
  clock.advance(LONG_MS);
  t.true(isAlive(pid));
  parent.isDead = true;
  clock.advance(1000);
  await logged('the client is gone');
  await clock.advanceInSteps(GRACE_MS, 20);
  t.is(await bridge.ended, undefined);
  await assertGone([pid]);
});

test('a parent that dies is no reason to end while the client says more', async (t) => {
  const { parent, clock, bridge, pid } = await connect(t, 'echo');
  parent.isDead = true;
  await clock.advanceInSteps(LONG_MS, 1000);
  t.true(isAlive(pid));
  t.is(await Promise.race([bridge.ended, 'goes on']), 'goes on');
});

test('a subscription does not hold up the end', async (t) => {
  const { input, clock, logged, bridge, pid } = await connect(t, 'modern-only');
  const listen = modern('sub', 'subscriptions/listen', { notifications: { toolsListChanged: true } });
  input.end(`${JSON.stringify({ jsonrpc: '2.0', ...listen })}\n`);
  await logged(INPUT_ENDED);
  await clock.advanceInSteps(100, 20);
  t.is(await bridge.ended, undefined);
  await assertGone([pid]);
});

/** What a client does that kills us in a moment. */
const ENDINGS = {
  'end of its pipe and SIGTERM': async ({ bridge, input, logged }) => {
    input.end();
    await logged(INPUT_ENDED);
    void bridge.shutdown('SIGTERM');
  },
  'SIGTERM and the end of its pipe': async ({ bridge, input }) => {
    void bridge.shutdown('SIGTERM');
    input.end();
  },
} satisfies Record<string, (connection: Connection) => Promise<void>>;

for (const [ending, end] of Object.entries(ENDINGS)) {
  test(`${ending}: a server that does not see the end of its input gets SIGTERM at once`, async (t) => {
    const connection = await connect(t, 'ignores-stdin-close');
    await end(connection);
    await connection.logged('ending the child: close-stdin');
    await connection.logged('ending the child: SIGTERM');
    connection.clock.advance(0);
    await assertGone([connection.pid]);
    t.false(connection.entries.some(({ msg }) => msg.includes('SIGKILL')));
  });

  test(`${ending}: what stays is killed before the client would kill the bridge`, async (t) => {
    const connection = await connect(t, 'ignores-sigterm');
    await end(connection);
    await connection.logged('ending the child: SIGTERM');
    connection.clock.advance(500);
    await assertGone([connection.pid]);
    t.pass();
  });
}

test('a client that has stopped reading is not waited for when it goes on with SIGTERM', async (t) => {
  const takesNothing = new Writable({ write: () => {} });
  const connection = await connect(t, 'echo', { output: takesNothing });
  await ENDINGS['end of its pipe and SIGTERM'](connection);
  let hasEnded = false;
  void connection.bridge.shutdown('SIGTERM').then(() => {
    hasEnded = true;
  });
  await waitFor(() => hasEnded, { message: 'the end of the bridge' });
  await assertGone([connection.pid]);
  t.pass();
});

test('Ctrl-C is for the client, too: that it ends as well takes no time from its server', async (t) => {
  const { bridge, clock, input, pid, entries, logged } = await connect(t, 'ignores-stdin-close');
  void bridge.shutdown('SIGINT');
  input.end();
  await finished(input);
  await logged('ending the child: close-stdin');
  clock.advance(1999);
  t.true(isAlive(pid));
  t.false(entries.some(({ msg }) => msg.includes('ending the child: SIGTERM')));
  clock.advance(1);
  await assertGone([pid]);
});
