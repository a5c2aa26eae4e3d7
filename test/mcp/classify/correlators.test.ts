import test from 'ava';
import {
  type Correlator,
  findCanceledId,
  findProgressOf,
  findProgressToken,
  findSubscriptionId,
  rewriteClientCanceled,
  rewriteProgress,
  rewriteRequest,
  rewriteServerCanceled,
} from '../../../src/mcp/classify/correlators.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

/** A request whose params are this text. */
const request = (params: string) => clientFrame(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
const notification = (params: string) => clientFrame(`{"jsonrpc":"2.0","method":"n","params":${params}}`);

/** The token as written, and what it means. */
function shown(bytes: Buffer, found: Correlator | undefined): readonly [string, unknown] | undefined {
  return found && [bytes.toString('utf8', found.start, found.end), found.value];
}

for (const [title, params, expected] of [
  ['a number', '{"_meta":{"progressToken":7}}', ['7', 7]],
  ['a string', '{"_meta":{"progressToken":"a"}}', ['"a"', 'a']],
  ['an escaped string', '{"_meta":{"progressToken":"\\u0061\\""}}', ['"\\u0061\\""', 'a"']],
  ['a string beyond ASCII', '{"x":"ü","_meta":{"progressToken":"é😀"}}', ['"é😀"', 'é😀']],
  ['an empty string', '{"_meta":{"progressToken":""}}', ['""', '']],
  ['among whitespace', '{ "_meta" : { "progressToken" :\t-3 } }', ['-3', -3]],
  ['after much else', '{"a":{"_meta":{"progressToken":1}},"b":["_meta"],"_meta":{"c":1,"progressToken":2}}', ['2', 2]],
  ['an escaped _meta', '{"\\u005fmeta":{"progressToken":4}}', ['4', 4]],
  ['a number with a fraction of nothing', '{"_meta":{"progressToken":1.0}}', ['1.0', 1]],
  ['a number with an exponent', '{"_meta":{"progressToken":1e3}}', ['1e3', 1000]],
  ['more than a double holds', '{"_meta":{"progressToken":9007199254740993}}', ['9007199254740993', 2 ** 53]],
] as const) {
  test(`finds a progress token: ${title}`, (t) => {
    const frame = request(params);
    t.deepEqual(shown(frame.bytes, findProgressToken(frame)), expected);
  });
}

for (const [title, params] of [
  ['there is no _meta', '{"progressToken":1}'],
  ['_meta has none', '{"_meta":{"other":1},"x":"\\"progressToken\\""}'],
  ['the token lies deeper', '{"_meta":{"x":{"progressToken":1}}}'],
  ['it is only text', '{"x":"\\"_meta\\":{\\"progressToken\\":1}","_meta":{"y":"\\"progressToken\\":2"}}'],
  ['_meta is an array', '{"_meta":["progressToken",1]}'],
  ['_meta is null', '{"_meta":null,"y":"\\"progressToken\\""}'],
  ['params are an array', '[{"_meta":{"progressToken":1}}]'],
  ['_meta occurs twice', '{"_meta":{"progressToken":1},"_meta":{}}'],
  ['the token occurs twice', '{"_meta":{"progressToken":1,"progressToken":2}}'],
  ['the token occurs twice, once escaped', '{"_meta":{"progressToken":1,"progress\\u0054oken":2}}'],
  ['it is a fraction', '{"_meta":{"progressToken":1.5}}'],
  ['it is beyond all numbers', '{"_meta":{"progressToken":1e999}}'],
  ['it is null', '{"_meta":{"progressToken":null}}'],
  ['it is an object', '{"_meta":{"progressToken":{}}}'],
] as const) {
  test(`finds no progress token when ${title}`, (t) => {
    t.is(findProgressToken(request(params)), undefined);
  });
}

test('finds nothing in a message without params, and nothing in members beside them', (t) => {
  t.is(findProgressToken(clientFrame('{"jsonrpc":"2.0","id":1,"method":"ping"}')), undefined);
  const beside = clientFrame('{"jsonrpc":"2.0","id":1,"_meta":{"progressToken":1},"method":"m","params":{}}');
  t.is(findProgressToken(beside), undefined);
  const bare = clientFrame('{"jsonrpc":"2.0","method":"notifications/cancelled"}');
  t.is(findCanceledId(bare), undefined);
  t.is(findProgressOf(bare), undefined);
});

for (const [key, find] of [
  ['requestId', findCanceledId],
  ['progressToken', findProgressOf],
] as const) {
  for (const [title, params, expected] of [
    ['a number', `{"${key}":7,"progress":1}`, ['7', 7]],
    ['a string that looks like one', `{"progress":1,"${key}":"7"}`, ['"7"', '7']],
    ['under an escaped key', `{"\\u00${key.charCodeAt(0).toString(16)}${key.slice(1)}":0}`, ['0', 0]],
    ['after decoys', `{"reason":"\\"${key}\\":1","x":{"${key}":2},"${key}":3}`, ['3', 3]],
  ] as const) {
    test(`finds ${key} of a notification: ${title}`, (t) => {
      const frame = notification(params);
      t.deepEqual(shown(frame.bytes, find(frame)), expected);
    });
  }

  for (const [title, params] of [
    ['is missing', '{"reason":"x"}'],
    ['occurs twice', `{"${key}":1,"${key}":1}`],
    ['occurs twice, once escaped', `{"${key}":1,"\\u00${key.charCodeAt(0).toString(16)}${key.slice(1)}":1}`],
    ['lies deeper', `{"_meta":{"${key}":1}}`],
    ['is in an array', `["${key}",1]`],
    ['is a fraction', `{"${key}":1.5}`],
    ['is null', `{"${key}":null}`],
  ] as const) {
    test(`finds no ${key} that ${title}`, (t) => {
      t.is(find(notification(params)), undefined);
    });
  }
}

for (const text of ['1.0', '1e3', '9007199254740993']) {
  test(`takes ${text} for a progress token, however a server writes it, and for no id`, (t) => {
    const written = [text, text.replace('1e3', '1000.0')];
    for (const token of written) {
      const [first, later] = [`{"progressToken":${token},"progress":1}`, `{"progress":1,"progressToken":${token}}`];
      for (const params of [first, later]) {
        const frame = notification(params);
        t.deepEqual(shown(frame.bytes, findProgressOf(frame)), [token, Number(text)]);
      }
    }
    t.is(findCanceledId(notification(`{"requestId":${text}}`)), undefined);
  });
}

for (const [title, text, expected] of [
  ['a notification', '{"jsonrpc":"2.0","method":"n","params":{"_meta":{"KEY":0}}}', ['0', 0]],
  ['an answer', '{"jsonrpc":"2.0","id":1,"result":{"x":{},"_meta":{"a":1,"KEY":"s"}}}', ['"s"', 's']],
  ['one that escapes slashes', '{"jsonrpc":"2.0","method":"n","params":{"_meta":{"ESCAPED":7}}}', ['7', 7]],
  ['one without it', '{"jsonrpc":"2.0","method":"n","params":{"KEY":7,"_meta":{}}}', undefined],
  ['one that has it twice', '{"jsonrpc":"2.0","method":"n","params":{"_meta":{"KEY":7,"KEY":7}}}', undefined],
] as const) {
  test(`finds the subscription of ${title}`, (t) => {
    const key = 'io.modelcontextprotocol/subscriptionId';
    const frame = serverFrame(text.replaceAll('KEY', key).replace('ESCAPED', key.replace('/', '\\/')));
    t.deepEqual(shown(frame.bytes, findSubscriptionId(frame)), expected);
  });
}

test('a rewritten request is a frame with the new id, whatever the order of its members', (t) => {
  for (const text of [
    '{"jsonrpc":"2.0","id":"abc","method":"m","params":{"_meta":{"progressToken":"t"}}}',
    '{"params":{"_meta":{"progressToken":"t"}},"method":"m","id":"abc","jsonrpc":"2.0"}',
  ]) {
    const rewritten = rewriteRequest(clientFrame(text), 12);
    t.is(rewritten?.frame.id, 12);
    t.is(rewritten?.frame.method, 'm');
    t.is(rewritten?.progressToken?.toString(), '"t"');
    t.is(rewritten?.frame.bytes.toString(), text.replace('"abc"', '12').replace('"t"', '12'));
  }
});

test('what is kept of a request is a copy', (t) => {
  const frame = clientFrame({ id: 1, method: 'm', params: { _meta: { progressToken: 'token' } } });
  const rewritten = rewriteRequest(frame, 12);
  frame.bytes.fill(0);
  t.is(rewritten?.progressToken?.toString(), '"token"');
});

test('a notification without the id or token it should name is not rewritten', (t) => {
  const notification = clientFrame({ method: 'n', params: { other: 1 } });
  t.is(rewriteClientCanceled(notification, 1), undefined);
  t.is(rewriteServerCanceled(notification, 1), undefined);
  t.is(rewriteProgress(notification, Buffer.from('1')), undefined);
});

test('a message of a server that is not JSON is not rewritten into something worse', (t) => {
  const odd = serverFrame('{"jsonrpc":"2.0","method":"n","params":{"a":x"y,"progressToken":1,"b":z"}}');
  const rewritten = rewriteProgress(odd, Buffer.from('"\\""'));
  t.is(rewritten, undefined);
});
