import test from 'ava';
import type { Call } from '../../src/relay/call.ts';
import { type IsHidden, ToolView } from '../../src/relay/tool-view.ts';
import { FakeLane } from '../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';
import { CallBench } from './call-pair.ts';
import { readyPair } from './relay-pair.ts';

const HIDES_SECRETS: IsHidden = (name) => name.startsWith('secret');

/** A session with a server of which some tools are hidden. */
function openSession() {
  const pair = readyPair({ tools: new ToolView(HIDES_SECRETS) });
  const told = () => pair.peer.sent.map(({ frame }) => frame.bytes.toString());
  let lastId = 0;
  const request = (text: string): Call | undefined => {
    lastId += 1;
    pair.client(text.replace('ID', String(lastId)));
    return pair.link.sent.at(-1)?.call;
  };
  return { pair, told, request };
}

const LIST = '{"jsonrpc":"2.0","id":ID,"method":"tools/list"}';
const call = (params: string) => `{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":${params}}`;
const list = (tools: string) => serverFrame(`{"jsonrpc":"2.0","id":1,"result":{"tools":${tools},"nextCursor":"c"}}`);

test('a hidden tool is in no list; all else stays byte for byte', (t) => {
  const { pair, told, request } = openSession();
  request(LIST);
  pair.relay.fromServer(list('[{"name":"a", "x":1.0},{"name":"secret-1"},\t{"name":"b"}]'));
  t.deepEqual(told(), [
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a", "x":1.0},{"name":"b"}],"nextCursor":"c"}}',
  ]);
});

test('a list of nothing but hidden tools is empty, and its next page may be asked for', (t) => {
  const { pair, told, request } = openSession();
  request(LIST);
  pair.relay.fromServer(list('[{"name":"secret"}]'));
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"c"}}']);
});

test('a name spelled with escapes is the name it spells; what has no name, or two, is not shown', (t) => {
  const { pair, told, request } = openSession();
  request(LIST);
  pair.relay.fromServer(list('[{"name":"\\u0073ecret"},{"title":"x"},{"name":"a","name":"secret"},{"name":"b"},7]'));
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"b"}],"nextCursor":"c"}}']);
});

test('of several lists that are asked for at once each is filtered', (t) => {
  const { pair, told, request } = openSession();
  request(LIST);
  request(LIST);
  pair.relay.fromServer(list('[{"name":"secret"}]'));
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"c"}}']);
});

test('an error in place of a list passes as it is', (t) => {
  const { pair, told, request } = openSession();
  request(LIST);
  const error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no list today"}}';
  pair.relay.fromServer(serverFrame(error));
  t.deepEqual(told(), [error]);
});

test('modern calls are filtered as sessions are, and so are notifications that come alone', (t) => {
  const bench = new CallBench({ calls: { tools: new ToolView(HIDES_SECRETS) } });
  const hidden = bench.open({ name: 'secret' });
  t.like(hidden.client.heard, [{ id: 1, error: { code: -32602, message: 'Unknown tool: secret' } }]);
  t.is(bench.dialer.dialed.length, 0);
  const listed = bench.open({ id: 2, method: 'tools/list' });
  listed.says({ id: 2, result: { tools: [{ name: 'a' }, { name: 'secret' }] } });
  t.like(listed.client.heard, [{ id: 2, result: { tools: [{ name: 'a' }] } }]);
  const caller = { principal: 'anonymous', environment: undefined, headers: undefined };
  bench.modernCalls.notify(clientFrame({ method: 'tools/call', params: { name: 'secret' } }), caller);
  t.is(bench.dialer.dialed.length, 1);
});

test('a name that is not repeated in full in a refusal is cut', (t) => {
  const { told, request } = openSession();
  request(call(`{"name":"secret${'x'.repeat(1000)}"}`));
  const [refusal] = told().map((text) => JSON.parse(text) as { readonly error: { readonly message: string } });
  t.is(refusal?.error.message, `Unknown tool: secret${'x'.repeat(194)}`);
});

for (const [what, result] of [
  ['two lists', '{"tools":[{"name":"secret"}],"tools":[]}'],
  ['what is no list', '{"tools":{"secret":{"name":"secret"}}}'],
] as const) {
  test(`${what} where the tools should be cannot be filtered, and is not shown`, (t) => {
    const { pair, told, request } = openSession();
    request(LIST);
    pair.relay.fromServer(serverFrame(`{"jsonrpc":"2.0","id":1,"result":${result}}`));
    t.is(told().length, 1);
    t.regex(
      told()[0] ?? '',
      /"id":1.*"code":-32603,"message":"The server sent a list of tools that cannot be filtered/,
    );
    t.false(told()[0]?.includes('secret'));
  });
}

test('a list is known by its request, where the transport tells which that is and where the id does', (t) => {
  const { pair, told, request } = openSession();
  const first = request(LIST);
  pair.relay.fromServer(serverFrame('{"jsonrpc":"2.0","id":"other","result":{"tools":[{"name":"secret"}]}}'), first);
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":"other","result":{"tools":[]}}']);
  t.is(pair.peer.sent[0]?.call, first);
});

test('the result of another request may hold what looks like a list', (t) => {
  const { pair, told, request } = openSession();
  request(call('{"name":"a"}'));
  request(LIST);
  pair.relay.fromServer(list('[{"name":"secret"}]'));
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"}],"nextCursor":"c"}}']);
});

for (const [what, params] of [
  ['its name', '{"name":"secret-1","arguments":{}}'],
  ['its name in escapes', '{"name":"\\u0073ecret-1"}'],
] as const) {
  test(`a hidden tool cannot be called by ${what}, and is refused like one that does not exist`, (t) => {
    const { pair, told, request } = openSession();
    request(call(params));
    t.deepEqual(pair.link.sent, []);
    t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: secret-1"}}']);
    t.deepEqual(pair.observer.outcomes, [{ kind: 'error', code: -32602 }]);
  });
}

test('a hidden tool cannot be called by a notification either, to which there is no answer', (t) => {
  const { pair, told } = openSession();
  const named = (name: string) => ({ method: 'tools/call', params: { name } });
  pair.client(named('secret'));
  t.deepEqual(pair.link.sent, []);
  t.deepEqual(told(), []);
  const shown = pair.client(named('a'));
  t.deepEqual(
    pair.link.sent.map(({ frame }) => frame),
    [shown],
  );
});

for (const params of [
  '{"name":"a","name":"secret"}',
  '{"Name":"secret","name":"a"}',
  '{"NAME":"secret"}',
  '{"name":["secret"]}',
  '{"name":{"toString":"secret"}}',
  '{"name":7}',
  '{}',
  '["secret"]',
]) {
  test(`a call whose tool is not certainly one that is shown is refused: ${params}`, (t) => {
    const { pair, told, request } = openSession();
    request(call(params));
    t.deepEqual(pair.link.sent, []);
    t.regex(told()[0] ?? '', /"code":-32602,"message":"The name of the tool can be read in several ways/);
  });
}

test('a call whose tool is spelled as JSON does not allow is refused', (t) => {
  const { pair, told } = openSession();
  pair.relay.fromClient(serverFrame(call('{"name":"\\qsecret"}').replace('ID', '1')), new FakeLane());
  t.deepEqual(pair.link.sent, []);
  t.regex(told()[0] ?? '', /"code":-32602,"message":"The name of the tool can be read in several ways/);
});

test('a call of a tool that is shown, and everything else, pass', (t) => {
  const { pair, told, request } = openSession();
  request(call('{"name":"a"}'));
  request('{"jsonrpc":"2.0","id":ID,"method":"prompts/get","params":{"name":"secret"}}');
  pair.client({ method: 'notifications/initialized' });
  t.is(pair.link.sent.length, 3);
  t.deepEqual(told(), []);
});
