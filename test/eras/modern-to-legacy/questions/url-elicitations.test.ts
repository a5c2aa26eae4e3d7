import test from 'ava';
import { MAX_AWAITED_ID_LENGTH } from '../../../../src/eras/modern-to-legacy/questions/url-elicitations.ts';
import { ALL, ModernBridge, type ModernRequest } from '../modern-bridge.ts';

const requiredWith = (elicitationId: string) => ({
  code: -32042,
  message: 'visit these',
  data: {
    elicitations: [
      { mode: 'url', elicitationId, url: 'https://a', message: 'A' },
      { mode: 'url', elicitationId: 'e2', url: 'https://b', message: 'B' },
    ],
  },
});
const REQUIRED = requiredWith('e1');
const ACCEPTED = { 'elicitation-1': { action: 'accept' }, 'elicitation-2': { action: 'accept' } };

function refusedCall(bridge = new ModernBridge(), capabilities: object = ALL, error = REQUIRED) {
  const call = bridge.call({}, { capabilities });
  bridge.says({ id: bridge.heardOnly('tools/call').id, error });
  bridge.collect();
  return { bridge, answer: call.answer() };
}

function retry(bridge: ModernBridge, requestState: string, inputResponses: object): ModernRequest {
  return bridge.call({ requestState, inputResponses });
}

test('URLs a call requires are shown, and with consent the call is sent once more', (t) => {
  const { bridge, answer } = refusedCall();
  const { inputRequests, requestState } = answer.result;
  t.deepEqual(inputRequests['elicitation-1'], {
    method: 'elicitation/create',
    params: { mode: 'url', url: 'https://a', message: 'A' },
  });
  t.is(Object.keys(inputRequests).length, 2);
  bridge.says({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } });
  const again = retry(bridge, requestState, ACCEPTED);
  const twice = retry(bridge, requestState, ACCEPTED);
  t.deepEqual(bridge.heard(), [], 'one visit has not had its effect yet');
  bridge.says({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e2' } });
  const sent = bridge.heardOnly('tools/call');
  t.deepEqual(sent.params, { name: 'x', arguments: {} });
  bridge.says({ id: sent.id, result: { n: 1 } });
  t.is(again.answer().result.n, 1);
  t.is(twice.answer().result.n, 1);
});

test('a server that does not say that a visit is complete is not waited for', (t) => {
  const { bridge, answer } = refusedCall();
  const again = retry(bridge, answer.result.requestState, ACCEPTED);
  bridge.clock.advance(20_000);
  const sent = bridge.heardOnly('tools/call');
  bridge.says({ id: sent.id, error: REQUIRED });
  bridge.collect();
  t.deepEqual(Object.keys(again.answer().result.inputRequests), ['elicitation-3', 'elicitation-4'], 'another round');
});

test('the completion of a visit with an id that is too long to be kept is not waited for', (t) => {
  const error = requiredWith('x'.repeat(MAX_AWAITED_ID_LENGTH + 1));
  const { bridge, answer } = refusedCall(new ModernBridge(), ALL, error);
  retry(bridge, answer.result.requestState, ACCEPTED);
  bridge.says({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e2' } });
  bridge.clock.advance(0);
  bridge.heardOnly('tools/call');
  t.pass();
});

test('without consent the call is not sent again', (t) => {
  for (const action of ['decline', 'cancel']) {
    const { bridge, answer } = refusedCall();
    const again = retry(bridge, answer.result.requestState, { ...ACCEPTED, 'elicitation-1': { action } });
    t.like(again.answer().result, { isError: true, resultType: 'complete' });
    bridge.clock.advance(60_000);
    t.deepEqual(bridge.heard(), []);
  }
});

test('a call that goes on being refused comes to an end', (t) => {
  const bridge = new ModernBridge();
  let call = bridge.call();
  for (let round = 1; ; round++) {
    bridge.says({ id: bridge.heardOnly('tools/call').id, error: REQUIRED });
    bridge.collect();
    const answer = call.answer();
    if (answer.error !== undefined) {
      t.is(round, 11);
      return t.like(answer.error, { code: -32603, data: { bridge: { reason: 'too_many_rounds' } } });
    }
    const { inputRequests, requestState } = answer.result;
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action: 'accept' }]));
    call = bridge.call({ requestState, inputResponses });
    bridge.clock.advance(20_000);
  }
});

test('a client that shows no URLs is told what it lacks', (t) => {
  const { answer } = refusedCall(undefined, { elicitation: { form: {} } });
  t.like(answer.error, { code: -32021, data: { requiredCapabilities: { elicitation: { url: {} } } } });
});

test('the same error without URLs, or where nobody can be asked, is an error', (t) => {
  const bridge = new ModernBridge();
  for (const [method, data] of [
    ['tools/call', { elicitations: [{ url: 1 }] }],
    ['tools/call', undefined],
    ['tools/list', REQUIRED.data],
  ] as const) {
    const call = bridge.ask(method, { name: 'x' }, { capabilities: ALL });
    bridge.says({ id: bridge.heard().at(-1)?.id, error: { ...REQUIRED, data } });
    t.like(call.answer().error, { code: -32603, data: { bridge: { originalCode: -32042 } } });
  }
});
