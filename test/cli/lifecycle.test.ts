import { EventEmitter } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { announceUrls, listenForSignals, type RunningBridge, superviseBridge } from '../../src/cli/lifecycle.ts';
import { BridgeError } from '../../src/errors.ts';

/** Promise.withResolvers, which Node has from version 22 on. */
function deferred<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<T>((resolveIt, rejectIt) => {
    resolve = resolveIt;
    reject = rejectIt;
  });
  return { promise, resolve, reject };
}

/** A bridge that does nothing but say what was asked of it, and a process that can be sent signals. */
function play(t: ExecutionContext, start?: () => Promise<RunningBridge>, hangUp = () => 'ends' as 'ends' | 'handled') {
  const events = new EventEmitter();
  const asked: string[] = [];
  const logged: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => logged.push(JSON.parse(line)) });
  const shutdown = deferred<void>();
  const ended = deferred<BridgeError | undefined>();
  const bridge: RunningBridge = {
    update: undefined,
    reopen: () => undefined,
    servers: [],
    statusUrl: undefined,
    urls: [
      { label: 'Streamable HTTP', url: 'http://127.0.0.1:1/mcp' },
      { label: 'HTTP+SSE', url: 'http://127.0.0.1:1/sse' },
    ],
    async shutdown(signal) {
      asked.push(`shutdown by ${signal}`);
      await shutdown.promise;
    },
    killNow: () => asked.push('killNow'),
    ended: ended.promise,
  };
  let late: () => void = () => undefined;
  const exit = superviseBridge({
    whenLate: (isLate) => {
      late = isLate;
    },
    start: start ?? (async () => bridge),
    hangUp,
    announce: (announced) => announceUrls(announced, log),
    events,
    log,
  });
  t.teardown(() => events.removeAllListeners());
  const started = () => new Promise(setImmediate);
  return { events, asked, logged, bridge, shutdown, ended, exit, started, isLate: () => late() };
}

test('logs one line for each endpoint once it listens', async (t) => {
  const { logged, started } = play(t);
  await started();
  t.deepEqual(
    logged.map(({ msg }) => msg),
    ['Streamable HTTP  http://127.0.0.1:1/mcp', 'HTTP+SSE         http://127.0.0.1:1/sse'],
  );
  t.deepEqual(logged[0]?.endpoint, { label: 'Streamable HTTP', url: 'http://127.0.0.1:1/mcp' });
});

test('a signal is told with what is waited for, and the second one as the end', async (t) => {
  const { events, logged, exit, started } = play(t);
  await started();
  events.emit('SIGTERM');
  events.emit('SIGINT');
  await exit;
  t.deepEqual(
    logged.slice(2).map(({ msg }) => msg),
    ['SIGTERM: shutting down; waiting for open calls (signal again to exit now)', 'SIGINT again: exiting now'],
  );
});

test('a bridge that does not end in time after a signal is left, with its processes ended', async (t) => {
  const { events, asked, logged, exit, started, isLate } = play(t);
  await started();
  events.emit('SIGTERM');
  isLate();
  t.is(await exit, 70);
  t.deepEqual(asked, ['shutdown by SIGTERM', 'killNow']);
  t.regex(String(logged.at(-1)?.msg), /shutdown took too long/);
});

test('a bridge that never starts is left after a signal as well', async (t) => {
  const { events, exit, isLate } = play(t, () => new Promise(() => undefined));
  events.emit('SIGTERM');
  isLate();
  t.is(await exit, 70);
});

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
  test(`${signal} lets the bridge shut down and then exits with 0`, async (t) => {
    const { events, asked, shutdown, exit, started } = play(t);
    await started();
    events.emit(signal);
    t.deepEqual(asked, [`shutdown by ${signal}`]);
    shutdown.resolve();
    t.is(await exit, 0);
  });
}

test('a second signal kills what is left and exits at once with the number of the signal', async (t) => {
  const { events, asked, exit, started } = play(t);
  await started();
  events.emit('SIGTERM');
  events.emit('SIGINT');
  t.is(await exit, 130);
  t.deepEqual(asked, ['shutdown by SIGTERM', 'killNow']);
});

test('a terminal that closes hangs up more than once; that is no hurry', async (t) => {
  const { events, asked, logged, shutdown, exit, started } = play(t);
  await started();
  for (const signal of ['SIGHUP', 'SIGHUP']) events.emit(signal);
  t.deepEqual(asked, ['shutdown by SIGHUP']);
  t.is(logged.filter(({ msg }) => /^SIGHUP/.test(String(msg))).length, 1);
  shutdown.resolve();
  t.is(await exit, 0);
});

test('a second SIGTERM exits with 143', async (t) => {
  const { events, exit, started } = play(t);
  await started();
  events.emit('SIGTERM');
  events.emit('SIGTERM');
  t.is(await exit, 143);
});

test('a signal during the start takes effect when the bridge is up', async (t) => {
  const begun = deferred<RunningBridge>();
  const { events, asked, bridge, shutdown, exit, logged, started } = play(t, () => begun.promise);
  events.emit('SIGINT');
  t.deepEqual(asked, []);
  begun.resolve(bridge);
  await started();
  t.deepEqual(asked, ['shutdown by SIGINT']);
  shutdown.resolve();
  t.is(await exit, 0);
  t.false(
    logged.some(({ endpoint }) => endpoint !== undefined),
    'announces no endpoint it is about to close',
  );
});

test('a second signal during the start exits at once', async (t) => {
  const { events, exit } = play(t, () => new Promise(() => undefined));
  events.emit('SIGINT');
  events.emit('SIGINT');
  t.is(await exit, 130);
});

test('a bridge that comes up after the end was decided is killed', async (t) => {
  const begun = deferred<RunningBridge>();
  const { events, asked, bridge, exit, started } = play(t, () => begun.promise);
  events.emit('SIGINT');
  events.emit('SIGINT');
  await exit;
  begun.resolve(bridge);
  await started();
  t.deepEqual(asked, ['killNow']);
});

test('a bridge that cannot start ends the process with the exit code of its error', async (t) => {
  const { exit, logged } = play(t, () => Promise.reject(new BridgeError('ERR_CONFIG_LISTEN', 'Port 1 is taken.')));
  t.is(await exit, 69);
  t.like(logged[0], { level: 60, code: 'ERR_CONFIG_LISTEN', msg: 'Port 1 is taken.' });
  t.is(logged[0]?.err, undefined, 'no stack for an error that explains itself');
});

test('an unexpected failure to start is our bug: exit code 70, with the stack in the log', async (t) => {
  const { exit, logged } = play(t, () => Promise.reject(new TypeError('x is not a function')));
  t.is(await exit, 70);
  t.like(logged[0], { code: 'ERR_INTERNAL', err: { message: 'x is not a function' } });
  t.regex(JSON.stringify(logged[0]?.err), /lifecycle\.test/);
});

test('a bridge that fails by itself ends the process', async (t) => {
  const { asked, ended, exit, logged, started } = play(t);
  await started();
  ended.resolve(new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'The server keeps exiting.'));
  t.is(await exit, 70);
  t.deepEqual(asked, ['killNow']);
  t.like(logged.at(-1), { level: 60, code: 'ERR_UPSTREAM_CRASH_LOOP' });
});

test('a shutdown that fails exits with 70', async (t) => {
  const { events, shutdown, exit, started } = play(t);
  await started();
  events.emit('SIGTERM');
  shutdown.reject(new Error('stuck'));
  t.is(await exit, 70);
});

for (const event of ['uncaughtException', 'unhandledRejection']) {
  test(`an ${event} is logged with its stack, kills the children and exits with 70`, async (t) => {
    const { events, asked, exit, logged, started } = play(t);
    await started();
    events.emit(event, new RangeError('too deep'));
    t.is(await exit, 70);
    t.deepEqual(asked, ['killNow']);
    t.like(logged.at(-1), { level: 60, code: 'ERR_INTERNAL', err: { type: 'RangeError', message: 'too deep' } });
  });
}

test('whatever ends the process, the children are killed', async (t) => {
  const { events, asked, started } = play(t);
  await started();
  events.emit('exit', 0);
  t.deepEqual(asked, ['killNow']);
});

test('a bridge whose work is done ends the process with 0', async (t) => {
  const { asked, ended, exit, started } = play(t);
  await started();
  ended.resolve(undefined);
  t.is(await exit, 0);
  t.deepEqual(asked, ['killNow']);
});

test('the first signal interrupts a job that ends by itself, a second one ends the process', (t) => {
  const events = new EventEmitter();
  const exited: number[] = [];
  const interruption = listenForSignals(events, (code) => exited.push(code));
  t.false(interruption.signal.aborted);
  t.is(interruption.exitCode, undefined);
  events.emit('SIGINT');
  t.true(interruption.signal.aborted);
  t.is(interruption.exitCode, 130);
  events.emit('SIGHUP');
  t.deepEqual(exited, [], 'a terminal that closes is in no hurry');
  events.emit('SIGTERM');
  t.deepEqual(exited, [130]);
});

test('a hang-up that means something else ends nothing, and the next one may', async (t) => {
  let meaning: 'ends' | 'handled' = 'handled';
  const { events, asked, started } = play(t, undefined, () => meaning);
  await started();
  events.emit('SIGHUP');
  t.deepEqual(asked, []);
  meaning = 'ends';
  events.emit('SIGHUP');
  t.deepEqual(asked, ['shutdown by SIGHUP']);
});
