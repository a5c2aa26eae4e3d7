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

test('of a call that was withdrawn only that there was one is kept, neither its request nor its client', async (t) => {
  const bridge = new ModernBridge({ prewarm: true });
  const kept = Array.from({ length: 5 }, () => askAndLeave(bridge)).flat();
  t.is(kept.length, 20);
  t.is(await surviving(kept), 0);
});
