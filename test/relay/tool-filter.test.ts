import test from 'ava';
import { Exchange } from '../../src/relay/exchange.ts';
import { forEveryCaller } from '../../src/relay/passing-link.ts';
import { FilteredDialers, type IsHidden } from '../../src/relay/tool-filter.ts';
import { asUpstream } from '../support/dialers.ts';
import { FakeDialer, FakeLane, FakeServerListener } from '../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';

const HIDES_SECRETS: IsHidden = (name) => name.startsWith('secret');

function openLink() {
  const dialer = new FakeDialer();
  const listener = new FakeServerListener();
  const dialers = new FilteredDialers(forEveryCaller(asUpstream(dialer)), HIDES_SECRETS);
  const link = dialers.forCaller(undefined).dial(listener);
  const below = dialer.latest;
  const told = () => listener.received.map(({ frame }) => frame.bytes.toString());
  let lastId = 0;
  const request = (text: string) => {
    lastId += 1;
    const frame = clientFrame(text.replace('ID', String(lastId)));
    const exchange = new Exchange(lastId, frame.method ?? '', new FakeLane(), undefined, 0);
    link.send(frame, exchange);
    return exchange;
  };
  return { listener, link, below, told, request };
}

const LIST = '{"jsonrpc":"2.0","id":ID,"method":"tools/list"}';
const call = (params: string) => `{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":${params}}`;
const list = (tools: string) => serverFrame(`{"jsonrpc":"2.0","id":1,"result":{"tools":${tools},"nextCursor":"c"}}`);

test('a hidden tool is in no list; all else stays byte for byte', (t) => {
  const { below, told, request } = openLink();
  request(LIST);
  below.listener.fromServer(list('[{"name":"a", "x":1.0},{"name":"secret-1"},\t{"name":"b"}]'));
  t.deepEqual(told(), [
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a", "x":1.0},{"name":"b"}],"nextCursor":"c"}}',
  ]);
});

test('a list of nothing but hidden tools is empty, and its next page may be asked for', (t) => {
  const { below, told, request } = openLink();
  request(LIST);
  below.listener.fromServer(list('[{"name":"secret"}]'));
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"c"}}']);
});

test('a name spelled with escapes is the name it spells; what has no name, or two, is not shown', (t) => {
  const { below, told, request } = openLink();
  request(LIST);
  below.listener.fromServer(
    list('[{"name":"\\u0073ecret"},{"title":"x"},{"name":"a","name":"secret"},{"name":"b"},7]'),
  );
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"b"}],"nextCursor":"c"}}']);
});

test('of several lists that are asked for at once each is filtered', (t) => {
  const { below, told, request } = openLink();
  request(LIST);
  request(LIST);
  below.listener.fromServer(list('[{"name":"secret"}]'));
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"c"}}']);
});

test('an error in place of a list passes as it is', (t) => {
  const { below, told, request } = openLink();
  request(LIST);
  const error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no list today"}}';
  below.listener.fromServer(serverFrame(error));
  t.deepEqual(told(), [error]);
});

test('modern calls are filtered as sessions are, and everything else is the server’s own', async (t) => {
  const dialer = new FakeDialer();
  const listener = new FakeServerListener();
  const contexts: unknown[] = [];
  const dialCalls = dialer.dialCalls.bind(dialer);
  dialer.dialCalls = (own, context?: unknown) => {
    contexts.push(context);
    return dialCalls(own);
  };
  const dialers = new FilteredDialers(forEveryCaller(dialer), HIDES_SECRETS);
  const context = { principal: 'p', metadata: undefined, headers: undefined };
  const link = dialers.forCaller(undefined).dialCalls(listener, context);
  t.deepEqual(contexts, [context]);
  const hidden = clientFrame(call('{"name":"secret"}').replace('ID', '1'));
  t.true(link.send(hidden), 'the server is no fuller than before');
  t.deepEqual(dialer.latest.link.sent, []);
  t.is(listener.received.length, 1);
  t.is(dialers.name, 'fake-server');
  t.deepEqual(dialers.readiness(), { state: 'ready' });
  dialers.killNow();
  t.true(dialer.isKilled);
  await dialers.close();
  t.true(dialer.isClosed);
});

test('a name that is not repeated in full in a refusal is cut', (t) => {
  const { told, request } = openLink();
  request(call(`{"name":"secret${'x'.repeat(1000)}"}`));
  const [refusal] = told().map((text) => JSON.parse(text) as { readonly error: { readonly message: string } });
  t.is(refusal?.error.message, `Unknown tool: secret${'x'.repeat(194)}`);
});

for (const [what, result] of [
  ['two lists', '{"tools":[{"name":"secret"}],"tools":[]}'],
  ['what is no list', '{"tools":{"secret":{"name":"secret"}}}'],
] as const) {
  test(`${what} where the tools should be cannot be filtered, and is not shown`, (t) => {
    const { below, told, request } = openLink();
    request(LIST);
    below.listener.fromServer(serverFrame(`{"jsonrpc":"2.0","id":1,"result":${result}}`));
    t.is(told().length, 1);
    t.regex(
      told()[0] ?? '',
      /"id":1.*"code":-32603,"message":"The server sent a list of tools that cannot be filtered/,
    );
    t.false(told()[0]?.includes('secret'));
  });
}

test('a list is known by its request, where the transport tells which that is and where the id does', (t) => {
  const { below, told, request, listener } = openLink();
  const first = request(LIST);
  below.listener.fromServer(
    serverFrame('{"jsonrpc":"2.0","id":"other","result":{"tools":[{"name":"secret"}]}}'),
    first,
  );
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":"other","result":{"tools":[]}}']);
  t.is(listener.received[0]?.exchange, first);
});

test('the result of another request may hold what looks like a list', (t) => {
  const { below, told, request } = openLink();
  request(call('{"name":"a"}'));
  request(LIST);
  below.listener.fromServer(list('[{"name":"secret"}]'));
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"}],"nextCursor":"c"}}']);
});

for (const [what, params] of [
  ['its name', '{"name":"secret-1","arguments":{}}'],
  ['its name in escapes', '{"name":"\\u0073ecret-1"}'],
] as const) {
  test(`a hidden tool cannot be called by ${what}, and is refused like one that does not exist`, (t) => {
    const { below, told, request } = openLink();
    const exchange = request(call(params));
    t.deepEqual(below.link.sent, []);
    t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: secret-1"}}']);
    t.not(exchange, undefined);
  });
}

test('a hidden tool cannot be called by a notification either, to which there is no answer', (t) => {
  const { below, link, told } = openLink();
  const named = (name: string) => clientFrame({ method: 'tools/call', params: { name } });
  t.true(link.send(named('secret')));
  t.deepEqual(below.link.sent, []);
  t.deepEqual(told(), []);
  const shown = named('a');
  link.send(shown);
  t.deepEqual(
    below.link.sent.map(({ frame }) => frame),
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
    const { below, told, request } = openLink();
    request(call(params));
    t.deepEqual(below.link.sent, []);
    t.regex(told()[0] ?? '', /"code":-32602,"message":"The name of the tool can be read in several ways/);
  });
}

test('a call whose tool is spelled as JSON does not allow is refused', (t) => {
  const { below, link, told } = openLink();
  link.send(serverFrame(call('{"name":"\\qsecret"}').replace('ID', '1')));
  t.deepEqual(below.link.sent, []);
  t.regex(told()[0] ?? '', /"code":-32602,"message":"The name of the tool can be read in several ways/);
});

test('a call of a tool that is shown, and everything else, pass', (t) => {
  const { below, link, told, request } = openLink();
  request(call('{"name":"a"}'));
  request('{"jsonrpc":"2.0","id":ID,"method":"prompts/get","params":{"name":"secret"}}');
  link.send(clientFrame({ method: 'notifications/initialized' }));
  t.is(below.link.sent.length, 3);
  t.deepEqual(told(), []);
});

test('requests for lists that were never answered are forgotten', (t) => {
  const { below, told, request } = openLink();
  const given = request(LIST);
  given.cancel('client');
  request(LIST);
  below.listener.fromServer(list('[{"name":"secret"}]'));
  t.true(told()[0]?.includes('secret'), 'the relay drops what comes too late');
});
