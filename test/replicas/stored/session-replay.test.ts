import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { pino } from 'pino';
import { findProgressToken } from '../../../src/mcp/classify/correlators.ts';
import type { StoredReplay } from '../../../src/relay/sessions/session-storage.ts';
import type { LogStore } from '../../../src/replicas/store/store.ts';
import { SessionReplay, YOUNG_MS } from '../../../src/replicas/stored/session-replay.ts';
import { requestFrame } from '../../../src/wire/write-message.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { MemoryStore } from '../../support/memory-store.ts';

const LIMITS = { maxEntries: 100, ttlMs: 60_000 };
const NAME = 'session';

function create(limits = LIMITS) {
  const { logs } = new MemoryStore();
  const clock = new FakeClock();
  const replay = createReplay(logs, limits, clock);
  return { replay, logs, clock, read: () => SessionReplay.read(logs, NAME) };
}

function createReplay(logs: LogStore, limits = LIMITS, clock = new FakeClock(), token = 1) {
  return new SessionReplay({ name: NAME, token, logs, limits, clock, log: pino({ level: 'silent' }) });
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
  t.deepEqual(await read(), { runs: [], waiting: [], unended: new Map() });
  t.false(replay.isResumable(7));
  replay.opened(1, [7]);
  await turn();
  t.is((await read()).unended.get(1)?.call?.lastEventId, 'first');
  t.true(replay.isResumable(7));
});

test('a call that could go on elsewhere is said to need a stream, and whoever opens one learns when that is stored', async (t) => {
  const { replay, logs, read } = create();
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
  t.is((await read()).unended.get(1)?.call?.lastEventId, 'first');
});

test('a stream whose call turns out to be one that can go on waits until that is stored', async (t) => {
  const { replay, read } = create();
  const opened = replay.opened(1, [7]);
  // As what comes with the first event that the server sends on the call.
  replay.moved(callOf(7), 'first');
  await opened;
  t.is((await read()).unended.get(1)?.call?.lastEventId, 'first');
});

test('a stream that its client has already waits once, until it is stored that its call can go on', async (t) => {
  const { replay, read } = create();
  const held: [number, Promise<void>][] = [];
  replay.hold = (...stream) => held.push(stream);
  await replay.opened(1, [7]);
  t.deepEqual(await read(), { runs: [], waiting: [], unended: new Map() });
  replay.moved(callOf(7), 'first');
  // Before what the event says leaves, which is at the end of the turn.
  const [[stream, stored] = []] = held;
  t.is(stream, 1);
  await stored;
  t.is((await read()).unended.get(1)?.call?.lastEventId, 'first');
  replay.moved(callOf(7), 'second');
  t.is(held.length, 1);
});

test('nobody waits for a store that does not answer, nor for what is not stored yet', async (t) => {
  const { replay, logs, clock } = create();
  await replay.opened(1, [7]);
  t.deepEqual(await logs.read(NAME), []);
  logs.append = () => new Promise(() => {});
  replay.moved(callOf(8), 'first');
  const opened = replay.opened(2, [8]);
  await turn();
  await turn();
  clock.advance(1000);
  await t.notThrowsAsync(opened);
});

test('nobody waits for the answer to a call that has it', async (t) => {
  const { replay, read } = create();
  replay.opened(1, [7]);
  replay.moved(callOf(7), 'first');
  await turn();
  replay.over(callOf(7));
  replay.ended(1, 'sent');
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

test('a request of a batch is not said to go on elsewhere', async (t) => {
  const { replay } = create();
  replay.opened(1, [7, 8]);
  replay.moved(callOf(8), 'first');
  await turn();
  t.false(replay.isResumable(8));
  replay.ended(1, 'sent');
  replay.opened(2, [8]);
  await turn();
  t.true(replay.isResumable(8));
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
  const heir = createReplay(logs, LIMITS, new FakeClock(), 2);
  heir.continued(1, 7);
  await turn();
  t.is((await read()).unended.get(1)?.call?.lastEventId, 'first');
  heir.moved(callOf(7), 'second');
  await turn();
  t.is((await read()).unended.get(1)?.call?.lastEventId, 'second');
});

test('what a call says that is over at once is not stored', async (t) => {
  const { replay, clock, logs } = create();
  replay.opened(1, [7]);
  replay.add(event(1));
  replay.ended(1, 'sent');
  clock.advance(YOUNG_MS);
  await turn();
  t.deepEqual(await logs.read(NAME), []);
  t.is(clock.pendingTimers, 0);
});

test('what a call says that nobody can go on with is stored when it takes a while', async (t) => {
  const { replay, clock, read } = create();
  replay.opened(1, [7]);
  replay.add(event(1));
  await turn();
  t.deepEqual(await read(), { runs: [], waiting: [], unended: new Map() });
  clock.advance(YOUNG_MS);
  replay.add(event(2));
  await turn();
  const { runs, unended } = await read();
  t.deepEqual(
    runs.map(({ sequence }) => sequence),
    [1, 2],
  );
  t.deepEqual(unended.get(1), { requests: [7], call: undefined });
  replay.ended(1, 'sent');
  await turn();
  t.deepEqual((await read()).unended, new Map());
});

test('what a client has missed is stored at once when its stream ends', async (t) => {
  const { replay, read } = create();
  replay.opened(1, [7]);
  replay.add(event(1));
  replay.ended(1, 'unsent');
  await turn();
  const { runs, unended } = await read();
  t.is(runs.length, 1);
  t.deepEqual(unended, new Map());
});

test('what was said is stored in its order when the call turns out to be one that can go on', async (t) => {
  const { replay, logs } = create();
  replay.opened(1, [7]);
  replay.add(event(1));
  replay.moved(callOf(7), 'first');
  await turn();
  const entries = (await logs.read(NAME)).map((entry) => entry.toString('utf8', 26));
  t.deepEqual(entries.slice(0, 2), ['[7]', 'event 1']);
  t.regex(entries[2] ?? '', /first/);
});

test('a stream that another replica has stored is said to have ended, however soon', async (t) => {
  const { replay, logs, read } = create();
  replay.opened(1, [7]);
  replay.moved(callOf(7), 'first');
  await turn();
  const heir = createReplay(logs, LIMITS, new FakeClock(), 2);
  heir.continued(1, 7);
  heir.ended(1, 'sent');
  await turn();
  t.deepEqual((await read()).unended, new Map());
});

test('much that is said at once is stored before it is kept in memory', async (t) => {
  const { replay, read } = create();
  replay.opened(1, [7]);
  replay.add({ ...event(1), bytes: Buffer.alloc(300_000) });
  await turn();
  t.is((await read()).runs.length, 1);
});

test('whoever hands the session over stores what is left', async (t) => {
  const { replay, clock, read } = create();
  replay.opened(1, [7]);
  replay.add(event(1));
  await replay.flushed();
  t.is((await read()).runs.length, 1);
  t.is(clock.pendingTimers, 0);
});

test('nothing is stored of a session that is over or another replica has', async (t) => {
  const { replay, clock, logs } = create();
  replay.opened(1, [7]);
  replay.add(event(1));
  replay.close();
  replay.add(event(2));
  void replay.opened(2, [8]);
  replay.add({ ...event(1), stream: 2 });
  t.is(clock.pendingTimers, 0);
  clock.advance(YOUNG_MS);
  await turn();
  t.deepEqual(await logs.read(NAME), []);
});

/** A stream with events, and how far its call has come after them. */
async function storeCall(): Promise<{ readonly entries: readonly Buffer[]; readonly logs: LogStore }> {
  const { replay, logs } = create();
  void replay.opened(1, [7]);
  for (const sequence of [1, 2]) {
    replay.moved(callOf(7), `event ${sequence}`);
    await turn();
    replay.add(event(sequence));
    await turn();
  }
  return { entries: await logs.read(NAME), logs };
}

test('entries that somebody has exchanged or repeated in the store are replayed as they were said', async (t) => {
  const { entries, logs } = await storeCall();
  t.true(entries.length >= 4);
  const expected = await SessionReplay.read(logs, NAME);
  t.deepEqual(
    expected.runs.map(({ sequence }) => sequence),
    [1, 2],
  );
  t.is(expected.unended.get(1)?.call?.lastEventId, 'event 2');
  for (const changed of [[...entries].reverse(), [...entries, ...entries.slice(0, 2)]]) {
    const read = await SessionReplay.read({ ...logs, read: async () => changed }, NAME);
    t.deepEqual(read.runs, expected.runs);
    t.is(read.unended.get(1)?.call?.lastEventId, 'event 2');
  }
});

test('what a former owner stores late stands before what the next one has said', async (t) => {
  const { logs } = new MemoryStore();
  const [former, next] = [1, 2].map((token) => createReplay(logs, LIMITS, new FakeClock(), token));
  former?.add(event(1));
  await turn();
  next?.add(event(3));
  await turn();
  former?.add(event(2));
  await turn();
  const { runs } = await SessionReplay.read(logs, NAME);
  t.deepEqual(
    runs.map(({ sequence }) => sequence),
    [1, 2, 3],
  );
});

test('what waits for its client is stored until the client was told', async (t) => {
  const { replay, read } = create();
  for (const text of ['first', 'second']) replay.waits(Buffer.from(text));
  await turn();
  t.deepEqual((await read()).waiting.map(String), ['first', 'second']);
  replay.add({ stream: 0, sequence: 1, count: 2, bytes: Buffer.from('both') });
  replay.told();
  replay.waits(Buffer.from('third'));
  await turn();
  const { waiting, runs } = await read();
  t.deepEqual(waiting.map(String), ['third']);
  t.is(runs.length, 1);
});

/** What a session still has to be told, as its peer knows it. */
function keep(replay: SessionReplay, kept: Partial<StoredReplay>): void {
  replay.kept = () => ({ runs: [], waiting: [], unended: new Map(), ...kept });
}

const sequencesIn = ({ runs }: StoredReplay): readonly number[] => runs.map(({ sequence }) => sequence);

test('what is still kept is stored again when the store has lost it, once, with how far calls have come', async (t) => {
  const { replay, logs, read } = create();
  replay.opened(1, [7]);
  replay.add(event(1));
  replay.moved(callOf(7), 'first');
  await turn();
  await logs.remove(NAME);
  // What is stored before the loss is noticed is not stored twice.
  replay.add(event(2));
  replay.waits(Buffer.from('waiting'));
  await turn();
  const lost = new Map([[5, { requests: ['a', 'b'], call: undefined }]]);
  keep(replay, { runs: [event(1), event(2)], waiting: [Buffer.from('waiting')], unended: lost });
  replay.forgotten();
  replay.add(event(3));
  keep(replay, { runs: [event(1), event(2), event(3)], waiting: [Buffer.from('waiting')], unended: lost });
  t.true(await replay.renew());
  replay.add(event(4));
  await turn();
  const stored = await read();
  t.deepEqual(sequencesIn(stored), [1, 2, 3, 4]);
  t.deepEqual(stored.waiting.map(String), ['waiting']);
  t.is(stored.unended.get(1)?.call?.lastEventId, 'first');
  t.deepEqual(stored.unended.get(5), lost.get(5));
});

test('of what is stored again the oldest events are left out where it is too much', async (t) => {
  const { replay, read } = create({ ...LIMITS, maxEntries: 1000 });
  replay.add(event(1));
  await turn();
  const bytes = Buffer.alloc(1024 * 1024);
  keep(replay, { runs: [1, 2, 3, 4, 5].map((sequence) => ({ ...event(sequence), bytes })) });
  replay.forgotten();
  await replay.renew();
  t.deepEqual(sequencesIn(await read()), [3, 4, 5]);
});

test('what a young stream has said is not stored twice when all is stored again', async (t) => {
  const { replay, clock, read } = create();
  replay.add({ ...event(1), stream: 0 });
  await turn();
  void replay.opened(1, [7]);
  replay.add(event(1));
  keep(replay, { runs: [{ ...event(1), stream: 0 }, event(1)] });
  replay.forgotten();
  await replay.renew();
  t.deepEqual((await read()).unended, new Map());
  clock.advance(YOUNG_MS);
  await turn();
  const stored = await read();
  t.deepEqual(
    stored.runs.map(({ stream }) => stream),
    [0, 1],
  );
  t.deepEqual(stored.unended.get(1), { requests: [7], call: undefined });
});

test('what could not be stored is missing until the store answers', async (t) => {
  const { replay, logs, read } = create();
  replay.add(event(1));
  await turn();
  const { append } = logs;
  logs.append = () => Promise.reject(new Error('away'));
  replay.add(event(2));
  await turn();
  t.true(replay.isIncomplete);
  keep(replay, { runs: [event(1), event(2)] });
  t.false(await replay.renew());
  t.true(replay.isIncomplete);
  logs.append = append;
  t.true(await replay.renew());
  t.false(replay.isIncomplete);
  t.deepEqual(sequencesIn(await read()), [1, 2]);
});

test('what is stored lasts longer when it is renewed, and where nothing is stored nothing is asked', async (t) => {
  const { replay, logs } = create();
  const appended: number[] = [];
  const { append } = logs;
  logs.append = (name, entries, limits) => {
    appended.push(entries.length);
    return append(name, entries, limits);
  };
  replay.forgotten();
  t.true(await replay.renew());
  t.deepEqual(appended, []);
  replay.add(event(1));
  await turn();
  t.true(await replay.renew());
  t.deepEqual(appended, [1, 0]);
  logs.append = () => Promise.reject(new Error('away'));
  t.false(await replay.renew());
  t.false(replay.isIncomplete);
});

test('nothing is stored again of a session that another replica has', async (t) => {
  const { replay, logs } = create();
  replay.add(event(1));
  await turn();
  await logs.remove(NAME);
  keep(replay, { runs: [event(1)] });
  replay.forgotten();
  replay.close();
  t.true(await replay.renew());
  t.deepEqual(await logs.read(NAME), []);
});
