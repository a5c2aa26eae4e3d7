/**
 * Two callers with tokens of their own, before the built program: with an id of the other one, each gets byte for byte
 * what it gets with an id that was never given out, and the other one notices nothing.
 */
import test, { type ExecutionContext } from 'ava';
import { META, modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { callHttp, type HttpAnswer, type HttpCall } from '../support/http-call.ts';
import { call, initialize, JSON_HEADERS, POST_HEADERS } from '../support/legacy-clients.ts';

const TOKENS = { ALICE: 'a-long-token-of-alice', BOB: 'a-long-token-of-bob' };
const ALICE = { Authorization: `Bearer ${TOKENS.ALICE}` };
const BOB = { Authorization: `Bearer ${TOKENS.BOB}` };
type Who = typeof ALICE;

/** Before a server whose tools run as tasks, some of them with a question. */
async function start(t: ExecutionContext): Promise<{ readonly bridge: Bridge; readonly port: number }> {
  const tokens = ['--auth-token', 'alice=env:ALICE', '--auth-token', 'bob=env:BOB'];
  const server = ['--', process.execPath, 'test/fixtures/servers/runs-as-task.js'];
  const bridge = await startBridge([...tokens, ...server], { env: TOKENS });
  t.teardown(() => bridge.stop());
  return { bridge, port: Number(bridge.url.port) };
}

/** All that can be seen of an answer, with the id that was asked for taken out where it is repeated. */
async function seen(answer: HttpAnswer, id: string): Promise<object> {
  const { date: _date, ...headers } = answer.headers;
  return { status: answer.status, headers, body: (await answer.text()).replaceAll(id, '<id>') };
}

/** The result of a call, whichever way it comes. */
async function resultOf<Result>(answer: HttpAnswer): Promise<Result> {
  const message = answer.isEventStream ? (await answer.events().rest()).at(-1)?.data : await answer.text();
  return JSON.parse(message ?? '').result;
}

/** Another of the same form. */
function changed(id: string, at = 0): string {
  const other = id[at] === 'A' ? 'B' : 'A';
  return `${id.slice(0, at)}${other}${id.slice(at + 1)}`;
}

const capabilities = (declared: object) => ({ [`${META}clientCapabilities`]: declared });
const CAN_BE_ASKED = capabilities({ elicitation: { form: {} } });
const HAS_TASKS = capabilities({ extensions: { 'io.modelcontextprotocol/tasks': {} } });

test('the requestState of another caller is one that was never given out', async (t) => {
  const { port } = await start(t);
  const asking = { name: 'asks', arguments: {} };
  const post = (who: Who, more: object = {}) =>
    postModern({ port }, modern(1, 'tools/call', { ...asking, ...more }, CAN_BE_ASKED), who);
  type Asked = { readonly requestState: string; readonly inputRequests: object };
  const { requestState: state, inputRequests } = await resultOf<Asked>(await post(ALICE));
  const [key = ''] = Object.keys(inputRequests);
  const inputResponses = { [key]: { action: 'accept', content: { name: 'eve' } } };
  const attempt = async (who: Who, requestState: string) =>
    seen(await post(who, { requestState, inputResponses }), requestState);
  const never = await attempt(BOB, changed(state, state.length - 5));
  t.like(never, { status: 200 });
  t.regex(JSON.stringify(never), /state_invalid/);
  t.deepEqual(await attempt(BOB, state), never);
  t.deepEqual(await attempt(ALICE, changed(state, state.length - 5)), never);
  const { requestState: ofBob } = await resultOf<Asked>(await post(BOB));
  t.deepEqual(await attempt(ALICE, ofBob), never);
  const answer = await post(ALICE, { requestState: state, inputResponses: { [key]: { action: 'decline' } } });
  t.regex(await answer.text(), /decline/, 'for its owner the call goes on');
});

test('the tasks of another caller are tasks that never were', async (t) => {
  const { port } = await start(t);
  const post = (who: Who, method: string, params: { readonly taskId?: string; readonly [more: string]: unknown }) => {
    const named = params.taskId === undefined ? {} : { 'Mcp-Name': params.taskId };
    return postModern({ port }, modern(1, method, params, HAS_TASKS), { ...named, ...who });
  };
  const created = await post(ALICE, 'tools/call', { name: 'waits', arguments: {} });
  const { taskId } = await resultOf<{ readonly taskId: string }>(created);
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const attempt = async (who: Who, id: string) =>
      seen(await post(who, method, { taskId: id, inputResponses: {} }), id);
    const never = await attempt(BOB, changed(taskId));
    t.regex(JSON.stringify(never), /no such task/);
    t.deepEqual(await attempt(BOB, taskId), never, method);
  }
  const acknowledged = async (who: Who, id: string): Promise<string> => {
    const answer = await post(who, 'subscriptions/listen', { notifications: { taskIds: [id] } });
    const { data } = await answer.events().next();
    answer.leave();
    return data;
  };
  t.is(await acknowledged(BOB, taskId), await acknowledged(BOB, changed(taskId)));
  t.true((await acknowledged(ALICE, taskId)).includes(taskId), 'for its owner it is there');
  t.like(await resultOf(await post(ALICE, 'tasks/get', { taskId })), { status: 'working' });
});

test('the session and the events of another caller are none', async (t) => {
  const { port } = await start(t);
  const send = (who: Who, more: Omit<HttpCall, 'port'>) =>
    callHttp({ port, ...more, headers: { ...POST_HEADERS, ...more.headers, ...who } });
  const open = async (who: Who): Promise<string> => {
    const answer = await send(who, { method: 'POST', body: JSON.stringify(initialize()) });
    await answer.text();
    return String(answer.headers['mcp-session-id']);
  };
  const [id, ownId] = await Promise.all([open(ALICE), open(BOB)]);
  const streamOf = (who: Who, session: string, lastEventId?: string) =>
    send(who, {
      headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': session, 'Last-Event-ID': lastEventId },
    });
  const stream = await streamOf(ALICE, id);
  const eventId = (await stream.events().next()).id ?? '';
  t.regex(eventId, /^\d+-\d+$/);
  const body = JSON.stringify(call(1));
  const attempts: Readonly<Record<string, (session: string) => Promise<HttpAnswer>>> = {
    'a call': (session) => send(BOB, { method: 'POST', body, headers: { 'Mcp-Session-Id': session } }),
    'its stream': (session) => streamOf(BOB, session),
    'its events': (session) => streamOf(BOB, session, eventId),
    'its end': (session) => send(BOB, { method: 'DELETE', headers: { 'Mcp-Session-Id': session } }),
    'its id at the other transport': (session) =>
      send(BOB, { method: 'POST', path: `/messages?sessionId=${session}`, body, headers: JSON_HEADERS }),
  };
  for (const [what, attempt] of Object.entries(attempts)) {
    const never = await seen(await attempt(changed(id)), changed(id));
    t.like(never, { status: 404 }, what);
    t.deepEqual(await seen(await attempt(id), id), never, what);
  }
  const inOwnSession = async (lastEventId: string) => seen(await streamOf(BOB, ownId, lastEventId), lastEventId);
  t.deepEqual(await inOwnSession(eventId), await inOwnSession('7-7'), 'an event id is one of its session only');
  stream.leave();
  t.is((await send(ALICE, { method: 'DELETE', headers: { 'Mcp-Session-Id': id } })).status, 204);
});

test('nobody ends or hears the subscription of another caller, by its id or under the same id', async (t) => {
  const { port } = await start(t);
  const listen = (who: Who) =>
    postModern({ port }, modern('sub', 'subscriptions/listen', { notifications: { toolsListChanged: true } }), who);
  const streams = [await listen(ALICE), await listen(BOB)];
  const readers = streams.map((stream) => stream.events());
  for (const reader of readers) t.regex((await reader.next()).data, /acknowledged.*"sub"|"sub".*acknowledged/);
  const cancel = async (requestId: string) => {
    const message = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } };
    const headers = { ...POST_HEADERS, ...BOB, 'MCP-Protocol-Version': '2026-07-28' };
    return seen(await callHttp({ port, method: 'POST', headers, body: JSON.stringify(message) }), requestId);
  };
  t.deepEqual(await cancel('sub'), await cancel('never'));
  const [alice, bob] = readers;
  streams[1]?.leave();
  t.is(await bob?.closed, 'cut');
  let isOver = false;
  void alice?.closed.then(() => {
    isOver = true;
  });
  t.is((await listen(BOB)).status, 200);
  t.false(isOver);
  for (const stream of streams) stream.leave();
});
