import test from 'ava';
import { MAX_ATTEMPTS, MAX_TASK_ID_LENGTH } from '../../../src/eras/legacy-to-modern/absorbed-task.ts';
import { BridgeError } from '../../../src/errors.ts';
import { done, LegacyFront, type LegacySession, META, NEEDS_TASKS, TASKS_EXTENSION } from './legacy-session.ts';

const task = (status: string, more: object = {}): object => ({
  resultType: 'complete',
  taskId: 't/1',
  status,
  pollIntervalMs: 500,
  ...more,
});

/** A call that its server runs as a task. */
function startTask(more: object = {}): LegacySession {
  const session = new LegacyFront().open({ capabilities: { elicitation: {} } });
  session.clock.advance(30);
  session.asked();
  session.call('call', { name: 'slow', task: { ttl: 5 } });
  const [first] = session.asked();
  session.serverRefuses(NEEDS_TASKS);
  const [second] = session.asked();
  const declared = (message = first) => message?.params._meta[`${META}clientCapabilities`].extensions;
  if (declared() !== undefined || declared(second)?.[TASKS_EXTENSION] === undefined)
    throw new Error('tasks are not declared');
  session.serverAnswers(task('working', { resultType: 'task', ...more }));
  return session;
}

/** Lets the pause pass and answers what is asked then. */
function poll(session: LegacySession, answer: object): void {
  session.clock.advance(499);
  if (session.asked().length > 0) throw new Error('asked too early');
  session.clock.advance(1);
  const [get] = session.asked();
  if (get?.method !== 'tasks/get' || get.params.taskId !== 't/1') throw new Error('the task is not asked for');
  session.serverAnswers(answer);
}

test('a call that its server runs only as a task is followed to its end', (t) => {
  const session = startTask();
  poll(session, task('working'));
  t.deepEqual(session.heard(), []);
  poll(session, task('completed', { result: { ...done(), _meta: { [`${META}serverInfo`]: {} } } }));
  t.deepEqual(session.heard(), [
    { jsonrpc: '2.0', id: 'call', result: { content: [{ type: 'text', text: 'done' }] } } as never,
  ]);
  t.is(session.clock.pendingTimers, 0);
  t.deepEqual(session.asked(), []);
});

test('what the task needs is asked of the client, once', (t) => {
  const session = startTask();
  const inputRequests = { who: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: {} } } };
  poll(session, task('input_required', { inputRequests }));
  const [asked] = session.heard();
  session.says({ id: asked?.id, result: { action: 'accept', content: {} } });
  const [update] = session.asked();
  t.is(update?.method, 'tasks/update');
  t.deepEqual(update?.params.inputResponses, { who: { action: 'accept', content: {} } });
  session.serverAnswers({ resultType: 'complete' });
  poll(session, task('input_required', { inputRequests }));
  t.deepEqual(session.heard(), []);
  poll(session, task('failed', { error: { code: -32000, message: 'broken' } }));
  t.deepEqual(session.heard()[0]?.error, { code: -32000, message: 'broken' });
});

test('a task whose id cannot be kept breaks the protocol', (t) => {
  const session = startTask({ taskId: 'x'.repeat(MAX_TASK_ID_LENGTH + 1) });
  t.regex(session.heard()[0]?.error.message, /its task has no id that can be kept/);
  t.is(session.clock.pendingTimers, 0);
});

test('what was answered is not asked again, but of endless keys only the latest are known', (t) => {
  const session = startTask();
  const question = { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: {} } };
  const keys = Array.from({ length: 65 }, (_, n) => `${n}`.padEnd(1024, 'x'));
  const inputRequests = Object.fromEntries(keys.map((key) => [key, question]));
  poll(session, task('input_required', { inputRequests }));
  for (const { id } of session.heard()) session.says({ id, result: { action: 'accept', content: {} } });
  session.asked();
  session.serverAnswers({ resultType: 'complete' });
  poll(session, task('input_required', { inputRequests }));
  t.is(session.heard().length, 1);
});

test('a client that withdraws its call cancels the task', (t) => {
  const session = startTask();
  session.says({ method: 'notifications/cancelled', params: { requestId: 'call' } });
  const [cancel, ...rest] = session.asked();
  t.is(cancel?.method, 'tasks/cancel');
  t.is(cancel?.params.taskId, 't/1');
  t.deepEqual(rest, []);
  session.serverAnswers({ resultType: 'complete' });
  session.clock.advance(60_000);
  t.deepEqual(session.asked(), []);
  t.deepEqual(session.heard(), []);
});

for (const how of ['is told', 'does not answer'] as const) {
  test(`a server that ${how} when a client leaves with a task open is left all the same`, (t) => {
    const session = startTask();
    session.call('other');
    session.asked();
    session.relay.clientClosed(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
    const left = session.asked();
    t.deepEqual(
      left.map(({ method }) => method),
      ['notifications/cancelled', 'notifications/cancelled', 'tasks/cancel'],
      'the subscription, the other call and the task',
    );
    t.is(left[2]?.params.taskId, 't/1');
    t.deepEqual(session.link.closedWith, [], 'it is still to be heard');
    session.clock.advance(1999);
    t.deepEqual(session.link.closedWith, []);
    if (how === 'is told') session.serverAnswers({ resultType: 'complete' });
    else session.clock.advance(1);
    t.is(session.link.closedWith.length, 1);
    t.is(session.clock.pendingTimers, 0);
    t.deepEqual(session.asked(), []);
  });
}

test('a server that ends while it is being left is nobody’s affair', (t) => {
  const session = startTask();
  session.relay.clientClosed(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
  session.serverCloses(new BridgeError('ERR_UPSTREAM_EXITED', 'gone'));
  t.is(session.clock.pendingTimers, 0);
  t.is(session.ends.length, 1);
});

const failure = (reason: string, more: object = {}): object => ({
  code: -32603,
  message: 'not reached',
  data: { bridge: { reason, ...more } },
});

for (const error of [
  failure('ERR_UPSTREAM_CONNECT'),
  failure('ERR_UPSTREAM_DELIVERY'),
  failure('ERR_UPSTREAM_HTTP', { status: 503 }),
]) {
  test(`a task goes on when its server is out of reach for a while: ${JSON.stringify(error)}`, (t) => {
    const session = startTask();
    session.clock.advance(500);
    for (const pauseMs of [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      session.asked();
      session.serverRefuses(error);
      session.clock.advance(pauseMs - 1);
      t.deepEqual(session.asked(), []);
      session.clock.advance(1);
    }
    t.is(session.asked()[0]?.method, 'tasks/get');
    session.serverAnswers(task('working'));
    t.deepEqual(session.heard(), []);
    poll(session, task('completed', { result: done() }));
    t.is(session.heard()[0]?.result.content[0].text, 'done');
    t.is(session.clock.pendingTimers, 0);
  });
}

test('answers that have not reached the server are sent again', (t) => {
  const session = startTask();
  const inputRequests = { who: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: {} } } };
  poll(session, task('input_required', { inputRequests }));
  const [asked] = session.heard();
  session.says({ id: asked?.id, result: { action: 'accept', content: {} } });
  const [update] = session.asked();
  session.serverRefuses(failure('ERR_UPSTREAM_DELIVERY'));
  session.clock.advance(500);
  const [again] = session.asked();
  t.is(again?.method, 'tasks/update');
  t.deepEqual(again?.params.inputResponses, update?.params.inputResponses);
  session.serverAnswers({ resultType: 'complete' });
  poll(session, task('completed', { result: done() }));
  t.is(session.heard()[0]?.result.content[0].text, 'done');
});

for (const error of [
  failure('ERR_UPSTREAM_HTTP', { status: 404 }),
  failure('ERR_UPSTREAM_AUTH'),
  { code: -32602, message: 'unknown task' },
]) {
  test(`a task ends with an error that will not pass: ${JSON.stringify(error)}`, (t) => {
    const session = startTask();
    poll(session, task('working'));
    session.clock.advance(500);
    session.asked();
    session.serverRefuses(error);
    t.deepEqual(session.heard()[0]?.error, error);
    t.is(session.clock.pendingTimers, 0);
  });
}

test('a server that stays out of reach ends the call at last', (t) => {
  const session = startTask();
  session.clock.advance(500);
  for (let n = 0; n < MAX_ATTEMPTS; n += 1) {
    session.asked();
    session.serverRefuses(failure('ERR_UPSTREAM_CONNECT'));
    t.deepEqual(session.heard(), []);
    session.clock.advance(30_000);
  }
  session.serverRefuses(failure('ERR_UPSTREAM_CONNECT'));
  t.is(session.heard()[0]?.error.data.bridge.reason, 'ERR_UPSTREAM_CONNECT');
  t.is(session.clock.pendingTimers, 0);
});

test('a client that does not give what the task needs ends it', (t) => {
  const session = startTask();
  const inputRequests = { who: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: {} } } };
  poll(session, task('input_required', { inputRequests }));
  const [asked] = session.heard();
  session.says({ id: asked?.id, error: { code: -1, message: 'no' } });
  t.deepEqual(
    session.asked().map(({ method }) => method),
    ['tasks/cancel'],
  );
  t.true(session.heard()[0]?.result.isError);
});

test('a task whose question nobody answers ends with the question', (t) => {
  const session = startTask();
  const inputRequests = { who: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: {} } } };
  poll(session, task('input_required', { inputRequests }));
  session.heard();
  session.clock.advance(600_000);
  t.is(session.asked()[0]?.method, 'tasks/cancel');
  t.true(session.heard().at(-1)?.result.isError);
  t.is(session.clock.pendingTimers, 0);
});

test('a server that needs more than tasks is told nothing, and its client what it lacks', (t) => {
  const session = new LegacyFront().open();
  session.call(1);
  session.asked();
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} }, sampling: {} };
  session.serverRefuses({ ...NEEDS_TASKS, data: { requiredCapabilities } });
  t.is(session.heard()[0]?.error.code, -32021);
  t.deepEqual(session.asked(), []);
});
