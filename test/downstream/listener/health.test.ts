import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { Authenticator, AuthVerdict } from '../../../src/http/auth/callers.ts';
import { callHttp } from '../../support/http-call.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { openStreamable } from '../../support/legacy-clients.ts';
import { stopped } from '../../support/readiness.ts';
import { waitFor } from '../../support/wait-for.ts';

const REFUSED: AuthVerdict = {
  kind: 'refused',
  refusal: { error: new BridgeError('ERR_AUTH_REQUIRED', 'who are you?'), challenge: undefined },
};

test('says that the process is alive', async (t) => {
  const { port, server } = await startHttpHarness(t);
  server.state = stopped(new BridgeError('ERR_UPSTREAM_STARTING', 'starting'));
  const answer = await callHttp({ port, path: '/healthz' });
  t.is(answer.status, 200);
  t.is(answer.headers['cache-control'], 'no-store');
  t.deepEqual(await answer.json(), { status: 'ok' });
});

test('says whether a call could be served now, and why not', async (t) => {
  const { port, server } = await startHttpHarness(t);
  const ready = await callHttp({ port, path: '/readyz?verbose' });
  t.is(ready.status, 200);
  t.deepEqual(await ready.json(), { status: 'ready' });
  server.state = stopped(new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'it keeps crashing'));
  const broken = await callHttp({ port, path: '/readyz' });
  t.is(broken.status, 503);
  t.deepEqual(await broken.json(), {
    status: 'not ready',
    code: 'ERR_UPSTREAM_CRASH_LOOP',
    reason: 'it keeps crashing',
  });
  t.is(server.connections.length, 0, 'asking starts nothing');
});

test('a bridge without a free session slot stays ready for those it serves, and says that it is full', async (t) => {
  const harness = await startHttpHarness(t, { maxSessions: 1 });
  const session = await openStreamable(harness);
  const ask = async (): Promise<unknown> => {
    const answer = await callHttp({ port: harness.port, path: '/readyz' });
    t.is(answer.status, 200);
    return answer.json();
  };
  t.deepEqual(await ask(), { status: 'ready' }, 'nobody is connected to the session, so it would be evicted');
  const stream = (await session.get()).events();
  t.deepEqual(await ask(), { status: 'ready', sessions: 'full' });
  stream.leave();
  await waitFor(async () => !('sessions' in ((await ask()) as object)));
});

test('tells why only to those who may call: unknown callers and foreign pages get the code', async (t) => {
  const authenticator: Authenticator = {
    authenticate: ({ headers }, decided) =>
      setImmediate(() =>
        decided(headers.authorization === 'Bearer good' ? { kind: 'principal', principal: 'alice' } : REFUSED),
      ),
  };
  const { port, server } = await startHttpHarness(t, { authenticator });
  const secret = 'Cannot reach the server at https://tools.internal/s/0a1b2c';
  server.state = stopped(new BridgeError('ERR_UPSTREAM_CONNECT', secret));
  const Authorization = 'Bearer good';
  const asked = [
    {},
    { Authorization: 'Bearer bad' },
    { Authorization, Host: 'evil' },
    { Authorization, Origin: 'null' },
  ];
  for (const headers of asked) {
    const answer = await callHttp({ port, path: '/readyz', headers });
    t.is(answer.status, 503);
    t.deepEqual(await answer.json(), { status: 'not ready', code: 'ERR_UPSTREAM_CONNECT' });
  }
  const told = await callHttp({ port, path: '/readyz', headers: { Authorization } });
  t.like(await told.json(), { reason: secret });
});

test('answers HEAD like GET, without a body', async (t) => {
  const { port } = await startHttpHarness(t);
  const answer = await callHttp({ port, method: 'HEAD', path: '/healthz' });
  t.is(answer.status, 200);
  t.is(await answer.text(), '');
});
