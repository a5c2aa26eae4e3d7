import anyTest, { type TestFn } from 'ava';
import { BROWSER } from '../../support/browser-command.ts';
import { forwardTo, startLoginWorld } from '../../support/login-world.ts';
import { connectStreamable } from '../../support/sdk-client.ts';
import { startStreamable } from '../../support/sdk-servers.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { startTestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;

test(`replicas share a login: one user logs in once, and one replica refreshes, once each time${WHY}`, async (t) => {
  const server = await startStreamable();
  t.teardown(() => server.close());
  const world = await startLoginWorld(t);
  world.serve = forwardTo(server.url);
  const bed = await startTestBed({ args: ['--login', 'on-demand', world.server], count: 2, env: { BROWSER } });
  t.teardown(() => bed.stop());
  const urls = bed.places.map(({ port }) => new URL(`http://127.0.0.1:${port}/mcp`));
  const connected = await Promise.all(urls.map((url) => connectStreamable(url)));
  t.teardown(() => Promise.all(connected.map(({ close }) => close().catch(() => undefined))));
  t.is(world.count('/authorize'), 1);
  t.is(world.count('/register'), 1);
  const refreshes = (): number =>
    world.asked.filter(({ parameters }) => parameters.get('grant_type') === 'refresh_token').length;
  for (const round of [1, 2, 3]) {
    world.tokens.clear();
    const lists = await Promise.all([...connected, ...connected].map(({ client }) => client.listTools()));
    for (const { tools } of lists) t.true(tools.length > 0);
    t.is(refreshes(), round);
  }
  // One that comes later is let in by what the others have got.
  const later = await bed.addPlace();
  const { client, close } = await connectStreamable(new URL(`http://127.0.0.1:${later.port}/mcp`));
  t.true((await client.listTools()).tools.length > 0);
  await close();
  t.is(world.count('/authorize'), 1);
  t.is(refreshes(), 3);
});
