import test from 'ava';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { ask } from './recorded.ts';
import { RECORDER } from './servers/commands.ts';
import { bridgeForEach, ISOLATIONS } from './variants.ts';

const bridgeOf = bridgeForEach(test, RECORDER);

for (const isolation of ISOLATIONS) {
  test.serial(`--isolation ${isolation}: a call survives the loss of its connection`, async (t) => {
    const bridge = bridgeOf({ isolation });
    const proxy = await startCuttingProxy(bridge.url);
    t.teardown(proxy.close);
    const { client, progress, close } = await connectStreamable(proxy.through(bridge.url));
    t.teardown(close);

    const params = { steps: 10, everyMs: 50, label: 'resumed' };
    const call = ask(client, 'test/steps', params, { onprogress: () => undefined });
    await waitFor(() => progress.length >= 2, { message: 'progress before the cut' });
    await proxy.cut();
    t.is((await call).label, 'resumed');
    t.deepEqual(
      progress.map((step) => step.progress),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    );
  });

  test.serial(`--isolation ${isolation}: a notification sent while the client was cut off arrives later`, async (t) => {
    const bridge = bridgeOf({ isolation });
    const proxy = await startCuttingProxy(bridge.url);
    t.teardown(proxy.close);
    const { client, notifications, close } = await connectStreamable(proxy.through(bridge.url));
    t.teardown(close);

    const notification = { method: 'notifications/tools/list_changed' };
    // The first one shows that the GET stream is open, the second is sent into the gap.
    await ask(client, 'test/notifyLater', { notification, afterMs: 10 });
    await waitFor(() => notifications.length === 1, { message: 'a notification before the cut' });
    await ask(client, 'test/notifyLater', { notification, afterMs: 20 });
    await proxy.cut();
    await waitFor(() => notifications.length === 2, { message: 'the notification of the gap' });
    t.pass();
  });
}
