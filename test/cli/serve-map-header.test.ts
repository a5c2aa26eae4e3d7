/** What the process of a session is told about its caller, by the built program. */
import test from 'ava';
import { startBridge } from '../support/bridge.ts';
import { connectStreamable, type SdkClient } from '../support/sdk-client.ts';

const SERVER = ['--', process.execPath, 'test/fixtures/servers/tells-environment.js'];

async function askFor(variable: string, { client }: SdkClient): Promise<unknown> {
  const { content } = await client.callTool({ name: 'environment', arguments: { variable } });
  return (content as readonly { readonly text: string }[])[0]?.text;
}

test('the process of a session knows its caller by the header the user named', async (t) => {
  const bridge = await startBridge(['--map-header', 'X-User=USER_ENV', ...SERVER], { env: { USER_ENV: 'ours' } });
  t.teardown(() => bridge.stop());
  const values = ['alice', 'bob', undefined].map(async (user) => {
    const headers: Readonly<Record<string, string>> = user === undefined ? {} : { 'X-User': user };
    const connected = await connectStreamable(bridge.url, { headers });
    t.teardown(() => connected.close());
    return askFor('USER_ENV', connected);
  });
  t.deepEqual(await Promise.all(values), ['alice', 'bob', '(none)']);
  t.is(bridge.children().length, 3);
});
