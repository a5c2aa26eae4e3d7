import type { Notification } from '@modelcontextprotocol/sdk/types.js';
import test from 'ava';
import { startBridge } from '../support/bridge.ts';
import { waitFor } from '../support/wait-for.ts';
import { EVERYTHING } from './servers/commands.ts';
import { SHARED_VARIANTS, VARIANTS, type Variant } from './variants.ts';

// One bridge a test: these tools of the server toggle, so sessions that share it would switch each other off. What
// they start keeps the server alive after the end of its input, so the grace it gets is cut short.
const startFor = ({ isolation }: Variant) =>
  startBridge(['--isolation', isolation, '--shutdown-grace', '300ms', '--', ...EVERYTHING]);

const URI = 'demo://resource/dynamic/text/1';
const OTHER_URI = 'demo://resource/dynamic/text/2';

const updatesOf = (notifications: readonly Notification[]): unknown[] =>
  notifications
    .filter(({ method }) => method === 'notifications/resources/updated')
    .map(({ params }) => ({ ...params }).uri);

const countOf = (notifications: readonly Notification[], method: string): number =>
  notifications.filter((notification) => notification.method === method).length;

for (const variant of VARIANTS) {
  test.serial(`${variant.title}: log messages arrive once a level is set`, async (t) => {
    const bridge = await startFor(variant);
    t.teardown(bridge.stop);
    const { client, notifications, close } = await variant.connect(bridge);
    t.teardown(close);
    await client.setLoggingLevel('debug');
    await client.callTool({ name: 'toggle-simulated-logging', arguments: {} });
    await waitFor(() => countOf(notifications, 'notifications/message') > 0, { message: 'a log message' });
    t.pass();
  });

  test.serial(`${variant.title}: updates arrive for what is subscribed, and only for that`, async (t) => {
    const bridge = await startFor(variant);
    t.teardown(bridge.stop);
    const { client, notifications, close } = await variant.connect(bridge);
    t.teardown(close);
    await client.subscribeResource({ uri: URI });
    await client.subscribeResource({ uri: OTHER_URI });
    await client.unsubscribeResource({ uri: OTHER_URI });
    await client.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
    await waitFor(() => updatesOf(notifications).length > 0, { message: 'an update' });
    // A later message of the same pipe: what was sent before it has arrived.
    await client.callTool({ name: 'echo', arguments: { message: 'fence' } });
    t.deepEqual([...new Set(updatesOf(notifications))], [URI]);
  });

  test.serial(`${variant.title}: list_changed arrives`, async (t) => {
    const bridge = await startFor(variant);
    t.teardown(bridge.stop);
    const { client, notifications, close } = await variant.connect(bridge);
    t.teardown(close);
    const data = 'data:text/plain;base64,aGVsbG8=';
    await client.callTool({ name: 'gzip-file-as-resource', arguments: { name: 'hello.gz', data } });
    const method = 'notifications/resources/list_changed';
    await waitFor(() => countOf(notifications, method) > 0, { message: method });
    t.true((await client.listResources()).resources.some(({ uri }) => uri.endsWith('hello.gz')));
  });
}

for (const variant of SHARED_VARIANTS) {
  test.serial(`${variant.title}: updates go to the subscriber, list_changed to everyone`, async (t) => {
    const bridge = await startFor(variant);
    t.teardown(bridge.stop);
    const reader = await variant.connect(bridge);
    t.teardown(reader.close);
    const bystander = await variant.connect(bridge);
    t.teardown(bystander.close);

    await reader.client.subscribeResource({ uri: URI });
    await bystander.client.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
    await waitFor(() => updatesOf(reader.notifications).length > 0, { message: 'an update' });

    const data = 'data:text/plain;base64,aGVsbG8=';
    await reader.client.callTool({ name: 'gzip-file-as-resource', arguments: { name: 'hello.gz', data } });
    const method = 'notifications/resources/list_changed';
    for (const { notifications } of [reader, bystander]) {
      await waitFor(() => countOf(notifications, method) > 0, { message: method });
    }
    t.deepEqual(updatesOf(bystander.notifications), []);
  });

  test.serial(`${variant.title}: a subscription lives as long as its last subscriber`, async (t) => {
    const bridge = await startFor(variant);
    t.teardown(bridge.stop);
    const leaver = await variant.connect(bridge);
    const stayer = await variant.connect(bridge);
    t.teardown(stayer.close);
    await leaver.client.subscribeResource({ uri: URI });
    await stayer.client.subscribeResource({ uri: URI });
    await leaver.client.unsubscribeResource({ uri: URI });
    await leaver.close();
    await stayer.client.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
    await waitFor(() => updatesOf(stayer.notifications).length > 0, { message: 'an update' });
    t.pass();
  });
}
