/** The end of the bridge before a server that ends for nothing but SIGKILL. Needs a current build. */
import test from 'ava';
import { configOf } from '../bridge/config-of.ts';
import { INITIALIZE, startConnect } from '../cli/stdio-program.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { assertGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectClient } from './fault-clients.ts';
import { faulty } from './faulty-bridge.ts';

/** What `docker stop` waits before it kills the bridge, which could end nothing then. */
const DOCKER_MS = 10_000;
/** For a machine that is busy meanwhile; the grace time once more would be more than this. */
const BUSY_MS = 2000;
const STUBBORN = faulty('stubborn');
const NEVER = { name: 'never-answers', arguments: {} };

/** A bridge with a child and a call that has no end. */
async function serveStubborn(options: readonly string[] = []): Promise<Bridge> {
  const bridge = await startBridge([...options, '--log-level', 'debug', ...STUBBORN]);
  const client = await connectClient(bridge, 'legacy');
  client.start(NEVER.name, '').catch(() => {});
  await client.call('echo', 'the other one is there, too');
  return bridge;
}

test('open calls and the end of processes have so much time by default that docker waits for both', (t) => {
  const { limits } = configOf('serve', '--', 'server');
  t.true(2 * limits.shutdownGraceMs <= DOCKER_MS - 2000);
});

test.serial('serve ends with all that it has started before docker loses patience, by its own settings', async (t) => {
  const bridge = await serveStubborn();
  const children = bridge.children();
  t.is(children.length, 1);
  const sinceMs = Date.now();
  bridge.kill('SIGTERM');
  t.deepEqual(await bridge.exited, { code: 0, signal: null });
  t.true(Date.now() - sinceMs < DOCKER_MS + BUSY_MS, `${Date.now() - sinceMs} ms`);
  await assertGone(children);
});

test.serial('connect does, too, whoever does not read', async (t) => {
  const program = startConnect(t, STUBBORN, { isRead: false });
  program.send(INITIALIZE);
  await waitFor(() => program.children().length > 0);
  const children = program.children();
  // More than all buffers on the way hold together.
  for (let id = 1; id <= 40; id += 1) {
    const params = { name: 'echo', arguments: { text: 'x'.repeat(256 * 1024) } };
    program.send({ jsonrpc: '2.0', id, method: 'tools/call', params });
  }
  program.send({ jsonrpc: '2.0', id: 'never', method: 'tools/call', params: NEVER });
  await waitFor(() => program.child.stdout.readableLength > 0);
  const sinceMs = Date.now();
  program.child.kill('SIGTERM');
  t.deepEqual(await program.exited, { code: 0, signal: null });
  t.true(Date.now() - sinceMs < DOCKER_MS + BUSY_MS, `${Date.now() - sinceMs} ms`);
  await assertGone(children);
});

test.serial('a second signal ends the bridge and all that it has started at once', async (t) => {
  // Longer than the test may take.
  const bridge = await serveStubborn(['--shutdown-grace', '60s']);
  const children = bridge.children();
  bridge.kill('SIGTERM');
  await waitFor(() => bridge.logs.some(({ msg }) => msg?.startsWith('SIGTERM: shutting down')));
  bridge.kill('SIGTERM');
  t.deepEqual(await bridge.exited, { code: 143, signal: null });
  await assertGone(children);
});

for (const [server, ...words] of [
  ['a server that ends when it is asked'],
  ['a server that does not', 'stubborn'],
] as const) {
  for (const isFirst of ['the end of its pipe', 'the signal'] as const) {
    const title = `a client that goes on with a signal, of which ${isFirst} is seen first, finds nothing left of ${server}`;
    test.serial(title, async (t) => {
      // Longer than the test may take.
      const options = ['--shutdown-grace', '60s', '--log-level', 'debug', '--log-format', 'json'];
      const program = startConnect(t, [...options, ...faulty(...words)]);
      await program.initialize();
      const children = program.children();
      program.send({ jsonrpc: '2.0', id: 'never', method: 'tools/call', params: NEVER });
      const said = (text: string) => waitFor(() => program.log().includes(text), { message: program.log });
      if (isFirst === 'the end of its pipe') {
        program.child.stdin.end();
        await said('the client has ended its input');
        program.child.kill('SIGTERM');
      } else {
        program.child.kill('SIGTERM');
        await said('SIGTERM: shutting down');
        program.child.stdin.end();
      }
      t.deepEqual(await program.exited, { code: 0, signal: null });
      await said('close-stdin');
      await assertGone(children);
    });
  }
}
