import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import type { CarrierListener } from '../../../../src/upstream/duplex/carrier.ts';
import type { ChildSlot } from '../../../../src/upstream/stdio/child-limit.ts';
import {
  type ProcessCarrier,
  ReplaceableCarrier,
} from '../../../../src/upstream/stdio/replacing/replaceable-carrier.ts';
import type { Frame } from '../../../../src/wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../../../src/wire/write-message.ts';
import { collectLog } from '../../../process/collected-log.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const GRACE_MS = 4000;

/** A process that answers its handshake and lists by itself, and everything else when it is told to. */
class FakeProcess implements ProcessCarrier {
  readonly sent: Frame[] = [];
  readonly isFull = false;
  readonly listener: CarrierListener;
  readonly process: ProcessCarrier['process'];
  readonly #tools: string;
  #exit: () => void = () => {};
  ended: 'no' | 'replaced' | 'closed' = 'no';

  constructor(listener: CarrierListener, tools: string) {
    this.listener = listener;
    this.#tools = tools;
    this.process = {
      lastHeardMs: 0,
      gone: new Promise((resolve) => {
        this.#exit = resolve;
      }),
    };
  }

  send(frame: Frame): boolean {
    this.sent.push(frame);
    const { id, method } = frame;
    if (id === undefined) return true;
    const offer = { protocolVersion: '2025-11-25', capabilities: { tools: {} } };
    if (method === 'initialize') queueMicrotask(() => this.answer(resultFrame(id, offer)));
    if (method === 'tools/list') queueMicrotask(() => this.answer(resultFrame(id, { tools: [{ name: this.#tools }] })));
    return true;
  }

  answer(frame: Frame): void {
    if (this.ended === 'no') this.listener.received(frame);
  }

  pause(): void {}
  resume(): void {}

  close(): void {
    this.ended = 'closed';
    this.#exit();
  }

  replace(): void {
    this.ended = 'replaced';
  }

  /** Nothing of the process runs anymore. */
  exit(): void {
    this.#exit();
  }

  get methods(): readonly (string | undefined)[] {
    return this.sent.map(({ method }) => method);
  }
}

const SLOT: ChildSlot = { free: undefined, fill: () => {}, release: () => {} };

function open(t: ExecutionContext) {
  const clock = new FakeClock();
  const { log } = collectLog();
  const processes: FakeProcess[] = [];
  const received: Frame[] = [];
  const faults: BridgeError[] = [];
  const ends: BridgeError[] = [];
  let tools = 'one';
  let refusal: BridgeError | undefined;
  let ids = 0;
  const carrier = new ReplaceableCarrier(
    {
      processes: {
        name: 'node server.js',
        reserve: () => SLOT,
        start(_slot, listener) {
          if (refusal !== undefined) throw refusal;
          const process = new FakeProcess(listener, tools);
          processes.push(process);
          return process;
        },
      },
      graceMs: GRACE_MS,
      handshakeTimeoutMs: 60_000,
      clientInfo: { name: 'test', version: '1' },
      deps: { clock, log, randomId: () => `own-${++ids}` },
      ended: () => {},
    },
    SLOT,
    {
      received: (frame) => received.push(frame),
      faulted: ({ error }) => faults.push(error),
      drained: () => {},
      ended: (error) => ends.push(error),
    },
  );
  t.teardown(() => {
    carrier.close(new BridgeError('ERR_SESSION_CLOSED', 'the test is over'));
    if (clock.pendingTimers > 0) throw new Error(`${clock.pendingTimers} timers are left behind`);
  });
  const send = (frame: Frame) => carrier.send(frame, undefined);
  return {
    carrier,
    clock,
    processes,
    received,
    faults,
    ends,
    send,
    /** What further processes list, or why none starts. */
    edit(changed: string | BridgeError) {
      if (changed instanceof BridgeError) refusal = changed;
      else [tools, refusal] = [changed, undefined];
    },
    async shakeHands() {
      send(requestFrame(0, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} }));
      await settle();
      send(notificationFrame('notifications/initialized'));
    },
  };
}

/** Lets everything happen that waits for nothing but its turn. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const call = (id: number): Frame => requestFrame(id, 'tools/call', { name: 'work' });

test('a call that is open ends in its process, and one that comes later waits for the next', async (t) => {
  const { carrier, processes, received, faults, send, shakeHands } = open(t);
  await shakeHands();
  const [first] = processes;
  send(call(1));
  const restarted = carrier.restart();
  send(call(2));
  await settle();
  t.is(first?.ended, 'no');
  t.true(carrier.isAboutToStart);
  first?.answer(resultFrame(1, {}));
  t.is(first?.ended, 'replaced');
  await settle();
  t.is(processes.length, 1, 'the next process waits for the end of the last one');
  first?.exit();
  t.deepEqual(await restarted, { kind: 'ready' });
  t.deepEqual(processes[1]?.methods.slice(0, 3), ['initialize', 'notifications/initialized', 'tools/call']);
  processes[1]?.answer(resultFrame(2, {}));
  t.deepEqual(
    received.map(({ id }) => id),
    [0, 1, 2],
  );
  t.deepEqual(faults, []);
});

test('after the grace, calls fail and what only reads is sent to the next process', async (t) => {
  const { carrier, clock, processes, faults, send, shakeHands } = open(t);
  await shakeHands();
  send(call(1));
  send(requestFrame(2, 'resources/read', { uri: 'x:a' }));
  void carrier.restart();
  await settle();
  clock.advance(GRACE_MS);
  t.deepEqual(
    faults.map(({ code }) => code),
    ['ERR_UPSTREAM_RESTARTED'],
  );
  processes[0]?.exit();
  await settle();
  t.true(processes[1]?.methods.includes('resources/read'));
  t.false(processes[1]?.methods.includes('tools/call'));
});

test('a process that does not show its lists is not waited for long', async (t) => {
  const { carrier, clock, processes, shakeHands } = open(t);
  await shakeHands();
  const [first] = processes;
  if (first !== undefined) first.answer = () => {};
  void carrier.restart();
  await settle();
  clock.advance(999);
  t.is(first?.ended, 'no');
  clock.advance(1);
  t.is(first?.ended, 'replaced');
});

test('the client is told of lists that differ and of no others, also over a process that did not start', async (t) => {
  const { carrier, processes, received, edit, shakeHands } = open(t);
  await shakeHands();
  const restart = async () => {
    const restarted = carrier.restart();
    await settle();
    processes.at(-1)?.exit();
    const outcome = await restarted;
    await settle();
    return outcome.kind;
  };
  const changes = () => received.filter(({ method }) => method === 'notifications/tools/list_changed').length;
  t.is(await restart(), 'ready');
  t.is(changes(), 0);
  edit(new BridgeError('ERR_UPSTREAM_SPAWN', 'broken'));
  t.is(await restart(), 'failed');
  edit('one');
  t.is(await restart(), 'ready');
  t.is(changes(), 0);
  edit('two');
  t.is(await restart(), 'ready');
  t.is(changes(), 1);
});

test('while no process starts, a call is told why, and each call tries again', async (t) => {
  const { carrier, processes, faults, ends, edit, send, shakeHands } = open(t);
  await shakeHands();
  edit(new BridgeError('ERR_UPSTREAM_EXITED', 'Its last words: no parser.'));
  const restarted = carrier.restart();
  await settle();
  send(call(1));
  processes[0]?.exit();
  t.is((await restarted).kind, 'failed');
  send(call(2));
  await settle();
  t.is(faults.length, 2);
  for (const { message } of faults) t.regex(message, /no parser\. It is started again when a watched file changes/);
  edit('one');
  send(call(3));
  await settle();
  t.true(processes[1]?.methods.includes('tools/call'));
  t.deepEqual(ends, []);
});

test('a connection whose server has answered nothing ends with its process', async (t) => {
  const { processes, ends, send } = open(t);
  send(call(1));
  processes[0]?.listener.ended(new BridgeError('ERR_UPSTREAM_EXITED', 'gone'));
  t.deepEqual(
    ends.map(({ message }) => message),
    ['gone'],
  );
});

test('a handshake that is open moves to the next process at once', async (t) => {
  const { carrier, processes, received, faults, send } = open(t);
  const [first] = processes;
  if (first !== undefined) first.answer = () => {};
  send(requestFrame(0, 'initialize', {}));
  const restarted = carrier.restart();
  t.is(first?.ended, 'replaced');
  first?.exit();
  t.deepEqual(await restarted, { kind: 'ready' });
  await settle();
  t.deepEqual(
    received.map(({ id }) => id),
    [0],
  );
  t.deepEqual(faults, []);
});

test('a change during a start leaves the process time to serve, and is followed by one more restart', async (t) => {
  const { carrier, clock, processes, shakeHands } = open(t);
  await shakeHands();
  void carrier.restart();
  await settle();
  processes[0]?.exit();
  while (processes.length < 2) await Promise.resolve();
  const again = carrier.restart();
  clock.advance(5000);
  t.is(processes[1]?.ended, 'no');
  await settle();
  t.is(processes[1]?.ended, 'replaced');
  processes[1]?.exit();
  t.deepEqual(await again, { kind: 'ready' });
  t.is(processes.length, 3);
});

test('only so many messages wait, and a call that is withdrawn meanwhile is never sent', async (t) => {
  const { carrier, processes, faults, send, shakeHands } = open(t);
  await shakeHands();
  const restarted = carrier.restart();
  await settle();
  for (let id = 1; id <= 1024; id += 1) send(call(id));
  t.true(carrier.isFull);
  t.false(send(call(1025)));
  await settle();
  t.deepEqual(
    faults.map(({ code }) => code),
    ['ERR_UPSTREAM_STARTING'],
  );
  send(notificationFrame('notifications/cancelled', { requestId: 7 }));
  processes[0]?.exit();
  await restarted;
  const ids = processes[1]?.sent.filter(({ method }) => method === 'tools/call').map(({ id }) => id);
  t.is(ids?.length, 1023);
  t.false(ids?.includes(7));
  t.false(processes[1]?.methods.includes('notifications/cancelled'));
});

test('an answer with an error counts as the end of a call', async (t) => {
  const { carrier, processes, send, shakeHands } = open(t);
  await shakeHands();
  send(call(1));
  void carrier.restart();
  await settle();
  processes[0]?.answer(errorFrame(1, { code: -32603, message: 'failed' }));
  t.is(processes[0]?.ended, 'replaced');
});
