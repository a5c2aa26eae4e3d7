import test from 'ava';
import { MAX_ASKED_AT_ONCE } from '../../../src/eras/asking-limits.ts';
import { BridgeError } from '../../../src/errors.ts';
import { MAX_WAITING_BYTES } from '../../../src/relay/shared/legacy/early-questions.ts';
import { clientFrame } from '../../support/frames.ts';
import { DISCOVERY, done, LegacyFront, type LegacySession, META, type Message, NEEDS_TASKS } from './legacy-session.ts';

const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const FORM = { type: 'object', properties: { name: { type: 'string' } } };
const elicit = { method: 'elicitation/create', params: { mode: 'form', message: 'Name?', requestedSchema: FORM } };
const sample = {
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 5 },
};
const roots = { method: 'roots/list' };
/** How a client can say that it is at work on the first question. */
const REPORTING = { _meta: { progressToken: 1 } };
const ACCEPTED = { action: 'accept', content: { name: 'Bo' } };

const required = (inputRequests: object | undefined, requestState?: string): object => ({
  resultType: 'input_required',
  ...(inputRequests && { inputRequests }),
  ...(requestState !== undefined && { requestState }),
});

function openSession(revision = '2025-11-25', capabilities: object = CAPABILITIES): LegacySession {
  return new LegacyFront().open({ revision, capabilities });
}

/** A call whose server needs this. Returns what the client was asked. */
function callThatNeeds(session: LegacySession, inputRequests: object, requestState?: string): readonly Message[] {
  session.call('call', { name: 'ask', arguments: { a: 1 } });
  session.asked();
  session.serverAnswers(required(inputRequests, requestState));
  return session.heard();
}

test('what the server needs is asked on the call it is for, and brought with the same call under a new id', (t) => {
  const session = openSession();
  session.call('call', { name: 'ask', arguments: { a: 1 }, _meta: { progressToken: 'p' } });
  const [first] = session.asked();
  const state = '"\\u0061\\/ opaque é"';
  const id = session.ids.at(-1);
  session.serverSays(
    `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"input_required","inputRequests":{"who":${JSON.stringify(elicit)}},"requestState":${state}}}`,
  );
  const [question] = session.peer.take();
  t.is(question?.call?.id, 'call');
  const asked = question?.frame.json() as Message;
  t.is(asked.method, 'elicitation/create');
  t.deepEqual(asked.params, { ...elicit.params, ...REPORTING });
  session.says({ id: asked.id, result: ACCEPTED });
  const [text] = session.askedTexts();
  t.true(text?.includes(`"requestState":${state}`), 'byte for byte');
  const retry = JSON.parse(text ?? '') as Message;
  t.not(retry.id, first?.id);
  const { inputResponses, requestState: _, ...params } = retry.params;
  t.deepEqual(inputResponses, { who: ACCEPTED });
  t.deepEqual(params, first?.params);
  session.serverAnswers(done());
  t.deepEqual(session.heard(), [
    { jsonrpc: '2.0', id: 'call', result: { content: [{ type: 'text', text: 'done' }] } } as never,
  ]);
  t.is(session.clock.pendingTimers, 1, 'only the subscription to come');
});

test('all questions of a round are asked at once, and only all answers together are brought', (t) => {
  const session = openSession();
  const asked = callThatNeeds(session, { who: elicit, what: sample, where: roots });
  t.deepEqual(
    asked.map(({ method }) => method),
    ['elicitation/create', 'sampling/createMessage', 'roots/list'],
  );
  t.deepEqual(Object.keys(asked[2]?.params), ['_meta'], 'nothing but how to report progress');
  const answers = [ACCEPTED, { role: 'assistant', model: 'm', content: { type: 'text', text: 'yo' } }, { roots: [] }];
  for (const index of [2, 0, 1]) {
    t.deepEqual(session.asked(), []);
    session.says({ id: asked[index]?.id, result: answers[index] });
  }
  const [retry] = session.asked();
  t.deepEqual(retry?.params.inputResponses, { who: answers[0], what: answers[1], where: answers[2] });
  t.is(retry?.params.requestState, undefined, 'there was none');
});

test('answers of an earlier round are not brought again, nor is its state', (t) => {
  const session = openSession();
  const [first] = callThatNeeds(session, { one: elicit }, 's1');
  session.says({ id: first?.id, result: ACCEPTED });
  session.asked();
  session.serverAnswers(required({ two: roots }));
  const [second] = session.heard();
  t.not(second?.id, first?.id);
  session.says({ id: second?.id, result: { roots: [] } });
  const { inputResponses, ...params } = session.asked()[0]?.params ?? {};
  t.deepEqual(inputResponses, { two: { roots: [] } });
  t.false('requestState' in params);
});

test('a URL to open gets the id that the revision of the client wants', (t) => {
  const session = openSession();
  const url = { mode: 'url', message: 'Sign in', url: 'https://example.com/a?b=c' };
  const [asked] = callThatNeeds(session, { who: { method: 'elicitation/create', params: url } });
  const { elicitationId, ...rest } = asked?.params ?? {};
  t.is(typeof elicitationId, 'string');
  t.deepEqual(rest, { ...url, ...REPORTING });
  session.says({ id: asked?.id, result: { action: 'accept' } });
  t.false(session.askedTexts()[0]?.includes('elicitationId'));
});

test('consent to open a URL says nothing else, whatever the client adds', (t) => {
  const session = openSession();
  const url = { mode: 'url', message: 'Sign in', url: 'https://example.com/' };
  const [visit, form] = callThatNeeds(session, { visit: { method: 'elicitation/create', params: url }, form: elicit });
  for (const asked of [visit, form]) session.says({ id: asked?.id, result: ACCEPTED });
  const { inputResponses } = session.asked()[0]?.params ?? {};
  t.deepEqual(inputResponses, { visit: { action: 'accept' }, form: ACCEPTED });
});

test('a client of 2025-06-18 is asked in the words of its revision', (t) => {
  const session = openSession('2025-06-18', { elicitation: {} });
  const [asked] = callThatNeeds(session, { who: elicit });
  t.deepEqual(asked?.params, { message: 'Name?', requestedSchema: FORM, ...REPORTING });
});

test('what a client cannot be asked for fails the call before anything is asked', (t) => {
  const session = openSession('2025-06-18', { elicitation: {}, roots: {} });
  const many = { type: 'array', items: { type: 'string', enum: ['a', 'b'] } };
  const params = { mode: 'form', message: 'm', requestedSchema: { type: 'object', properties: { tags: many } } };
  const [answer, ...rest] = callThatNeeds(session, { where: roots, which: { method: 'elicitation/create', params } });
  t.deepEqual(rest, []);
  t.is(answer?.id, 'call');
  t.true(answer?.result.isError);
});

test('a question answered with an error fails the call, withdraws the others, and the server hears nothing', (t) => {
  const session = openSession();
  const [form, sampling] = callThatNeeds(session, { who: elicit, what: sample });
  session.says({ id: sampling?.id, error: { code: -1, message: 'User rejected' } });
  const [withdrawn, answer, ...rest] = session.heard();
  t.is(withdrawn?.method, 'notifications/cancelled');
  t.is(withdrawn?.params.requestId, form?.id);
  t.is(answer?.id, 'call');
  t.true(answer?.result.isError);
  t.regex(answer?.result.content[0].text, /"what".*-1.*User rejected/);
  t.deepEqual(rest, []);
  session.says({ id: form?.id, result: ACCEPTED });
  t.deepEqual(session.asked(), []);
  t.deepEqual(session.heard(), []);
});

test('what is no tool fails with an error', (t) => {
  const session = openSession();
  session.call(1, { uri: 'test://a' }, 'resources/read');
  session.serverAnswers(required({ where: roots }));
  const [asked] = session.heard();
  session.says({ id: asked?.id, result: { notRoots: true } });
  const { code, data } = session.heard()[0]?.error ?? {};
  t.is(code, -32603);
  t.is(data.bridge.reason, 'ERR_CLIENT_INPUT');
});

test('who declines or cancels has answered', (t) => {
  for (const action of ['decline', 'cancel']) {
    const session = openSession();
    const [asked] = callThatNeeds(session, { who: elicit });
    session.says({ id: asked?.id, result: { action, content: { name: 'left over' } } });
    t.deepEqual(session.asked()[0]?.params.inputResponses, { who: { action } });
  }
});

test('a server that only wants to be asked again is, after longer and longer pauses', (t) => {
  const session = openSession();
  session.call(1);
  session.clock.advance(30);
  session.asked();
  for (const [round, pauseMs] of [250, 500, 1000, 2000, 4000, 5000].entries()) {
    session.serverAnswers(required(undefined, `s${round}`));
    session.clock.advance(pauseMs - 1);
    t.deepEqual(session.asked(), []);
    session.clock.advance(1);
    const [retry] = session.asked();
    t.is(retry?.params.requestState, `s${round}`);
    t.is(retry?.params.inputResponses, undefined);
  }
  session.serverAnswers(done());
  t.is(session.heard()[0]?.id, 1);
});

test('a server that never has enough is asked no more after ten rounds', (t) => {
  const session = openSession();
  session.call(1);
  for (let round = 1; round <= 10; round += 1) {
    session.serverAnswers(required({ who: elicit }, 's'));
    const [asked] = session.heard();
    session.says({ id: asked?.id, result: ACCEPTED });
  }
  t.is(session.asked().length, 11);
  session.serverAnswers(required({ who: elicit }, 's'));
  const [answer] = session.heard();
  t.true(answer?.result.isError);
  t.deepEqual(session.asked(), []);
});

test('a client that withdraws its call is not asked anymore', (t) => {
  const session = openSession();
  const [asked] = callThatNeeds(session, { who: elicit });
  session.says({ method: 'notifications/cancelled', params: { requestId: 'call' } });
  t.deepEqual(
    session.heard().map(({ method, params }) => [method, params.requestId]),
    [['notifications/cancelled', asked?.id]],
  );
  t.deepEqual(session.asked(), [], 'the server has nothing open');
  session.says({ id: asked?.id, result: ACCEPTED });
  t.deepEqual(session.asked(), []);
});

test('a client that withdraws a call during a pause is not waited for', (t) => {
  const session = openSession();
  session.call(1);
  session.serverAnswers(required(undefined, 's'));
  session.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  session.asked();
  session.clock.advance(10);
  t.is(session.clock.pendingTimers, 1, 'of the subscription');
});

test('a question that nobody answers fails its call in the end', (t) => {
  const session = openSession();
  const [asked] = callThatNeeds(session, { who: elicit });
  session.clock.advance(600_000 - 1);
  t.deepEqual(session.heard(), []);
  session.clock.advance(1);
  const [withdrawn, answer] = session.heard();
  t.is(withdrawn?.params.requestId, asked?.id);
  t.true(answer?.result.isError);
});

for (const how of ['says that its handshake is done', 'never says so'] as const) {
  test(`a call that comes early asks nothing of its client before that ${how}`, (t) => {
    const session = new LegacyFront().connect();
    session.initialize({ capabilities: CAPABILITIES });
    session.serverAnswers(DISCOVERY);
    session.heard();
    t.deepEqual(callThatNeeds(session, { who: elicit, where: roots }), []);
    session.call('withdrawn');
    session.serverAnswers(required({ who: elicit }));
    session.says({ method: 'notifications/cancelled', params: { requestId: 'withdrawn' } });
    session.heard();
    if (how === 'never says so') session.clock.advance(10_000);
    else session.says({ method: 'notifications/initialized' });
    const asked = session.heard();
    t.deepEqual(
      asked.map(({ method }) => method),
      ['elicitation/create', 'roots/list'],
    );
    session.asked();
    session.says({ id: asked[0]?.id, result: ACCEPTED });
    session.says({ id: asked[1]?.id, result: { roots: [] } });
    t.deepEqual(session.asked()[0]?.params.inputResponses, { who: ACCEPTED, where: { roots: [] } });
  });
}

test('a large question does not wait for a client that comes early: it is asked at once', (t) => {
  const session = new LegacyFront().connect();
  session.initialize({ capabilities: CAPABILITIES });
  session.serverAnswers(DISCOVERY);
  session.heard();
  const large = { ...sample, params: { ...sample.params, systemPrompt: 'x'.repeat(MAX_WAITING_BYTES) } };
  const asked = callThatNeeds(session, { where: roots, what: large });
  t.deepEqual(
    asked.map(({ method }) => method),
    ['roots/list', 'sampling/createMessage'],
  );
});

const HELD = { bytesPerPrincipal: 2000, bytes: 3000 };
const namedWith = (length: number): object => ({ action: 'accept', content: { name: 'x'.repeat(length) } });

function answer(client: LegacySession, question: Message | undefined, length: number): void {
  client.says({ id: question?.id, result: namedWith(length) });
}

/** Answers the questions of one round, one after the other; what the client is told then. */
function answerAll(session: LegacySession, asked: readonly Message[], length: number): readonly Message[] {
  for (const question of asked) answer(session, question, length);
  return session.heard();
}

test('answers that wait for others hold so much of a session, and of all; then the call goes on without', (t) => {
  const front = new LegacyFront({ heldLimits: HELD });
  const [ada, bob] = [front.open({ capabilities: CAPABILITIES }), front.open({ capabilities: CAPABILITIES })];
  const [first, second] = callThatNeeds(ada, { a: elicit, b: elicit });
  answer(ada, first, 1500);
  t.deepEqual(ada.heard(), []);
  const [third] = callThatNeeds(bob, { a: elicit, b: elicit });
  answer(bob, third, 1500);
  t.regex(bob.heard().at(-1)?.result.content[0].text, /memory for calls .* is used up; give shorter answers/);
  answer(ada, second, 500);
  t.like(ada.heard().at(-1), { id: 'call', result: { isError: true } }, 'of its own');
  const asked = callThatNeeds(bob, { a: elicit, b: elicit });
  t.deepEqual(answerAll(bob, asked, 500), [], 'more can be held again');
  t.is(bob.asked().length, 1);
});

for (const how of ['is answered', 'becomes a task', 'is withdrawn', 'ends with its session'] as const) {
  test(`what the server wants back counts until the call ${how}`, (t) => {
    const front = new LegacyFront({ heldLimits: HELD });
    const ada = front.open({ capabilities: CAPABILITIES });
    const [asked] = callThatNeeds(ada, { who: elicit }, 's'.repeat(1500));
    ada.call('other');
    ada.serverAnswers(required(undefined, 's'.repeat(1500)));
    t.regex(ada.heard()[0]?.result.content[0].text, /asked for input, but the memory for calls .* is used up/);
    answer(ada, asked, 1);
    t.is(ada.asked().length > 0, true);
    if (how === 'is answered') ada.serverAnswers(done());
    else if (how === 'becomes a task') {
      ada.serverRefuses(NEEDS_TASKS);
      ada.serverAnswers({ resultType: 'task', taskId: 't', status: 'working' });
    } else if (how === 'is withdrawn') ada.says({ method: 'notifications/cancelled', params: { requestId: 'call' } });
    else ada.relay.clientClosed(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
    const next = how === 'ends with its session' ? front.open({ capabilities: CAPABILITIES }) : ada;
    next.heard();
    for (const id of ['again', 'and-again']) {
      next.call(id);
      next.serverAnswers(required(undefined, 's'.repeat(900)));
    }
    t.deepEqual(next.heard(), []);
  });
}

test('a server that asks for too many things at once gets none', (t) => {
  const many = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, roots]));
  t.is(callThatNeeds(openSession(), many(MAX_ASKED_AT_ONCE)).length, MAX_ASKED_AT_ONCE);
  const [answer, ...others] = callThatNeeds(openSession(), many(MAX_ASKED_AT_ONCE + 1));
  t.regex(answer?.result.content[0].text, /it asked for more than 100 things at once/);
  t.deepEqual(others, []);
});

test('a client that reports progress about a question is given more time for it, but not for ever', (t) => {
  const session = openSession();
  const question = { ...elicit, params: { ...elicit.params, _meta: { progressToken: 'the server’s', kept: 1 } } };
  const [asked] = callThatNeeds(session, { who: question });
  t.deepEqual(asked?.params._meta, { progressToken: asked?.id, kept: 1 });
  const progress = (progressToken: unknown): void =>
    session.says({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
  for (const _ of [1, 2, 3]) {
    session.clock.advance(599_000);
    progress(asked?.id);
  }
  t.deepEqual(session.heard(), []);
  t.false(session.asked().some(({ method }) => method === 'notifications/progress'));
  session.clock.advance(1_800_000 - 3 * 599_000 - 1);
  t.deepEqual(session.heard(), []);
  session.clock.advance(1);
  t.true(session.heard().at(-1)?.result.isError);
});

test('progress about anything else gives no more time', (t) => {
  const session = openSession();
  callThatNeeds(session, { who: elicit });
  session.clock.advance(599_999);
  session.says({ method: 'notifications/progress', params: { progressToken: 'other', progress: 1 } });
  session.clock.advance(1);
  t.true(session.heard().at(-1)?.result.isError);
});

test('what the server must not require is its violation of the protocol', (t) => {
  const cases: [method: string, capabilities: object, result: object][] = [
    ['tools/list', CAPABILITIES, required({ who: elicit })],
    ['tools/call', {}, required({ who: elicit })],
    ['tools/call', CAPABILITIES, required(undefined)],
    ['tools/call', CAPABILITIES, required({ x: { method: 'tools/list' } })],
  ];
  for (const [method, capabilities, result] of cases) {
    const session = openSession('2025-11-25', capabilities);
    session.call(1, {}, method);
    session.serverAnswers(result);
    const [answer, ...rest] = session.heard();
    t.is(answer?.error.data.bridge.reason, 'ERR_UPSTREAM_PROTOCOL');
    t.deepEqual(rest, []);
  }
});

test('a question that found no way to the client counts as refused', (t) => {
  const session = openSession();
  const [asked] = callThatNeeds(session, { who: elicit });
  const reason = new BridgeError('ERR_CLIENT_NO_STREAM', 'no stream');
  session.relay.undeliverable(clientFrame({ id: asked?.id, method: 'elicitation/create' }), reason);
  t.true(session.heard().find(({ id }) => id === 'call')?.result.isError);
});

test('a retry that is sent again in another revision still brings the answers', (t) => {
  const session = openSession();
  const [asked] = callThatNeeds(session, { who: elicit }, 's');
  session.says({ id: asked?.id, result: ACCEPTED });
  session.asked();
  session.serverRefuses({ code: -32022, message: 'no', data: { supported: ['2026-07-28'] } });
  const { inputResponses, requestState } = session.asked()[0]?.params ?? {};
  t.deepEqual([inputResponses, requestState], [{ who: ACCEPTED }, 's']);
});

test('a retry goes with the log level of its time', (t) => {
  const session = openSession();
  const [asked] = callThatNeeds(session, { who: elicit });
  session.call('level', { level: 'debug' }, 'logging/setLevel');
  session.says({ id: asked?.id, result: ACCEPTED });
  t.is(session.asked()[0]?.params._meta[`${META}logLevel`], 'debug');
});

test('a session that ends in the middle of a round leaves no timer behind', (t) => {
  const session = openSession();
  callThatNeeds(session, { who: elicit });
  session.call('pause');
  session.serverAnswers(required(undefined, 's'));
  session.relay.clientClosed(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
  t.is(session.clock.pendingTimers, 0);
  t.is(session.link.closedWith.length, 1);
});

test('a server that is gone leaves no question open at the client', (t) => {
  const session = openSession();
  const [asked] = callThatNeeds(session, { who: elicit });
  session.serverCloses(new BridgeError('ERR_UPSTREAM_EXITED', 'gone'));
  const [withdrawn, answer] = session.heard();
  t.is(withdrawn?.params.requestId, asked?.id);
  t.is(answer?.id, 'call');
  t.is(session.clock.pendingTimers, 0);
});
