import { fileURLToPath } from 'node:url';
import anyTest, { type TestFn } from 'ava';
import { startLegacyHttp } from '../../matrix/servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { startTestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const LEGACY = fileURLToPath(new URL('../../matrix/servers/legacy.js', import.meta.url));

const JSON_TYPE = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'limited', version: '1' } },
});

interface Opened {
  readonly status: number;
  readonly session: string | undefined;
  readonly error: string;
}

async function openSession(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<Opened> {
  const response = await fetch(url, { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body: INITIALIZE }).catch(
    () => undefined,
  );
  // It came to a replica that is gone.
  if (response === undefined) return { status: 0, session: undefined, error: '' };
  const text = await response.text();
  const session = response.headers.get('mcp-session-id') ?? undefined;
  return { status: response.status, session, error: session === undefined ? text : '' };
}

/** A client that stays: its session is not one that was abandoned, which would be ended for another. */
async function use(url: URL, { session }: Opened, headers: Readonly<Record<string, string>> = {}): Promise<() => void> {
  const leaving = new AbortController();
  const response = await fetch(url, {
    headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': session ?? '', ...headers },
    signal: leaving.signal,
  });
  if (response.status !== 200) throw new Error(`no stream: ${response.status} ${await response.text()}`);
  return () => leaving.abort();
}

test(`three replicas together have as many sessions and processes as one may, and no more${WHY}`, async (t) => {
  const bed = await startTestBed({
    args: ['--cluster-limits', '--max-sessions', '5', '--', process.execPath, LEGACY, 'stdio'],
  });
  const leave: (() => void)[] = [];
  t.teardown(async () => {
    for (const run of leave) run();
    await bed.stop();
  });
  const opened: Opened[] = [];
  const fill = async (): Promise<void> => {
    const next = await openSession(bed.url);
    if (next.session === undefined) return;
    opened.push(next);
    leave.push(await use(bed.url, next));
  };
  for (let attempt = 0; attempt < 12; attempt += 1) await fill();
  t.is(opened.length, 5);
  const { status, error } = await openSession(bed.url);
  t.is(status, 503);
  t.regex(error, /replicas together have 5 sessions/);
  // All of them belong to some replica, and none has them all.
  const children = bed.places.map(({ bridge }) => bridge.children().length);
  t.is(
    children.reduce((sum, each) => sum + each, 0),
    5,
  );
  t.true(children.every((each) => each < 5));

  await fetch(bed.url, { method: 'DELETE', headers: { 'Mcp-Session-Id': opened[0]?.session ?? '' } });
  await waitFor(async () => (await fill().then(() => opened.length)) === 6, { message: 'what was given back' });

  const [dies, ...live] = bed.places;
  t.true((dies?.bridge.children().length ?? 0) > 0);
  dies?.bridge.kill('SIGKILL');
  const running = (): number => live.reduce((sum, { bridge }) => sum + bridge.children().length, 0);
  const fillUp = async (): Promise<boolean> => {
    await fill();
    // A process that has just been ended may still be there for a moment.
    await waitFor(() => running() <= 5, { message: () => `${running()} processes to be five at most` });
    return running() === 5;
  };
  await waitFor(fillUp, { message: 'the share of the replica that is gone', timeoutMs: 30_000 });
  // Sessions whose streams went through the replica that is gone may be replaced; there are not more of them.
  for (let attempt = 0; attempt < 4; attempt += 1) await fillUp();
});

test(`a caller has as many sessions at all replicas together as at one${WHY}`, async (t) => {
  const server = await startLegacyHttp('stateful');
  const tokens = ['--auth-token', 'alice=env:TEST_ALICE', '--auth-token', 'bob=env:TEST_BOB'];
  const bed = await startTestBed({
    args: ['--cluster-limits', '--max-caller-sessions', '3', ...tokens, server.url.href],
    env: { TEST_ALICE: 'the-token-of-alice', TEST_BOB: 'the-token-of-bob' },
  });
  const leave: (() => void)[] = [];
  t.teardown(async () => {
    for (const run of leave) run();
    await bed.stop();
    await server.stop();
  });
  const alice = { Authorization: 'Bearer the-token-of-alice' };
  const bob = { Authorization: 'Bearer the-token-of-bob' };
  const open = async (headers: typeof alice): Promise<Opened> => {
    const next = await openSession(bed.url, headers);
    if (next.session !== undefined) leave.push(await use(bed.url, next, headers));
    return next;
  };
  const ofAlice: Opened[] = [];
  for (let attempt = 0; attempt < 9; attempt += 1) ofAlice.push(await open(alice));
  t.is(ofAlice.filter(({ status }) => status === 200).length, 3);
  t.regex(ofAlice.at(-1)?.error ?? '', /This caller has 3 sessions at all replicas together/);
  t.is((await open(bob)).status, 200);
});
