/** Which modern callers meet in one process of a legacy server: they have no session that would keep them apart. */
import test, { type ExecutionContext } from 'ava';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { startBridge } from '../support/bridge.ts';
import type { Headers } from '../support/legacy-clients.ts';

const SERVER = ['--', process.execPath, 'test/fixtures/servers/tells-environment.js'];
const TOKENS = { ALICE: 'a-long-token-of-alice', BOB: 'a-long-token-of-bob' };

/** Asks a bridge with these options, one caller after the other; what the process says to each. */
async function ask(t: ExecutionContext, args: readonly string[], variable: string, callers: readonly Headers[]) {
  const bridge = await startBridge([...args, ...SERVER], { env: TOKENS });
  t.teardown(() => bridge.stop());
  const said: string[] = [];
  for (const headers of callers) {
    const message = modern(said.length, 'tools/call', { name: 'environment', arguments: { variable } });
    const answer = await postModern({ port: Number(bridge.url.port) }, message, headers);
    const { result, error } = await answer.json<{ result?: { content: [{ text: string }] }; error?: object }>();
    said.push(result?.content[0].text ?? JSON.stringify(error));
  }
  return said;
}

const alice = { Authorization: `Bearer ${TOKENS.ALICE}` };
const bob = { Authorization: `Bearer ${TOKENS.BOB}` };
const OPEN = ['--host', '0.0.0.0', '--allow-anonymous'];

test('callers with a name meet only themselves', async (t) => {
  const args = ['--auth-token', 'alice=env:ALICE', '--auth-token', 'bob=env:BOB'];
  const [first, second, third, fourth] = await ask(t, args, 'pid', [alice, bob, alice, bob]);
  t.regex(first ?? '', /^\d+$/);
  t.is(third, first);
  t.is(fourth, second);
  t.not(first, second);
});

test('callers of this machine are one user and share a process', async (t) => {
  const [first, second] = await ask(t, [], 'pid', [{}, {}]);
  t.regex(first ?? '', /^\d+$/);
  t.is(second, first);
});

test('unknown callers share nothing: each of their calls has a process of its own', async (t) => {
  const pids = await ask(t, OPEN, 'pid', [{}, {}, {}]);
  t.regex(pids.join(' '), /^\d+ \d+ \d+$/);
  t.is(new Set(pids).size, 3);
});

test('unknown callers share a process where the user wants one for all', async (t) => {
  const pids = await ask(t, [...OPEN, '--isolation', 'shared'], 'pid', [{}, {}]);
  t.is(new Set(pids).size, 1);
});

test('a process that was told of one caller serves no other', async (t) => {
  const callers = [{ 'X-User': 'alice' }, { 'X-User': 'bob' }, {}, { 'X-User': 'alice' }];
  t.deepEqual(await ask(t, ['--map-header', 'X-User=USER_ENV'], 'USER_ENV', callers), [
    'alice',
    'bob',
    '(none)',
    'alice',
  ]);
});
