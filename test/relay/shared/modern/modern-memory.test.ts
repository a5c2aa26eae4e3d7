import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { ENVELOPE, ModernBridge } from './modern-bridge.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Those that something still holds on to. */
async function surviving(kept: readonly WeakRef<object>[]): Promise<number> {
  // What was made in this turn of the event loop is kept until its end.
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  return kept.filter((one) => one.deref() !== undefined).length;
}

/** In a function of its own: a running one keeps what its variables held last. */
function askAndLeave(bridge: ModernBridge): readonly WeakRef<object>[] {
  const client = bridge.connect();
  const frames = [
    { id: 1, method: 'subscriptions/listen', params: { notifications: {}, _meta: ENVELOPE } },
    { id: 2, method: 'tools/call', params: { _meta: ENVELOPE } },
  ].map((message) => client.says(message));
  client.leaves();
  bridge.link.take();
  return [...frames, client.relay, client.peer].map((one) => new WeakRef(one));
}

/** The same, with requests that come alone: one is answered, and the other's client leaves. */
function askAlone(bridge: ModernBridge): readonly WeakRef<object>[] {
  const client = bridge.connectAlone();
  const calls = [1, 2].map((id) => client.says({ id, method: 'tools/call', params: { _meta: ENVELOPE } }));
  bridge.says({ id: bridge.heard()[0]?.id, result: {} });
  client.leaves();
  bridge.link.take();
  return [client, ...calls, ...calls.map(({ listener }) => listener)].map((one) => new WeakRef(one));
}

test('of a call that was withdrawn only that there was one is kept, neither its request nor its client', async (t) => {
  const bridge = new ModernBridge({ prewarm: true });
  const kept = Array.from({ length: 5 }, () => askAndLeave(bridge)).flat();
  t.is(kept.length, 20);
  t.is(await surviving(kept), 0);
});

test('nothing is kept of a request that came alone, neither once it is answered nor once it is withdrawn', async (t) => {
  const bridge = new ModernBridge({ prewarm: true });
  const kept = Array.from({ length: 5 }, () => askAlone(bridge)).flat();
  t.is(kept.length, 25);
  t.is(await surviving(kept), 0);
});
