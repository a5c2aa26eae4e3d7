import test from 'ava';
import { type Message, only, reasonOf, SharedBridge } from './shared-bridge.ts';

function twoClients() {
  const bridge = new SharedBridge();
  return { bridge, a: bridge.join(), b: bridge.join() };
}

for (const [title, meta] of [
  ['twice', '"_meta":{"progressToken":1,"progressToken":1}'],
  ['twice, once in escapes', '"_meta":{"progressToken":"x","progress\\u0054oken":1}'],
  ['in one of two _meta', '"_meta":{},"_meta":{"progressToken":1}'],
  ['in one of two _meta, one in escapes', '"_meta":{"progressToken":"x"},"\\u005fmeta":{"progressToken":1}'],
  ['as true, which some read as 1', '"_meta":{"progressToken":true}'],
  ['as an array', '"_meta":{"progressToken":[1]}'],
] as const) {
  test(`a token that is given ${title} is refused: the server might read that of another client`, (t) => {
    const { bridge, a } = twoClients();
    a.says(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${meta}}}`);
    t.deepEqual(bridge.heard(), []);
    const answer = only(a.heard());
    t.is(answer.error?.code, -32600);
    t.is(answer.id, 1);
    t.is(reasonOf(answer), 'ERR_WIRE_MESSAGE');
    t.is(a.relay.openCalls, 0);
  });
}

for (const member of ['"Name":"y"', '"taſk":{}', '"name":"y"', '"_meta":{"_meta":{}},"_Meta":{}']) {
  test(`a call with ${member} in its params is refused: some servers read names in any case`, (t) => {
    const { bridge, a } = twoClients();
    a.says(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x",${member}}}`);
    t.deepEqual(bridge.heard(), []);
    t.is(reasonOf(only(a.heard())), 'ERR_WIRE_MESSAGE');
  });
}

test('so is one with a token under a name in another case', (t) => {
  const { bridge, a } = twoClients();
  for (const meta of ['"_meta":{"progresstoken":1}', '"_META":{"progressToken":1}']) {
    a.says(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{${meta}}}`);
    t.deepEqual(bridge.heard(), []);
    t.is(reasonOf(only(a.heard())), 'ERR_WIRE_MESSAGE');
  }
});

test('a cancellation that could be read as one of another id is told in plain words', (t) => {
  for (const extra of ['"params":{"requestId":7,"RequestId":1}', '"params":{"requestId":7,"_meta":{},"_Meta":{}}']) {
    const { bridge, a, b } = twoClients();
    b.call(1);
    a.call(7);
    const [, call] = bridge.heard() as [Message, Message];
    a.says(`{"jsonrpc":"2.0","method":"notifications/cancelled",${extra}}`);
    t.deepEqual(bridge.heard(), [
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: call.id } },
    ]);
    bridge.says({ id: call.id, result: {} });
    t.deepEqual(a.heard(), []);
  }
});

test('a notification that could be read as another is dropped', (t) => {
  const { bridge, a, b } = twoClients();
  b.call(1);
  const call = only(bridge.heard());
  a.says(`{"jsonrpc":"2.0","method":"x","params":{"_meta":{},"_META":{"progressToken":${call.id}}}}`);
  t.deepEqual(bridge.heard(), []);
});

for (const token of ['7.0', '1e0', '-0', '9007199254740993', '"\\u0031"']) {
  test(`a token spelled ${token} is replaced like any other and restored as it was`, (t) => {
    const { bridge, a } = twoClients();
    a.says(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progress\\u0054oken":${token}}}}`);
    const call = only(bridge.heard());
    t.deepEqual(call.params?._meta, { progressToken: call.id });
    bridge.says({ method: 'notifications/progress', params: { progressToken: call.id, progress: 1 } });
    t.true(only(a.heardTexts()).includes(`"progressToken":${token},`));
  });
}

for (const params of ['{"_meta":{"progressToken":null}}', '{"_meta":null}', '[{"_meta":{"progressToken":1}}]', '{}']) {
  test(`params without a token pass: ${params}`, (t) => {
    const { bridge, a } = twoClients();
    a.says(`{"jsonrpc":"2.0","id":1,"method":"x-vendor/do","params":${params}}`);
    t.deepEqual(only(bridge.heard()).params, JSON.parse(params));
  });
}
