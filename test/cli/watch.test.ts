/** `--watch`, with official clients of both eras and servers whose code is edited on disk. */
import test from 'ava';
import { developServer, logged, startWatching, told, watches } from '../support/developed-server.ts';
import { connectStreamable } from '../support/sdk-client.ts';

const WORK = { name: 'work', arguments: {} };

test('a session goes on with the changed code, and the log says what changed and how long the restart took', async (t) => {
  const server = await developServer(t, 'serveLegacy');
  const bridge = await startWatching(t, ['--watch', server.folder, '--', ...server.command]);
  const { client, transport, close } = await connectStreamable(bridge.url);
  t.teardown(close);
  const { sessionId } = transport;
  const before = told(await client.callTool(WORK));
  t.is(before.version, 'one');
  await watches(bridge);
  await server.save({ version: 'two' });
  const [line] = await logged(bridge, /is ready again after \d+ ms, since .*server\.mjs changed$/);
  t.truthy(line);
  const after = told(await client.callTool(WORK));
  t.is(after.version, 'two');
  t.not(after.pid, before.pid);
  t.is(transport.sessionId, sessionId);
});
