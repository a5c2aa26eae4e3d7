/** A client, a server that wants a login, and a user who takes longer than anything else may take. */
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { createUrlDialer } from '../../src/upstream/detect/url-dialer.ts';
import { createUser } from '../http/login/logged-in.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { type LoginWorld, startLoginWorld } from '../support/login-world.ts';
import { REMOTE } from '../support/remote-config.ts';
import { joinClient } from './connect.ts';
import { CLIENT_INFO, joinErasWith } from './join-eras.ts';
import { listTools } from './modern-request.ts';

/** Longer than a server may take to show what it speaks, and less than a login may. */
const LONG_MS = 150_000;

async function startLegacyWorld(t: ExecutionContext): Promise<LoginWorld> {
  const world = await startLoginWorld(t);
  world.serve = async (request, response) => {
    const { id, method } = JSON.parse((await text(request)) || '{}');
    if (id === undefined) return void response.writeHead(202).end();
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'protected', version: '1' },
      },
      'tools/list': { tools: [{ name: 'one', inputSchema: { type: 'object' } }] },
    };
    const result = results[method];
    const answer = result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result };
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  };
  return world;
}

function connectTo(t: ExecutionContext, world: LoginWorld) {
  const clock = new FakeClock();
  const user = createUser(t, world.url, { clock, user: 'absent' });
  const deps = { ...createTestDeps().deps, clock };
  const dialer = createUrlDialer({
    target: { kind: 'url', url: world.url, socketPath: undefined },
    protocol: 'auto',
    remote: REMOTE,
    maxMessageBytes: 1024 * 1024,
    tracing: 'off',
    clientInfo: CLIENT_INFO,
    credentials: user.login,
    learned: () => undefined,
    deps,
    joinEras: joinErasWith(deps),
  });
  t.teardown(() => dialer.close());
  const logIn = async (): Promise<void> => {
    const start = await user.startAddress();
    await clock.advanceInSteps(LONG_MS, 10_000);
    await user.browser.visit(start);
  };
  return { dialer, logIn };
}

test('a legacy client waits for a slow user, and gets its session', async (t) => {
  const world = await startLegacyWorld(t);
  const { dialer, logIn } = connectTo(t, world);
  const client = joinClient(t, { close: () => Promise.resolve() }, dialer);
  const opening = client.initialize();
  await logIn();
  await opening;
  const { result } = await client.request('tools/list');
  t.regex(JSON.stringify(result), /"one"/);
  t.is(world.count('/authorize'), 1);
});

test('a modern client waits for a slow user, and gets its answer', async (t) => {
  const world = await startLegacyWorld(t);
  const { dialer, logIn } = connectTo(t, world);
  const listing = listTools(dialer);
  await logIn();
  t.deepEqual(await listing, ['one']);
  t.is(world.count('/authorize'), 1);
});
