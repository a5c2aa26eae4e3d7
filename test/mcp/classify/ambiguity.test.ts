import test from 'ava';
import { isAmbiguous, readToolName } from '../../../src/mcp/classify/ambiguity.ts';
import { clientFrame } from '../../support/frames.ts';

const message = (method: string, params: string) =>
  clientFrame(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`);

for (const [method, params] of [
  ['tools/call', '{"name":"a","Name":"b"}'],
  ['tools/call', '{"Name":"b"}'],
  ['tools/call', '{"name":"a","n\\u0061me":"b"}'],
  ['tools/call', '{"name":"a","arguments":{},"ARGUMENTS":{}}'],
  ['tools/call', '{"name":"a","taſk":{}}'],
  ['tools/call', '{"name":"a","Tas\\u212a":{}}'],
  ['tools/call', '{"name":"a","_META":{}}'],
  ['tools/call', '{"name":"a","_meta":{"ProgressToken":1}}'],
  ['tasks/get', '{"taskId":"a","taskid":"b"}'],
  ['notifications/cancelled', '{"requestId":1,"requestID":2}'],
  ['resources/subscribe', '{"URI":"x:y"}'],
  ['subscriptions/listen', '{"notifications":{},"Notifications":{}}'],
  ['x-vendor/do', '{"_meta":{},"_Meta":{}}'],
  ['x-vendor/do', '{"_meta":{"progressToken":1,"progressToken":2}}'],
  ['x-vendor/do', '{"_meta":{"io.modelcontextprotocol/LogLevel":"debug"}}'],
] as const) {
  test(`${method} with ${params} can be read in two ways`, (t) => {
    t.true(isAmbiguous(message(method, params)));
  });
}

for (const [method, params] of [
  ['tools/call', '{"name":"a","arguments":{"Name":"b","name":"c"},"_meta":{"progressToken":1}}'],
  ['tools/call', '{"n\\u0061me":"a","names":1,"x-Name":2}'],
  ['tools/call', '["a"]'],
  ['x-vendor/do', '{"Name":"a","name":"b","URI":1,"_meta":[1]}'],
] as const) {
  test(`${method} with ${params} can be read in one way only`, (t) => {
    t.false(isAmbiguous(message(method, params)));
  });
}

test('an answer, and a message without params, can be read in one way only', (t) => {
  t.false(isAmbiguous(clientFrame({ id: 1, result: { name: 1, Name: 2 } })));
  t.false(isAmbiguous(clientFrame({ id: 1, method: 'tools/list' })));
});

for (const [params, name] of [
  ['{"name":"a"}', 'a'],
  ['{"n\\u0061me":"\\u0062"}', 'b'],
  ['{"name":""}', ''],
  ['{"name":"a","NAME":"b"}', undefined],
  ['{"name":"a","name":"a"}', undefined],
  ['{"name":["a"]}', undefined],
  ['{"name":null}', undefined],
  ['{}', undefined],
  ['["a"]', undefined],
] as const) {
  test(`the tool that is certainly called with ${params}: ${name}`, (t) => {
    t.is(readToolName(message('tools/call', params)), name);
  });
}

test('another request than tools/call names no tool', (t) => {
  t.is(readToolName(message('prompts/get', '{"name":"a"}')), undefined);
});
