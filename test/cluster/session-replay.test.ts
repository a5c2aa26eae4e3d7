import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { pino } from 'pino';
import { SessionReplay } from '../../src/cluster/session-replay.ts';
import { findProgressToken } from '../../src/mcp/classify/correlators.ts';
import { requestFrame } from '../../src/wire/write-message.ts';
import { MemoryStore } from '../support/memory-store.ts';

const LIMITS = { maxEntries: 100, ttlMs: 60_000 };
const NAME = 'session';

function create(limits = LIMITS) {
  const { logs } = new MemoryStore();
  const replay = new SessionReplay(NAME, logs, limits, pino({ level: 'silent' }));
  return { replay, logs, read: () => SessionReplay.read(logs, NAME) };
}

const callOf = (id: number | string) =>
  requestFrame(id, 'tools/call', { name: 'count', arguments: { to: 3 }, _meta: { progressToken: `token ${id}` } });
const event = (sequence: number) => ({ stream: 1, sequence, count: 1, bytes: Buffer.from(`event ${sequence}`) });

test('a call that waits for its answer is stored with the event after which its answer goes on', async (t) => {
  const { replay, read } = create();
  replay.opened(1, [7]);
  replay.moved(callOf(7), 'first');
  replay.moved(callOf(7), 'second');
  await turn();
  const { unended } = await read();
  const { requests, call } = unended.get(1) ?? {};
  t.deepEqual(requests, [7]);
  t.is(call?.lastEventId, 'second');
  t.is(call?.request.method, 'tools/call');
  t.is(findProgressToken(call?.request ?? callOf(0))?.value, 'token 7');
  t.regex(String(call?.request.bytes), /"name":"count"/);
  t.notRegex(String(call?.request.bytes), /arguments/);
});

test('how far a call has come is stored behind the events that have come with it', async (t) => {
  const { replay, logs } = create();
  replay.opened(1, [7]);
  await turn();
  replay.moved(callOf(7), 'first');
  // What is sent in a turn is added at its end.
  process.nextTick(() => replay.add(event(1)));
  replay.moved(callOf(7), 'second');
  await turn();
  const entries = (await logs.read(NAME)).map(String);
  t.regex(entries.at(-2) ?? '', /event 1/);
  t.regex(entries.at(-1) ?? '', /second/);
});

test('a call whose client has no stream to come back to is not stored until it has one', async (t) => {
  const { replay, read } = create();
  replay.moved(callOf(7), 'first');
  await turn();
  t.deepEqual(await read(), { runs: [], unended: new Map() });
  t.false(replay.isResumable(7));
  replay.opened(1, [7]);
  await turn();
  t.is((await read()).unended.get(1)?.call?.lastEventId, 'first');
  t.true(replay.isResumable(7));
});

test('a call that could go on elsewhere is said to need a stream, and whoever opens one learns when that is stored', async (t) => {
  const { replay, logs } = create();
  const { append } = logs;
  let isStored = false;
  logs.append = async (...args) => {
    await turn();
    await append(...args);
    isStored = true;
  };
  const needing: unknown[] = [];
  let opened: Promise<boolean> | undefined;
  replay.resumable = (id) => {
    needing.push(id);
    opened = replay.opened(1, [id]).then(() => isStored);
  };
  replay.moved(callOf(7), 'first');
  await turn();
  t.deepEqual(needing, [7]);
  t.true(await opened);
  t.is((await SessionReplay.read(logs, NAME)).unended.get(1)?.call?.lastEventId, 'first');
});

test('nobody waits for the answer to a call that has it', async (t) => {
  const { replay, read } = create();
  replay.opened(1, [7]);
  replay.moved(callOf(7), 'first');
  await turn();
  replay.over(callOf(7));
  replay.ended(1);
  await turn();
  t.deepEqual((await read()).unended, new Map());
  t.false(replay.isResumable(7));
});

test('of calls that share a stream nobody knows which are answered, so none goes on', async (t) => {
  const { replay, read } = create();
  replay.opened(1, [7, 8]);
  replay.moved(callOf(8), 'first');
  await turn();
  t.deepEqual((await read()).unended.get(1), { requests: [7, 8], call: undefined });
});

test('a call goes on although the store has dropped the beginning of its stream', async (t) => {
  const { replay, read } = create({ ...LIMITS, maxEntries: 2 });
  replay.opened(1, [7]);
  for (const sequence of [1, 2, 3]) replay.add(event(sequence));
  replay.moved(callOf(7), 'third');
  await turn();
  const { runs, unended } = await read();
  t.deepEqual(
    runs.map(({ sequence }) => sequence),
    [3],
  );
  t.deepEqual(unended.get(1)?.requests, [7]);
  t.is(unended.get(1)?.call?.lastEventId, 'third');
});

test('whoever goes on with a stream says so, and the call is known as before', async (t) => {
  const { replay, logs, read } = create();
  replay.opened(1, [7]);
  replay.moved(callOf(7), 'first');
  await turn();
  const heir = new SessionReplay(NAME, logs, LIMITS, pino({ level: 'silent' }));
  heir.opened(1, [7]);
  await turn();
  t.is((await read()).unended.get(1)?.call?.lastEventId, 'first');
  heir.moved(callOf(7), 'second');
  await turn();
  t.is((await read()).unended.get(1)?.call?.lastEventId, 'second');
});
