import test from 'ava';
import { readInputRequired } from '../../../src/mcp/classify/input-required.ts';
import { inputKey, inputRequiredFrame, toInputRequest } from '../../../src/mcp/translate/input-requests.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';
import { schemaFaults } from '../../support/schema.ts';

const question = (method: string, params: string | undefined) =>
  serverFrame(`{"jsonrpc":"2.0","id":7,"method":"${method}"${params === undefined ? '' : `,"params":${params}`}}`);

test('names what is asked so that a log tells what it was', (t) => {
  t.is(inputKey('elicitation/create', 1), 'elicitation-1');
  t.is(inputKey('sampling/createMessage', 12), 'sampling-12');
  t.is(inputKey('roots/list', 2), 'roots-2');
});

for (const [title, method, params, expected] of [
  ['roots without params', 'roots/list', undefined, undefined],
  ['roots with nothing left', 'roots/list', '{"_meta":{"progressToken":1}}', undefined],
  [
    'roots with a trace',
    'roots/list',
    '{"_meta":{"progressToken":1,"traceparent":"x"}}',
    '{"_meta":{"traceparent":"x"}}',
  ],
  [
    'a form',
    'elicitation/create',
    '{ "message":"?","requestedSchema":{"maximum":1e400} }',
    '{ "message":"?","requestedSchema":{"maximum":1e400} }',
  ],
  [
    'a URL',
    'elicitation/create',
    '{"mode":"url","message":"?","elicitationId":"e","url":"a:b"}',
    '{"mode":"url","message":"?","url":"a:b"}',
  ],
  [
    'a question of a task',
    'elicitation/create',
    '{"task":{"ttl":1},"_meta":{"io.modelcontextprotocol/related-task":{}},"message":"?"}',
    '{"message":"?"}',
  ],
  [
    'sampling',
    'sampling/createMessage',
    '{"elicitationId":1,"messages":[],"_meta":{"a":1}}',
    '{"elicitationId":1,"messages":[],"_meta":{"a":1}}',
  ],
] as const) {
  test(`makes an input request of ${title}`, (t) => {
    const request = toInputRequest(question(method, params)).toString();
    t.is(request, `{"method":"${method}"${expected === undefined ? '' : `,"params":${expected}`}}`);
  });
}

test('asks for several things in one answer that the schema knows and the other side of the bridge can read', (t) => {
  const requests = new Map([
    ['roots-1', toInputRequest(question('roots/list', undefined))],
    [
      'elicitation-2',
      toInputRequest(
        question('elicitation/create', '{"message":"?","requestedSchema":{"type":"object","properties":{}}}'),
      ),
    ],
    [
      'elicitation-3',
      toInputRequest(question('elicitation/create', '{"mode":"url","message":"?","url":"a:b","elicitationId":"e"}')),
    ],
    ['sampling-4', toInputRequest(question('sampling/createMessage', '{"messages":[],"maxTokens":5}'))],
  ]);
  const serverInfo = { name: 's', version: '1' };
  const frame = inputRequiredFrame(Buffer.from('"\\u0061"'), { requests, requestState: 'a"b', serverInfo });
  t.deepEqual(frame, clientFrame(frame.bytes.toString()));
  t.true(frame.bytes.includes('"id":"\\u0061"'));
  const { result } = frame.json() as { result: Record<string, unknown> };
  t.deepEqual(schemaFaults('2026-07-28', 'InputRequiredResult', result), []);
  t.deepEqual(result._meta, { 'io.modelcontextprotocol/serverInfo': serverInfo });
  const read = readInputRequired(frame, { roots: {}, sampling: {}, elicitation: { form: {}, url: {} } });
  if ('fault' in read) return t.fail(read.fault);
  t.deepEqual([...read.requests.keys()], [...requests.keys()]);
  t.is(read.requestState?.toString(), '"a\\"b"');
});

test('leaves out the name of a server that has none', (t) => {
  const frame = inputRequiredFrame(1, { requests: new Map(), requestState: 's', serverInfo: undefined });
  t.deepEqual(frame.json(), {
    jsonrpc: '2.0',
    id: 1,
    result: { resultType: 'input_required', inputRequests: {}, requestState: 's' },
  });
});
