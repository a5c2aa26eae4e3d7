import test from 'ava';
import type { Call } from '../../src/relay/call.ts';
import { ORIGIN, type ViewParts, viewOfTools } from '../support/calls.ts';
import { FakeLane } from '../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';
import { CallBench } from './call-pair.ts';
import { readyPair } from './relay-pair.ts';

const HIDES_SECRETS: ViewParts = { isHidden: (name) => name.startsWith('secret') };

/** A session with a server of which some tools are hidden, or shown otherwise. */
function openSession(view = HIDES_SECRETS) {
  const pair = readyPair({ tools: viewOfTools(view) });
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
  const bench = new CallBench({ calls: { tools: viewOfTools(HIDES_SECRETS) } });
  const hidden = bench.open({ name: 'secret' });
  t.like(hidden.client.heard, [{ id: 1, error: { code: -32602, message: 'Unknown tool: secret' } }]);
  t.is(bench.dialer.dialed.length, 0);
  const listed = bench.open({ id: 2, method: 'tools/list' });
  listed.says({ id: 2, result: { tools: [{ name: 'a' }, { name: 'secret' }] } });
  t.like(listed.client.heard, [{ id: 2, result: { tools: [{ name: 'a' }] } }]);
  const caller = {
    transport: 'streamable-http' as const,
    principal: 'anonymous',
    environment: undefined,
    headers: undefined,
  };
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

// ---- other names and descriptions

const RENAMED: ViewParts = { shapes: { find_v2: { name: 'find' } } };
const SWAPPED: ViewParts = { shapes: { a: { name: 'b' }, b: { name: 'a' } } };

test('names and descriptions are replaced in a list; all else stays byte for byte', (t) => {
  const shapes = { find_v2: { name: 'find', title: 'Find', description: 'Finds "things".' }, b: { description: '' } };
  const { pair, told, request } = openSession({ shapes });
  request(LIST);
  pair.relay.fromServer(
    list(
      '[ {"description" : "old","name":"find_v2", "x":1.0 },\t{"name":"b","n":10000000000000000001}, {"name":"c"} ]',
    ),
  );
  t.deepEqual(told(), [
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[ {"description" : "Finds \\"things\\".","name":"find", "x":1.0,"title":"Find" },\t{"name":"b","n":10000000000000000001,"description":""}, {"name":"c"} ],"nextCursor":"c"}}',
  ]);
});

test('a title replaces the one in the annotations too, which older clients show', (t) => {
  const { pair, told, request } = openSession({ shapes: { a: { title: 'New' }, b: { title: 'New' } } });
  request(LIST);
  pair.relay.fromServer(
    list(
      '[{"name":"a","annotations":{"readOnlyHint":true, "title":"Old"}},{"name":"b","annotations":{"x":1},"title":"Old"}]',
    ),
  );
  t.deepEqual(told(), [
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","annotations":{"readOnlyHint":true, "title":"New"},"title":"New"},{"name":"b","annotations":{"x":1},"title":"New"}],"nextCursor":"c"}}',
  ]);
});

for (const [what, tool] of [
  ['two titles', '{"name":"a","title":"x","title":"y"}'],
  ['a title in another case', '{"name":"a","Title":"x"}'],
  ['two descriptions', '{"name":"a","description":"x","description":"y"}'],
  ['two titles in its annotations', '{"name":"a","annotations":{"title":"x","TITLE":"y"}}'],
  ['two annotations', '{"name":"a","annotations":{},"annotations":{"title":"x"}}'],
] as const) {
  test(`a tool with ${what} is not shown, because the text that replaces them might not be the one that is read`, (t) => {
    const { pair, told, request } = openSession({ shapes: { a: { title: 'T', description: 'D' } } });
    request(LIST);
    pair.relay.fromServer(list(`[${tool},{"name":"b"}]`));
    t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"b"}],"nextCursor":"c"}}']);
  });
}

test('a call by the new name reaches the server by its own name; all else stays byte for byte', (t) => {
  const { pair, request } = openSession(RENAMED);
  request(
    call('{ "arguments":{"name":"find","n":1.0}, "name" : "f\\u0069nd", "_meta":{"progressToken":7},"task":{"ttl":5}}'),
  );
  t.is(
    pair.link.sent[0]?.frame.bytes.toString(),
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{ "arguments":{"name":"find","n":1.0}, "name" : "find_v2", "_meta":{"progressToken":7},"task":{"ttl":5}}}',
  );
});

test('an observer sees the tool by the name that the client uses', (t) => {
  const { pair, request } = openSession(RENAMED);
  request(call('{"name":"find"}'));
  t.deepEqual(
    pair.observer.calls.flatMap(({ tool }) => tool ?? []),
    ['find'],
  );
});

test('a call of a tool that keeps its name passes by reference', (t) => {
  const { pair } = openSession({ shapes: { a: { description: 'x' } } });
  for (const name of ['a', 'other']) {
    const sent = pair.client({ id: name, method: 'tools/call', params: { name } });
    t.is(pair.link.take()[0]?.frame, sent);
  }
});

test('a renamed tool is unknown by the name that the server gives it, by a notification as well', (t) => {
  const { pair, told, request } = openSession(RENAMED);
  request(call('{"name":"find_v2"}'));
  pair.client({ method: 'tools/call', params: { name: 'find_v2' } });
  t.deepEqual(pair.link.sent, []);
  t.deepEqual(told(), ['{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: find_v2"}}']);
  pair.client({ method: 'tools/call', params: { name: 'find' } });
  t.regex(pair.link.sent[0]?.frame.bytes.toString() ?? '', /"find_v2"/);
});

test('two tools can swap their names', (t) => {
  const { pair, told, request } = openSession(SWAPPED);
  request(LIST);
  pair.relay.fromServer(list('[{"name":"a","x":1},{"name":"b","x":2}]'));
  t.regex(told().join(), /\[\{"name":"b","x":1\},\{"name":"a","x":2\}\]/);
  pair.link.take();
  request(call('{"name":"a"}'));
  request(call('{"name":"b"}'));
  t.deepEqual(
    pair.link.sent.map(({ frame }) => /"name":"(.)"/.exec(frame.bytes.toString())?.[1]),
    ['b', 'a'],
  );
});

test('a new name leads to the renamed tool before and after the server lists one of that name, which is not shown', (t) => {
  const warnings: string[] = [];
  const log = { warn: (...said: readonly unknown[]) => void warnings.push(JSON.stringify(said)) };
  const { pair, told, request } = openSession({ ...RENAMED, log });
  const called = () => {
    request(call('{"name":"find"}'));
    return /"name":"(\w+)"/.exec(pair.link.take().at(-1)?.frame.bytes.toString() ?? '')?.[1];
  };
  t.is(called(), 'find_v2');
  for (const id of [2, 3]) {
    request(LIST);
    pair.relay.fromServer(
      serverFrame(`{"jsonrpc":"2.0","id":${id},"result":{"tools":[{"name":"find","x":1},{"name":"find_v2","x":2}]}}`),
    );
    t.regex(told().at(-1) ?? '', /"tools":\[\{"name":"find","x":2\}\]/);
  }
  t.is(called(), 'find_v2');
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /the server's tool \\"find\\", because its tool \\"find_v2\\" is shown by that name/);
});

test('after the last page the log names, once, the tools with settings that were not listed', (t) => {
  const warnings: string[] = [];
  const log = { warn: (said: unknown) => void warnings.push(String(said)) };
  const { pair, request } = openSession({ shapes: { a: {}, b: { name: 'c' }, 'd"': { title: 'D' } }, log });
  for (const [id, result] of [
    [1, { tools: [{ name: 'a' }], nextCursor: 'x' }],
    [2, { tools: [{ name: 'other' }] }],
    [3, { tools: [] }],
  ] as const) {
    t.is(warnings.length, id === 3 ? 1 : 0);
    request(LIST);
    pair.server({ id, result });
  }
  t.deepEqual(warnings, [
    'the server has not listed these tools, for which there are settings: "b", "d\\""; check their names, which are those that the server uses',
  ]);
});

test('a call that another bridge has sent is continued by the names of the server, and observed by those of clients', (t) => {
  const { pair, told } = openSession({ ...SWAPPED, isHidden: (name) => name === 'secret' });
  const sent = (id: number, name: string) => clientFrame({ id, method: 'tools/call', params: { name } });
  for (const [id, name] of ['a', 'other', 'secret'].entries())
    pair.relay.resumeCall(sent(id + 1, name), new FakeLane());
  t.deepEqual(
    pair.link.sent.map(({ frame }) => /"name":"(\w+)"/.exec(frame.bytes.toString())?.[1]),
    ['a', 'other'],
  );
  t.deepEqual(
    pair.observer.calls.slice(-3).map(({ tool }) => tool),
    ['b', 'other', 'secret'],
  );
  t.regex(told().join(), /Unknown tool: secret/);
});

test('a tool that is hidden leaves its name to another one, and has none itself', (t) => {
  const { pair, told, request } = openSession({
    isHidden: (name) => name === 'find' || name === 'gone',
    shapes: { find_v2: { name: 'find' }, gone: { name: 'here' } },
    log: { warn: () => t.fail('hiding it has settled the conflict') },
  });
  request(LIST);
  pair.relay.fromServer(list('[{"name":"find"},{"name":"find_v2"},{"name":"gone"},{"name":"here"}]'));
  t.regex(told()[0] ?? '', /"tools":\[\{"name":"find"\},\{"name":"here"\}\]/);
  pair.link.take();
  request(call('{"name":"find"}'));
  request(call('{"name":"here"}'));
  t.deepEqual(
    pair.link.sent.map(({ frame }) => /"name":"(\w+)"/.exec(frame.bytes.toString())?.[1]),
    ['find_v2', 'here'],
  );
});

// ---- callers

const FOR_ALICE: ViewParts = {
  shapes: { drop_v2: { name: 'drop' } },
  isForCaller: (name, principal) => name !== 'drop_v2' || principal === 'token:alice',
};

test('a tool for some callers is listed to them and called by them only, and unknown to all others', (t) => {
  for (const [principal, isShown] of [
    ['token:alice', true],
    ['token:bob', false],
    ['anonymous', false],
  ] as const) {
    const bench = new CallBench({ calls: { tools: viewOfTools(FOR_ALICE) } });
    const called = bench.open({ name: 'drop', principal });
    if (isShown) t.like(called.linkHeard(), [{ params: { name: 'drop_v2' } }]);
    else t.like(called.client.heard, [{ id: 1, error: { code: -32602, message: 'Unknown tool: drop' } }]);
    const listed = bench.open({ id: 2, method: 'tools/list', principal });
    listed.says({ id: 2, result: { tools: [{ name: 'drop_v2' }, { name: 'a' }] } });
    t.like(listed.client.heard, [{ result: { tools: isShown ? [{ name: 'drop' }, { name: 'a' }] : [{ name: 'a' }] } }]);
    const caller = { transport: 'streamable-http' as const, principal, environment: undefined, headers: undefined };
    const before = bench.dialer.dialed.length;
    bench.modernCalls.notify(clientFrame({ method: 'tools/call', params: { name: 'drop' } }), caller);
    t.is(bench.dialer.dialed.length, before + (isShown ? 1 : 0));
  }
});

test('a session sees the tools of its caller, and a client on a pipe none that are for named callers', (t) => {
  for (const [principal, isShown] of [
    ['token:alice', true],
    ['someone', false],
    [undefined, false],
  ] as const) {
    const pair = readyPair({ tools: viewOfTools(FOR_ALICE), origin: { ...ORIGIN, principal } });
    pair.client({ id: 1, method: 'tools/call', params: { name: 'drop' } });
    t.is(pair.link.sent.length, isShown ? 1 : 0);
  }
});

test('a list that differs by caller may not be cached for others; one that does not stays as it is', (t) => {
  for (const [view, scope] of [
    [FOR_ALICE, 'private'],
    [RENAMED, 'public'],
  ] as const) {
    const { pair, told, request } = openSession(view);
    request(LIST);
    const result = (of: string) => `{"jsonrpc":"2.0","id":1,"result":{"tools":[],"cacheScope": "${of}","ttlMs":5}}`;
    pair.relay.fromServer(serverFrame(result('public')));
    t.deepEqual(told(), [result(scope)]);
  }
});
