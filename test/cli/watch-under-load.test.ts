/** `--watch` while official clients of both eras call without a pause. */
import test from 'ava';
import {
  connectModern,
  developServer,
  linesWith,
  logged,
  startWatching,
  told,
  watches,
} from '../support/developed-server.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';

const WORK = { name: 'work', arguments: {} };
const SHARED = ['--isolation', 'shared'];

for (const [serve, options] of [
  ['serveLegacy', []],
  ['serveLegacy', SHARED],
  ['serveModern', []],
  ['serveModern', SHARED],
] as const) {
  test.serial(`no call is lost in ten restarts under load: ${serve} ${options.join(' ')}`, async (t) => {
    const server = await developServer(t, serve);
    const bridge = await startWatching(t, ['--watch', server.folder, ...options, '--', ...server.command]);
    const legacy = await Promise.all([connectStreamable(bridge.url), connectStreamable(bridge.url)]);
    t.teardown(() => Promise.all(legacy.map(({ close }) => close())));
    const modern = await Promise.all([connectModern(t, bridge), connectModern(t, bridge)]);
    const clients = [...legacy.map(({ client }) => client), ...modern];
    await Promise.all(clients.map((client) => client.callTool(WORK)));
    await watches(bridge);
    const versions = new Set<string>();
    let isOver = false;
    let calls = 0;
    const work = async (client: (typeof clients)[number]): Promise<void> => {
      while (!isOver) {
        // Long enough that the processors are free to start servers: what is tried is that calls are open all the time.
        const ms = 20 + (calls % 40);
        versions.add(told(await client.callTool({ name: 'work', arguments: { ms } })).version);
        calls += 1;
      }
    };
    const working = Promise.all(clients.flatMap((client) => Array.from({ length: 8 }, () => work(client))));
    for (let restart = 1; restart <= 10; restart += 1) {
      await server.save({ version: `version ${restart}` });
      await Promise.race([
        working,
        waitFor(() => versions.has(`version ${restart}`), { message: `version ${restart}` }),
      ]);
    }
    await Promise.race([working, logged(bridge, /is ready again after/, 1)]);
    isOver = true;
    await working;
    t.true(versions.size >= 10, [...versions].join());
    t.true(calls > 320, `${calls} calls`);
    t.deepEqual(linesWith(bridge.logs, /does not start|ERR_/), []);
  });
}
