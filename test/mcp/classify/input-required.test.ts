import test from 'ava';
import { readInputRequired, resultTypeOf, withInputAnswers } from '../../../src/mcp/classify/input-required.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

const answer = (result: string) => serverFrame(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
const all = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };

for (const [title, result, type] of [
  ['complete', '{"resultType":"complete"}', 'complete'],
  ['absent', '{"x":{"resultType":"input_required"}}', 'complete'],
  ['of a result that is no object', '[]', 'complete'],
  ['input_required', '{"a":1,"resultType":"input_required"}', 'input_required'],
  ['spelled with escapes', '{"result\\u0054ype":"input\\u005frequired"}', 'input_required'],
  ['of an extension', '{"resultType":"task"}', 'task'],
  ['no text', '{"resultType":null}', undefined],
  ['given twice', '{"resultType":"complete","resultType":"input_required"}', undefined],
] as const) {
  test(`reads the type of a result: ${title}`, (t) => {
    t.is(resultTypeOf(answer(result)), type);
  });
}

test('reads what is required, byte for byte', (t) => {
  const read = readInputRequired(
    answer(
      '{"inputRequests":{"a":{"method":"elicitation/create","params":{"n":1e400}},"b":{"method":"roots/list"},' +
        '"__proto__":{"params":{"messages":[]},"method":"sampling\\/createMessage"}},"requestState":"\\u0041\\n"}',
    ),
    all,
  );
  if ('fault' in read) return t.fail(read.fault);
  t.deepEqual(
    [...read.requests].map(([key, { method, params }]) => [key, method, params?.toString()]),
    [
      ['a', 'elicitation/create', '{"n":1e400}'],
      ['b', 'roots/list', undefined],
      ['__proto__', 'sampling/createMessage', '{"messages":[]}'],
    ],
  );
  t.is(read.requestState?.toString(), '"\\u0041\\n"');
});

test('either requests or a state will do', (t) => {
  const stateOnly = readInputRequired(answer('{"requestState":"","inputRequests":null}'), {});
  t.is('fault' in stateOnly ? stateOnly.fault : stateOnly.requests.size, 0);
  const requestsOnly = readInputRequired(answer('{"inputRequests":{"a":{"method":"roots/list"}}}'), all);
  t.is('fault' in requestsOnly ? requestsOnly.fault : requestsOnly.requestState, undefined);
});

for (const [title, result, fault] of [
  ['nothing', '{}', 'neither inputRequests nor requestState says what is required'],
  ['no requests', '{"inputRequests":{}}', 'neither inputRequests nor requestState says what is required'],
  ['a list of requests', '{"inputRequests":[]}', 'inputRequests must be an object'],
  ['requests twice', '{"inputRequests":{},"inputRequests":{}}', 'inputRequests or requestState occurs twice'],
  [
    'a key twice',
    '{"inputRequests":{"a":{"method":"roots/list"},"\\u0061":{"method":"roots/list"}}}',
    'a key of inputRequests occurs twice',
  ],
  ['a state that is no text', '{"requestState":{}}', 'requestState must be a string'],
  ['a request that is none', '{"inputRequests":{"a":1}}', 'an input request has a method that is none'],
  ['another method', '{"inputRequests":{"a":{"method":"tools/call"}}}', 'an input request has a method that is none'],
  ['a method that is no text', '{"inputRequests":{"a":{"method":[]}}}', 'an input request has a method that is none'],
  [
    'params by position',
    '{"inputRequests":{"a":{"method":"roots/list","params":[]}}}',
    'the params of an input request must be an object',
  ],
  [
    'what the client cannot do',
    '{"inputRequests":{"a":{"method":"sampling/createMessage","params":{"tools":[]}}}}',
    'an input request is not allowed: the client did not declare sampling.tools',
  ],
] as const) {
  test(`finds fault with a server that requires ${title}`, (t) => {
    t.deepEqual(readInputRequired(answer(result), all), { fault });
  });
}

const call = (params: string) => clientFrame(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);

test('repeats a request with the answers of this round only', (t) => {
  const first = withInputAnswers(call('{"name":"x"}'), {
    responses: new Map([
      ['a', Buffer.from('{"n":1e400}')],
      ['b"', Buffer.from('{}')],
    ]),
    requestState: Buffer.from('"\\u0041"'),
  });
  const answered = '{"name":"x","inputResponses":{"a":{"n":1e400},"b\\"":{}},"requestState":"\\u0041"}';
  t.deepEqual(first, call(answered));
  const second = withInputAnswers(first, { responses: new Map(), requestState: Buffer.from('"2"') });
  t.deepEqual(second, call('{"name":"x","requestState":"2"}'));
  const third = withInputAnswers(second, { responses: new Map([['c', Buffer.from('{}')]]), requestState: undefined });
  t.deepEqual(third, call('{"name":"x","inputResponses":{"c":{}}}'));
});

test('refuses more requests than anybody would ask at once', (t) => {
  const requests = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, { method: 'roots/list' }]));
  const read = (count: number) =>
    readInputRequired(answer(JSON.stringify({ resultType: 'input_required', inputRequests: requests(count) })), all);
  t.false('fault' in read(1000));
  t.deepEqual(read(1001), { fault: 'inputRequests has more than 1000 of them' });
});
