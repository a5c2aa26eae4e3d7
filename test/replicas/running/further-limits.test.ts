import anyTest, { type TestFn } from 'ava';
import { headersOf, modern } from '../../downstream/streamable-stateless/modern-posts.ts';
import { SERVERS } from '../../matrix/servers.ts';
import { connectStreamable, type SdkClient } from '../../support/sdk-client.ts';
import { serverProgram } from '../../support/server-program.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { startTestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const LEGACY = serverProgram(new URL('../../matrix/servers/legacy.js', import.meta.url));
const MOST = 4;

test(`a caller has as many calls open at a modern server through all replicas together as through one${WHY}`, async (t) => {
  const server = await SERVERS.modernHttp.start();
  const tokens = ['--auth-token', 'alice=env:TEST_ALICE', '--auth-token', 'bob=env:TEST_BOB'];
  const bed = await startTestBed({
    args: [
      '--protocol',
      'modern',
      '--cluster-limits',
      '--max-session-in-flight',
      String(MOST),
      ...tokens,
      ...server.target,
    ],
    env: { TEST_ALICE: 'the-token-of-alice', TEST_BOB: 'the-token-of-bob' },
  });
  const open: AbortController[] = [];
  t.teardown(async () => {
    for (const call of open) call.abort();
    await bed.stop();
    await server.stop();
  });
  const call = (caller: string, name: string, args: object, signal?: AbortSignal): Promise<string> => {
    const message = modern('call', 'tools/call', { name, arguments: args });
    const headers = new Headers({ ...headersOf(message), Authorization: `Bearer the-token-of-${caller}` });
    const body = JSON.stringify(message);
    return fetch(bed.url, { method: 'POST', headers, body, ...(signal && { signal }) }).then((answer) => answer.text());
  };
  const arrived = async (label: string): Promise<boolean> =>
    JSON.stringify((await server.look?.())?.entries).includes(`"${label}"`);

  /** Calls what never answers. Undefined: the call is open. */
  let labels = 0;
  const hang = async (caller: string): Promise<string | undefined> => {
    labels += 1;
    const label = `call ${labels} of ${caller}`;
    const leaving = new AbortController();
    let refusal: string | undefined;
    call(caller, 'wait', { label }, leaving.signal).then(
      (text) => {
        refusal = text;
      },
      () => undefined,
    );
    await waitFor(async () => refusal !== undefined || (await arrived(label)), {
      message: `${label} to get somewhere`,
    });
    if (refusal === undefined) open.push(leaving);
    return refusal;
  };

  const refusals: string[] = [];
  for (let attempt = 0; attempt < 3 * MOST; attempt += 1) {
    const refusal = await hang('alice');
    if (refusal !== undefined) refusals.push(refusal);
  }
  t.is(open.length, MOST);
  for (const refusal of refusals) t.regex(refusal, /4 calls are open for this caller at all replicas together/);
  t.regex(await call('bob', 'echo', { value: 'another' }), /another/);
  open.shift()?.abort();
  await waitFor(async () => (await hang('alice')) === undefined, { message: 'what was given back' });
  t.not(await hang('alice'), undefined);
});

test(`replicas together start as many processes as one may, whatever sessions there could be${WHY}`, async (t) => {
  const bed = await startTestBed({
    args: ['--cluster-limits', '--max-children', '3', '--', process.execPath, LEGACY, 'stdio'],
  });
  const connected: SdkClient[] = [];
  t.teardown(async () => {
    await Promise.all(connected.map(({ close }) => close().catch(() => undefined)));
    await bed.stop();
  });
  /** A session without an open call or stream would be ended for the next one, and a client's stream opens later. */
  const callWithoutEnd = ({ client }: SdkClient): Promise<unknown> =>
    new Promise((resolve) => {
      const call = { name: 'hold', arguments: { value: 'never' } };
      client.callTool(call, undefined, { onprogress: resolve }).catch(() => undefined);
    });
  const refusals: string[] = [];
  for (let attempt = 0; attempt < 6; attempt += 1) {
    try {
      const client = await connectStreamable(bed.url);
      connected.push(client);
      await callWithoutEnd(client);
    } catch (error) {
      refusals.push((error as Error).message);
    }
  }
  t.is(connected.length, 3);
  for (const refusal of refusals) t.regex(refusal, /replicas together have 3 processes/);
  const children = bed.places.map(({ bridge }) => bridge.children().length);
  t.is(
    children.reduce((sum, each) => sum + each, 0),
    3,
  );
});
