/** The stream opened by GET, and what is kept for a client without it, when another replica goes on with the session. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { LiveStreams } from '../../../src/downstream/http/response-writer.ts';
import { StreamablePeer } from '../../../src/downstream/streamable-session/peer.ts';
import type { ClientListener } from '../../../src/relay/ports.ts';
import { SessionReplay } from '../../../src/replicas/stored/session-replay.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { serverFrame } from '../../support/frames.ts';
import { MemoryStore } from '../../support/memory-store.ts';

const NAME = 'session';
const log = pino({ level: 'silent' });
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const updated = (uri: string) => serverFrame({ method: 'notifications/resources/updated', params: { uri } });

function createPeer(store: MemoryStore, token: number): StreamablePeer {
  return createStoredPeer(store, token).peer;
}

function createStoredPeer({ logs }: MemoryStore, token: number) {
  const clock = new FakeClock();
  const replayLog = new SessionReplay({
    token,
    name: NAME,
    logs,
    limits: { maxEntries: 100, ttlMs: 60_000 },
    clock,
    log,
  });
  const listener = { clientDrained: () => {}, undeliverable: () => {} } as unknown as ClientListener;
  const deps = { log, clock, wallClock: () => 0, randomId: () => 'id' };
  const live = new LiveStreams(clock);
  const peer = new StreamablePeer({ listener, live, deps, log, pollAfterMs: 0, maxStreams: 10, replayLog });
  return { peer, replayLog };
}

/** The session at the next replica. */
async function goOn(store: MemoryStore, token: number): Promise<StreamablePeer> {
  const peer = createPeer(store, token);
  peer.restore(await SessionReplay.read(store.logs, NAME), token);
  return peer;
}

/** A response that a client waits for, and what it has got when it leaves. */
async function openResponse(t: ExecutionContext) {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const text = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).then((answer) => answer.text());
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
  const leave = async (): Promise<string> => {
    await settled();
    response.end();
    return text;
  };
  return { response, leave };
}

/** A client without a stream opens one, hears this, and leaves. */
async function hear(t: ExecutionContext, peer: StreamablePeer, uris: readonly string[]): Promise<string> {
  const { response, leave } = await openResponse(t);
  t.is(peer.openGetStream(response), undefined);
  for (const uri of uris) peer.send(updated(uri));
  return leave();
}

const idsIn = (text: string): readonly string[] => [...text.matchAll(/^id: ?(.+)$/gm)].map(([, id = '']) => id);
const urisIn = (text: string): readonly string[] => [...text.matchAll(/"uri":"(\w+)"/g)].map(([, uri = '']) => uri);

test('what was kept for a client is told by the replica that goes on, once', async (t) => {
  const store = new MemoryStore();
  const lost = createPeer(store, 1);
  lost.send(updated('first'));
  lost.send(updated('second'));
  await settled();
  const next = await goOn(store, 2);
  const opened = await openResponse(t);
  t.is(next.openGetStream(opened.response), undefined);
  t.deepEqual(urisIn(await opened.leave()), ['first', 'second']);
  await settled();
  const last = await goOn(store, 3);
  const again = await openResponse(t);
  t.is(last.openGetStream(again.response), undefined);
  t.deepEqual(urisIn(await again.leave()), []);
});

test('an event id is not used again where the next replica finds nothing of what was said', async (t) => {
  const store = new MemoryStore();
  const lost = createPeer(store, 1);
  const before = idsIn(await hear(t, lost, ['first', 'second']));
  t.is(before.length, 2);
  store.clear();
  const next = await goOn(store, 2);
  next.send(updated('kept'));
  const text = await hear(t, next, ['third']);
  const after = idsIn(text);
  t.deepEqual(urisIn(text), ['kept', 'third']);
  t.deepEqual(
    after.filter((id) => before.includes(id)),
    [],
  );
  const [earlier = '', known = ''] = [before[0], after[0]];
  const refused = await openResponse(t);
  t.is(next.resumeStream(refused.response, earlier)?.code, 'ERR_HTTP_RESUME');
  await refused.leave();
  const resumed = await openResponse(t);
  t.is(next.resumeStream(resumed.response, known), undefined);
  t.deepEqual(urisIn(await resumed.leave()), ['third']);
});

test('a client that says what it has heard of an earlier replica hears the rest, under the same ids', async (t) => {
  const store = new MemoryStore();
  const [, ...ids] = idsIn(await hear(t, createPeer(store, 1), ['first', 'second', 'third']));
  await settled();
  const next = await goOn(store, 2);
  const { response, leave } = await openResponse(t);
  t.is(next.resumeStream(response, ids[0] ?? ''), undefined);
  next.send(updated('fourth'));
  const text = await leave();
  t.deepEqual(urisIn(text), ['third', 'fourth']);
  t.deepEqual(idsIn(text), [ids[1] ?? '', '0-4']);
});

test('what a store has lost is stored again, so that the next replica tells what waits, and what was missed', async (t) => {
  const store = new MemoryStore();
  const { peer, replayLog } = createStoredPeer(store, 1);
  const [heard = ''] = idsIn(await hear(t, peer, ['first', 'second']));
  peer.send(updated('waiting'));
  await settled();
  store.clear();
  replayLog.forgotten();
  t.true(await replayLog.renew());
  const next = await goOn(store, 2);
  const { response, leave } = await openResponse(t);
  t.is(next.resumeStream(response, heard), undefined);
  t.deepEqual(urisIn(await leave()), ['second', 'waiting']);
});
