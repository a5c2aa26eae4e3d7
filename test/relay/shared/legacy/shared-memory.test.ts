import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { ABANDONED_MS } from '../../../../src/relay/shared/legacy/attribution.ts';
import { SharedBridge, type SharedClient } from './shared-bridge.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Those that something still holds on to. */
async function surviving(kept: readonly WeakRef<object>[]): Promise<number> {
  // What was made in this turn of the event loop is kept until its end.
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  return kept.filter((one) => one.deref() !== undefined).length;
}

/** A call from beginning to end. In a function of its own: a running one keeps what its variables held last. */
function callAndForget(bridge: SharedBridge, client: SharedClient, n: number): readonly WeakRef<object>[] {
  const frame = client.says({ id: n, method: 'tools/call', params: { _meta: { progressToken: n } } });
  const kept = [frame, ...bridge.link.sent.map((sent) => sent.frame)].map((one) => new WeakRef(one));
  if (n % 2 === 0) bridge.answerAll();
  else client.says({ method: 'notifications/cancelled', params: { requestId: n } });
  bridge.link.take();
  client.peer.take();
  client.peer.released.length = 0;
  return kept;
}

test('nothing of a call is kept once it was answered or canceled', async (t) => {
  const bridge = new SharedBridge();
  const client = bridge.join();
  const kept = Array.from({ length: 20 }, (_, n) => callAndForget(bridge, client, n)).flat();
  t.is(kept.length, 40);
  t.is(await surviving(kept), 0);
});

function joinAndLeave(bridge: SharedBridge, n: number): readonly WeakRef<object>[] {
  const client = bridge.join({ capabilities: { elicitation: { url: {} } } });
  client.call(1, 'resources/subscribe', { uri: `a:${n}` });
  client.call(2, 'logging/setLevel', { level: 'debug' });
  bridge.answerAll();
  client.call(3, 'resources/subscribe', { uri: `b:${n}` });
  client.call(4);
  bridge.says({ id: n, method: 'elicitation/create', params: { mode: 'url', elicitationId: `e${n}` } });
  if (client.heard().at(-1)?.method !== 'elicitation/create') throw new Error('not asked');
  client.leaves();
  bridge.clock.advance(ABANDONED_MS);
  bridge.link.take();
  return [new WeakRef(client.relay), new WeakRef(client.peer)];
}

test('nothing of a client is kept once it left, whatever it had open', async (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  const kept = Array.from({ length: 5 }, (_, n) => joinAndLeave(bridge, n)).flat();
  t.is(await surviving(kept), 0);
});

function waitAndGo(bridge: SharedBridge, client: SharedClient): readonly WeakRef<object>[] {
  bridge.exits();
  const kept = [1, 2, 3].map((n) => new WeakRef(client.says({ method: 'x-vendor/event', params: { n } })));
  bridge.clock.advance(250);
  bridge.answerHandshake();
  client.peer.take();
  bridge.link.take();
  return kept;
}

test('nothing that waited for a server is kept once it was sent', async (t) => {
  const bridge = new SharedBridge();
  const kept = waitAndGo(bridge, bridge.join());
  t.is(await surviving(kept), 0);
});
