import test, { type ExecutionContext } from 'ava';
import { createFetchJson, isTrustworthy } from '../../../src/http/auth/discover-issuer.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { createIssuerClient, startIssuer } from '../../support/fake-issuer.ts';

const createFetch = (t: ExecutionContext) => createFetchJson(createIssuerClient(t, new FakeClock()));

test('keys are believed over https, or from this machine', (t) => {
  for (const url of ['https://auth.example/keys', 'http://127.0.0.1:9/', 'http://[::1]/', 'http://localhost:9/']) {
    t.true(isTrustworthy(new URL(url)), url);
  }
  for (const url of ['http://auth.example/keys', 'http://10.0.0.1/', 'ftp://localhost/', 'file:///etc/keys']) {
    t.false(isTrustworthy(new URL(url)), url);
  }
});

test('nothing is asked for in the clear, wherever the URL came from', async (t) => {
  const error = { code: 'ERR_AUTH_UNAVAILABLE', message: /expected https/ };
  await t.throwsAsync(createFetch(t)(new URL('http://auth.example/keys')), error);
});

test('a document is JSON with status 200, there or not there', async (t) => {
  const { url, answers } = await startIssuer(t);
  const fetchJson = createFetch(t);
  answers.set('/good', { status: 200, body: { keys: [] } });
  t.deepEqual(await fetchJson(new URL(`${url}/good`)), { keys: [] });
  t.is(await fetchJson(new URL(`${url}/missing`)), undefined);
  answers.set('/html', { status: 200, body: '<html>' });
  await t.throwsAsync(fetchJson(new URL(`${url}/html`)), { message: /expected JSON/ });
  for (const status of [400, 403, 410, 499]) {
    answers.set('/refused', { status });
    t.is(await fetchJson(new URL(`${url}/refused`)), undefined, `${status}`);
  }
  answers.set('/created', { status: 201, body: {} });
  await t.throwsAsync(fetchJson(new URL(`${url}/created`)), {
    code: 'ERR_AUTH_UNAVAILABLE',
    message: `${url}/created cannot be used: expected status 200, got 201.`,
  });
  answers.set('/broken', { status: 500 });
  await t.throwsAsync(fetchJson(new URL(`${url}/broken`)), { message: /expected status 200, got 500/ });
});

test('a redirect is not followed: it could lead anywhere', async (t) => {
  const { url, answers, asked } = await startIssuer(t);
  answers.set('/moved', { status: 302, headers: { Location: `${url}/good` } });
  answers.set('/good', { status: 200, body: {} });
  await t.throwsAsync(createFetch(t)(new URL(`${url}/moved`)), { message: /got 302/ });
  t.deepEqual(asked, ['/moved']);
});

test('a document without end is not read to its end', async (t) => {
  const { url, answers } = await startIssuer(t);
  answers.set('/endless', { status: 200, body: 'x'.repeat(3 * 1024 * 1024) });
  await t.throwsAsync(createFetch(t)(new URL(`${url}/endless`)), { message: /longer than/ });
});
