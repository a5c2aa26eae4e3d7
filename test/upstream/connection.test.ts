/** The rules by which a connection is handed from one owner to the next. */
import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import {
  type Arrival,
  type Guard,
  type LifeCheck,
  MAX_UNHEARD,
  MAX_UNHEARD_BYTES,
} from '../../src/upstream/connection.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { requestFrame, resultFrame } from '../../src/wire/write-message.ts';
import { FakeConnection } from '../support/fake-connections.ts';
import { FakeServerListener } from '../support/fake-peers.ts';
import { serverFrame } from '../support/frames.ts';

const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'exited');
const FAULT = { error: EXITED, kind: undefined, id: undefined };

const event = (n: number, text = '') => serverFrame({ method: 'x/event', params: { n, text } });
/** Everything that can go on has. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function open() {
  const connection = new FakeConnection();
  return { connection, server: connection.server, listener: new FakeServerListener() };
}

const frames = (listener: FakeServerListener) => listener.received.map(({ frame }) => frame);

test('what arrives while nobody listens is told in order, faults and the end included, and not in the assignment', async (t) => {
  const { connection, server, listener } = open();
  const [one, two] = [event(1), event(2)];
  server.fromServer(one);
  server.serverFault(FAULT);
  server.fromServer(two);
  server.serverClosed(EXITED);
  connection.listener = listener;
  t.deepEqual([listener.received, listener.faults, listener.closedWith], [[], [], []]);
  await settled();
  t.deepEqual(frames(listener), [one, two]);
  t.deepEqual(listener.faults, [FAULT]);
  t.deepEqual(listener.closedWith, [EXITED]);
});

test('nothing overtakes what waits', async (t) => {
  const { connection, server, listener } = open();
  const all = [event(1), event(2), event(3)];
  server.fromServer(all[0] ?? event(0));
  connection.listener = listener;
  server.fromServer(all[1] ?? event(0));
  listener.onFrame = ({ frame }) => {
    if (frame === all[0]) server.fromServer(all[2] ?? event(0));
  };
  await settled();
  t.deepEqual(frames(listener), all);
});

test('a listener that hands on in the middle of the telling hands on the rest', async (t) => {
  const { connection, server, listener } = open();
  const all = [event(1), event(2)];
  for (const one of all) server.fromServer(one);
  const next = new FakeServerListener();
  listener.onFrame = () => {
    connection.listener = next;
  };
  connection.listener = listener;
  await settled();
  t.deepEqual([frames(listener), frames(next)], [[all[0]], [all[1]]]);
});

test('a listener that lets go stops the telling, and the next one hears the rest', async (t) => {
  const { connection, server, listener } = open();
  const all = [event(1), event(2)];
  for (const one of all) server.fromServer(one);
  listener.onFrame = () => {
    connection.listener = undefined;
  };
  connection.listener = listener;
  await settled();
  t.is(listener.received.length, 1);
  const next = new FakeServerListener();
  connection.listener = next;
  await settled();
  t.deepEqual(frames(next), [all[1]]);
});

test('a pause stops the telling, and the next listener starts unpaused', async (t) => {
  const { connection, server, listener } = open();
  for (const n of [1, 2, 3]) server.fromServer(event(n));
  listener.onFrame = () => connection.pause();
  connection.listener = listener;
  await settled();
  t.is(listener.received.length, 1);
  t.true(connection.isPaused);
  connection.resume();
  await settled();
  t.is(listener.received.length, 2);
  const next = new FakeServerListener();
  connection.listener = next;
  t.false(connection.isPaused);
  await settled();
  t.is(next.received.length, 1);
});

for (const [title, count, text] of [
  ['many messages', MAX_UNHEARD, ''],
  ['large messages', 2, 'x'.repeat(MAX_UNHEARD_BYTES / 2)],
] as const) {
  test(`a server that says ${title} to nobody is not read until they have been told`, async (t) => {
    const { connection, server, listener } = open();
    for (let n = 1; n < count; n += 1) server.fromServer(event(n, text));
    t.false(connection.isPaused);
    server.fromServer(event(count, text));
    t.true(connection.isPaused);
    let wasPausedAtEnd = false;
    listener.onFrame = () => {
      wasPausedAtEnd = connection.isPaused;
    };
    connection.listener = listener;
    await settled();
    t.is(listener.received.length, count);
    t.true(wasPausedAtEnd);
    t.false(connection.isPaused);
  });
}

test('whoever looks at what arrives may take it, and all else is kept', async (t) => {
  const { connection, server, listener } = open();
  const [taken, kept] = [event(1), event(2)];
  const seen: Arrival['kind'][] = [];
  connection.onUnheard = (arrival) => {
    seen.push(arrival.kind);
    return arrival.kind === 'message' && arrival.frame === taken ? 'taken' : 'kept';
  };
  server.fromServer(taken);
  server.fromServer(kept);
  server.serverClosed(EXITED);
  connection.listener = listener;
  await settled();
  t.deepEqual(seen, ['message', 'message', 'end']);
  t.deepEqual(frames(listener), [kept]);
  t.deepEqual(listener.closedWith, [EXITED]);
});

test('whoever looks at what arrives no longer does once there has been a listener', (t) => {
  const { connection, server, listener } = open();
  const seen: unknown[] = [];
  connection.onUnheard = (arrival) => {
    seen.push(arrival);
    return 'kept';
  };
  connection.listener = listener;
  connection.listener = undefined;
  server.fromServer(event(1));
  t.deepEqual(seen, []);
});

test('what waits can be forgotten, but not the end', async (t) => {
  const { connection, server, listener } = open();
  for (let n = 0; n < MAX_UNHEARD; n += 1) server.fromServer(event(n));
  server.serverClosed(EXITED);
  connection.dropUnheard();
  t.false(connection.isPaused);
  connection.listener = listener;
  await settled();
  t.deepEqual(listener.received, []);
  t.deepEqual(listener.closedWith, [EXITED]);
});

test('after close nothing is told, not even what waited', async (t) => {
  const { connection, server, listener } = open();
  server.fromServer(event(1));
  connection.listener = listener;
  connection.close(EXITED);
  server.fromServer(event(2));
  server.serverClosed(EXITED);
  await settled();
  t.deepEqual([listener.received, listener.closedWith], [[], []]);
});

test('a connection that is given up is closed, and its end is told after what waited', async (t) => {
  const { connection, server, listener } = open();
  server.fromServer(event(1));
  connection.giveUp(EXITED);
  t.deepEqual(connection.closedWith, [EXITED]);
  connection.listener = listener;
  await settled();
  t.is(listener.received.length, 1);
  t.deepEqual(listener.closedWith, [EXITED]);
});

test('a listener that closes the connection in the middle of the telling hears nothing more', async (t) => {
  const { connection, server, listener } = open();
  for (const n of [1, 2]) server.fromServer(event(n));
  server.serverClosed(EXITED);
  listener.onFrame = () => connection.close(EXITED);
  connection.listener = listener;
  await settled();
  t.is(listener.received.length, 1);
  t.deepEqual(listener.closedWith, []);
});

/** Takes answers whose id is `asked`, and keeps what it is told. */
class Check implements LifeCheck {
  readonly told: unknown[] = [];

  sent(frame: Frame): void {
    this.told.push(frame.method);
  }

  takes(frame: Frame): boolean {
    this.told.push(frame.id);
    return frame.id === 'asked';
  }

  paused(): void {
    this.told.push('paused');
  }

  resumed(): void {
    this.told.push('resumed');
  }

  ended(): void {
    this.told.push('ended');
  }
}

test('a check is told of all that passes, and its own question and answer concern nobody else', async (t) => {
  const { connection, server, listener } = open();
  const check = new Check();
  connection.check = check;
  const seen: unknown[] = [];
  connection.onUnheard = (arrival) => {
    seen.push(arrival.kind);
    return 'kept';
  };
  connection.ask(requestFrame('asked', 'ping'));
  server.fromServer(resultFrame('asked', {}));
  connection.listener = listener;
  connection.send(requestFrame(1, 'tools/call'));
  server.fromServer(resultFrame(1, {}));
  server.fromServer(resultFrame('asked', {}));
  connection.pause();
  connection.resume();
  await settled();
  t.deepEqual(check.told, ['asked', 'tools/call', 1, 'asked', 'paused', 'resumed']);
  t.deepEqual(
    connection.sent.map(({ frame }) => frame.method),
    ['ping', 'tools/call'],
  );
  t.deepEqual(
    frames(listener).map(({ id }) => id),
    [1],
  );
  t.deepEqual(seen, []);
});

test('a check of a connection that is not read is told so at once', (t) => {
  const { connection, server } = open();
  for (let n = 0; n < MAX_UNHEARD; n += 1) server.fromServer(event(n));
  const check = new Check();
  connection.check = check;
  t.deepEqual(check.told, ['paused']);
});

for (const [how, end] of [
  ['the server ends it', (connection: FakeConnection) => connection.server.serverClosed(EXITED)],
  ['it is closed', (connection: FakeConnection) => connection.close(EXITED)],
  ['it is given up', (connection: FakeConnection) => connection.giveUp(EXITED)],
] as const) {
  test(`a check ends with its connection when ${how}, and is told nothing more`, (t) => {
    const { connection, server, listener } = open();
    const check = new Check();
    connection.check = check;
    connection.listener = listener;
    end(connection);
    connection.send(requestFrame(1, 'tools/call'));
    server.fromServer(resultFrame(1, {}));
    connection.close(EXITED);
    t.deepEqual(check.told, ['ended']);
  });
}

test('capacity that returns while nobody listens is told to the next listener', async (t) => {
  const { connection, server, listener } = open();
  server.serverDrained();
  connection.listener = listener;
  await settled();
  t.is(listener.drains, 1);
});

// ---- a guard

/** Passes everything, and keeps what it saw. */
function watched(connection: FakeConnection) {
  const seen: string[] = [];
  const guard: Guard = {
    sends: (frame, call) => {
      seen.push(`sends ${frame.method}`);
      return connection.pass(frame, call);
    },
    receives: (frame) => {
      seen.push(`receives ${frame.method}`);
      return frame.method === 'x/secret' ? undefined : frame;
    },
    faults: ({ id }) => id === 'mine',
    ended: () => void seen.push('ended'),
  };
  connection.guard = guard;
  return { guard, seen };
}

test('a guard sees what passes in both directions, and keeps what is for nobody else', (t) => {
  const { connection, server, listener } = open();
  const { seen } = watched(connection);
  connection.listener = listener;
  connection.hasCapacity = false;
  t.false(connection.send(requestFrame(1, 'x/do')));
  server.fromServer(serverFrame({ method: 'x/secret' }));
  const told = serverFrame({ method: 'x/event' });
  server.fromServer(told);
  server.serverFault({ ...FAULT, id: 'mine' });
  server.serverFault(FAULT);
  t.deepEqual(seen, ['sends x/do', 'receives x/secret', 'receives x/event']);
  t.is(connection.sent.length, 1);
  t.deepEqual(frames(listener), [told]);
  t.deepEqual(listener.faults, [FAULT]);
});

test('a guard stays when the connection is handed over, and answers in the place of the server', async (t) => {
  const { connection, server } = open();
  const { guard, seen } = watched(connection);
  const first = serverFrame({ method: 'x/first' });
  server.fromServer(first);
  const answer = resultFrame(1, {});
  guard.sends = (_, call) => {
    connection.deliver(answer, call);
    return true;
  };
  const next = new FakeServerListener();
  connection.listener = next;
  connection.send(requestFrame(1, 'x/do'));
  await settled();
  t.deepEqual(frames(next), [first, answer], 'nothing overtakes what waits');
  t.is(connection.sent.length, 0);
  t.deepEqual(seen, ['receives x/first']);
});

test('a guard is told of the end last, and once', (t) => {
  for (const end of [
    (connection: FakeConnection) => connection.close(EXITED),
    (connection: FakeConnection) => connection.server.serverClosed(EXITED),
  ]) {
    const { connection, listener } = open();
    const { seen } = watched(connection);
    connection.listener = listener;
    end(connection);
    connection.close(EXITED);
    t.deepEqual(seen, ['ended']);
  }
});

test('questions of a life check bypass the guard', (t) => {
  const { connection, listener } = open();
  const { seen } = watched(connection);
  connection.listener = listener;
  connection.ask(requestFrame('ping', 'ping'));
  t.is(connection.sent.length, 1);
  t.deepEqual(seen, []);
});
