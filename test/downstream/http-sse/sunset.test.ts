import test, { type ExecutionContext } from 'ava';
import { FakeObserver } from '../../support/calls.ts';
import { callHttp } from '../../support/http-call.ts';
import { type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import { call, initialize, openHttpSession, openInitializedSse, openSse } from '../../support/legacy-clients.ts';

const AT_MS = Date.UTC(2027, 2, 31, 23, 59, 59);

/** A listener that has announced its end, an observer, and a calendar that the test turns. */
async function start(t: ExecutionContext, afterward: 'refuse' | 'serve' = 'refuse') {
  const time = { nowMs: AT_MS - 1000 };
  const observer = new FakeObserver();
  const sunset = { date: '2027-03-31', atMs: AT_MS, afterward };
  const harness = await startHttpHarness(t, { sunset, wallClock: () => time.nowMs, observer });
  return { harness, time, observer };
}

const openStream = ({ port }: HttpHarness, path = '/sse') =>
  callHttp({ port, path, headers: { Accept: 'text/event-stream' } });

test('tells clients of HTTP+SSE with every answer when it ends, and where to go', async (t) => {
  const { harness } = await start(t);
  const session = await openSse(harness);
  for (const answer of [
    await openStream(harness),
    await openStream(harness, '/mcp'),
    await session.post(initialize('2024-11-05')),
    await session.post('no message'),
  ]) {
    const { deprecation, sunset, link } = answer.headers;
    t.is(deprecation, '@1742947200', 'the day of revision 2025-03-26 [RFC 9745]');
    t.is(sunset, 'Wed, 31 Mar 2027 23:59:59 GMT', 'an HTTP-date [RFC 8594]');
    t.regex(String(link), /^<https:\/\/modelcontextprotocol\.io\/[^>]+>; rel="deprecation"; type="text\/html", /);
    t.true(String(link).endsWith(`<http://127.0.0.1:${harness.port}/mcp>; rel="successor-version"`), String(link));
    answer.leave();
  }
});

test('tells clients of Streamable HTTP nothing', async (t) => {
  const { harness } = await start(t);
  const { id } = await openHttpSession(harness.port);
  const answer = await callHttp({
    port: harness.port,
    headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': id },
  });
  t.is(answer.status, 200);
  for (const name of ['deprecation', 'sunset', 'link']) t.is(answer.headers[name], undefined, name);
  answer.leave();
});

test('answers 410 with a sentence as soon as the date has passed, and not before', async (t) => {
  const { harness, time, observer } = await start(t);
  time.nowMs = AT_MS;
  t.regex((await openSse(harness)).endpoint, /^\/messages/);
  t.deepEqual(observer.refusals, []);
  time.nowMs = AT_MS + 1;
  for (const path of ['/sse', '/mcp']) {
    const answer = await openStream(harness, path);
    t.is(answer.status, 410);
    t.is(answer.headers['cache-control'], 'no-store');
    t.is(answer.headers.sunset, 'Wed, 31 Mar 2027 23:59:59 GMT');
    t.like(await answer.json(), {
      error: {
        message: `HTTP+SSE has ended here (2027-03-31); use Streamable HTTP, at http://127.0.0.1:${harness.port}/mcp.`,
        data: { bridge: { reason: 'ERR_HTTP_GONE' } },
      },
    });
  }
  const client = { transport: 'http-sse', server: 'a server' };
  t.like(observer.refusals, [
    { client, reason: 'ERR_HTTP_GONE' },
    { client, reason: 'ERR_HTTP_GONE' },
  ]);
});

test('ends a session that was open when its client next says something', async (t) => {
  const { harness, time } = await start(t);
  const session = await openInitializedSse(harness);
  time.nowMs = AT_MS + 1;
  const answer = await session.post(call(1));
  t.is(answer.status, 410);
  await t.throwsAsync(session.stream.next(), undefined, 'the stream has ended');
  t.is(harness.sessions.size, 0);
  t.is((await session.post(call(2))).status, 410);
});

test('serves on after the date where it is told to, and still says that it should have ended', async (t) => {
  const { harness, time } = await start(t, 'serve');
  time.nowMs = AT_MS + 1;
  const session = await openInitializedSse(harness);
  const answer = await session.post(call(1));
  t.is(answer.status, 202);
  t.is(answer.headers.sunset, 'Wed, 31 Mar 2027 23:59:59 GMT');
});

test('a session over Streamable HTTP goes on as if nothing were', async (t) => {
  const { harness, time } = await start(t);
  time.nowMs = AT_MS + 1;
  const session = await openHttpSession(harness.port);
  t.regex(session.initialized, /"protocolVersion"/);
});
