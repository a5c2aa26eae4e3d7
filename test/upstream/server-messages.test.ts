import test from 'ava';
import type { BridgeError } from '../../src/errors.ts';
import type { ServerFault } from '../../src/relay/ports.ts';
import { AnswerLimit, SeenEvents, ServerLines, StreamMessages } from '../../src/upstream/server-messages.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { collectLog } from '../process/collected-log.ts';
import { clientFrame } from '../support/frames.ts';

const MAX_MESSAGE_BYTES = 2000;

function createReader() {
  const frames: Frame[] = [];
  const faults: ServerFault[] = [];
  const unreadable: string[] = [];
  const { log, entries } = collectLog();
  const sink = {
    message: (frame: Frame) => void frames.push(frame),
    fault: (fault: ServerFault) => void faults.push(fault),
    unreadable: (error: BridgeError) => void unreadable.push(error.message),
  };
  const messages = new ServerLines({
    name: 'node server.js',
    maxMessageBytes: MAX_MESSAGE_BYTES,
    noiseWarning: 'prints what is not MCP',
    sink,
    log,
  });
  return { messages, frames, faults, unreadable, entries, texts: () => frames.map(({ bytes }) => bytes.toString()) };
}

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const RESULT = '{"jsonrpc":"2.0","id":"é漢🚀","result":{"text":"naïve → 漢字 🚀"}}';
const NOTIFICATION = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}';

const STREAM = [
  `\uFEFF${PING}\r\n`,
  'Server starting…\n',
  `[info] ready\n\n\r\n  ${RESULT}\t\r\n`,
  '{"level":"info","msg":"a log line"}\nnull\n"text"\n{"broken\n',
  `[${PING},\n`,
  ` [ ${NOTIFICATION} , ${RESULT}, 17 ]\n`,
  NOTIFICATION,
].join('');

for (const size of [1, 2, 3, 7, STREAM.length * 4]) {
  test(`finds the messages among the noise when they come in chunks of ${size} bytes`, (t) => {
    const { messages, texts, faults } = createReader();
    const bytes = Buffer.from(STREAM);
    for (let start = 0; start < bytes.length; start += size) {
      // The reader owns its chunks.
      messages.push(Buffer.from(bytes.subarray(start, start + size)));
    }
    messages.end();
    t.deepEqual(texts(), [PING, RESULT, NOTIFICATION, RESULT, NOTIFICATION]);
    t.deepEqual(faults, []);
  });
}

test('knows the ids and kinds of the messages of a batch', (t) => {
  const { messages, frames } = createReader();
  messages.push(Buffer.from(`[${NOTIFICATION},${RESULT}]\n`));
  t.deepEqual(
    frames.map(({ kind, id }) => [kind, id]),
    [
      ['notification', undefined],
      ['result', 'é漢🚀'],
    ],
  );
});

test('warns once about noise and shows each line of it at debug, cut and printable', (t) => {
  const { messages, entries } = createReader();
  messages.push(Buffer.from(`\u001b[31mnoise\u001b[0m\n${'x'.repeat(500)}\n`));
  t.is(entries.filter(({ level }) => level === 40).length, 1);
  const shown = entries.filter(({ level }) => level === 20).map(({ msg }) => msg);
  t.is(shown[0], 'not a message: noise');
  t.is(shown[1], `not a message: ${'x'.repeat(200)}…`);
});

test('keeps the first lines of noise, cut and printable', (t) => {
  const { messages } = createReader();
  messages.push(Buffer.from(`Usage:\n\u001b[1m${'x'.repeat(500)}\u001b[0m\n${PING}\nthird\nfourth\n`));
  t.deepEqual(messages.noise, ['Usage:', `${'x'.repeat(200)}…`, 'third']);
});

for (const [order, message] of [
  ['first', `{"jsonrpc":"2.0","id":42,"result":{"text":"${'x'.repeat(5000)}"}}`],
  ['last', `{"result":{"text":"${'x'.repeat(5000)}"},"jsonrpc":"2.0","id":42}`],
] as const) {
  test(`reports a message over the limit with the id it has ${order}, and reads on`, (t) => {
    const { messages, faults, texts } = createReader();
    messages.push(Buffer.from(`${message}\n${PING}\n`));
    t.is(faults.length, 1);
    t.like(faults[0], { kind: 'result', id: 42 });
    t.is(faults[0]?.error.code, 'ERR_UPSTREAM_TOO_LARGE');
    t.regex(
      faults[0]?.error.message ?? '',
      /"node server.js" sent a message of 50\d\d bytes; up to 2000 .*--max-message-bytes/,
    );
    t.deepEqual(texts(), [PING]);
  });
}

test('refuses a request over the limit, as one of a client would be', (t) => {
  const { messages, faults, texts } = createReader();
  const question = JSON.stringify({
    jsonrpc: '2.0',
    id: 'q',
    method: 'sampling/createMessage',
    params: 'x'.repeat(5000),
  });
  messages.push(Buffer.from(`${question}\n${PING}\n`));
  t.like(faults[0], { kind: 'request', id: 'q' });
  t.is(faults[0]?.error.code, 'ERR_WIRE_FRAME_TOO_LARGE');
  t.is(faults[0]?.error.audiences.rpc, -32600);
  t.regex(
    faults[0]?.error.message ?? '',
    /"node server.js" sent a request of 50\d\d bytes; up to 2000 .*refused.*--max-message-bytes/,
  );
  t.deepEqual(texts(), [PING]);
});

test('takes a long line that is no message for noise', (t) => {
  const { messages, faults, texts, entries } = createReader();
  messages.push(Buffer.from(`${'progress '.repeat(1000)}\n${PING}\n`));
  t.deepEqual(faults, []);
  t.deepEqual(texts(), [PING]);
  t.is(entries.filter(({ level }) => level === 40).length, 1);
});

for (const answer of ['{"jsonrpc":"2.0","id":7}', '{"id":7,"other":{"result":1},"jsonrpc":"2.0"}']) {
  test(`fails the call that is answered with neither a result nor an error: ${answer}`, (t) => {
    const { messages, faults, texts } = createReader();
    messages.push(Buffer.from(`${answer}\n${PING}\n`));
    t.deepEqual(texts(), [PING]);
    t.is(faults.length, 1);
    t.like(faults[0], { kind: 'error', id: 7, error: { code: 'ERR_UPSTREAM_PROTOCOL' } });
    t.regex(faults[0]?.error.message ?? '', /neither a result nor an error/);
  });
}

test('takes what only looks like an answer for noise', (t) => {
  const { messages, faults, texts } = createReader();
  const noise = [
    '{"id":7}',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":null}',
    '{"jsonrpc":"2.0","id":7',
    '{jsonrpc}',
  ];
  messages.push(Buffer.from(`${noise.join('\n')}\n${PING}\n`));
  t.deepEqual(faults, []);
  t.deepEqual(texts(), [PING]);
});

const MAX_BYTES = 100;

/** An answer of exactly so many bytes, as an event brings it. */
function answerOf(bytes: number) {
  const frame = (text: string) => `{"jsonrpc":"2.0","id":7,"result":"${text}"}`;
  return { event: 'message', id: undefined, data: Buffer.from(frame('x'.repeat(bytes - frame('').length))) };
}

test('a message of exactly the limit is taken, one byte more fails the call it answers', (t) => {
  const taken: Frame[] = [];
  const faults: ServerFault[] = [];
  const messages = new StreamMessages({
    name: 'the server',
    maxMessageBytes: MAX_BYTES,
    message: (frame) => taken.push(frame),
    fault: (fault) => faults.push(fault),
  });
  t.true(messages.take(answerOf(MAX_BYTES)));
  t.is(taken.length, 1);
  t.true(messages.take(answerOf(MAX_BYTES + 1)));
  t.is(taken.length, 1);
  t.is(faults[0]?.id, 7);
  t.is(faults[0]?.error.code, 'ERR_UPSTREAM_TOO_LARGE');
});

test('an event is repeated when it came before the break, not when one has the id of another', (t) => {
  const seen = new SeenEvents();
  t.false(seen.isRepeated('a'));
  t.false(seen.isRepeated('a'), 'breaks the rules, but must not be lost');
  seen.resumed();
  t.true(seen.isRepeated('a'));
  t.false(seen.isRepeated('b'));
  t.false(seen.isRepeated(undefined));
  t.false(seen.isRepeated(''));
});

test('so many ids are remembered, and of long ones, which a server chooses, fewer', (t) => {
  const repeated = (ids: readonly string[]): readonly string[] => {
    const seen = new SeenEvents();
    for (const id of ids) seen.isRepeated(id);
    seen.resumed();
    return ids.filter((id) => seen.isRepeated(id));
  };
  const short = Array.from({ length: 100 }, (_, n) => `${n}`);
  t.deepEqual(repeated(short), short.slice(-64));
  const long = Array.from({ length: 100 }, (_, n) => `${n}`.padEnd(1024, 'x'));
  t.deepEqual(repeated(long), long.slice(-8));
});

const MIB = 1024 * 1024;
const answer = clientFrame({ id: 1, result: {} });

test('only answers are left out, and only those for a server that takes nothing', (t) => {
  const { log, entries } = collectLog();
  const limit = new AnswerLimit(log);
  for (let count = 0; count < 10_000; count++) t.false(limit.excludes(answer, false));
  for (let count = 0; count < 4096; count++) t.false(limit.excludes(answer, true));
  t.true(limit.excludes(answer, true));
  t.true(limit.excludes(answer, true));
  t.false(limit.excludes(clientFrame({ id: 1, method: 'tools/call' }), true));
  t.is(entries.length, 1, 'it is said once');
  t.false(limit.excludes(answer, false), 'it takes something again');
  t.false(limit.excludes(answer, true));
});

test('their bytes count, too', (t) => {
  const limit = new AnswerLimit(collectLog().log);
  const large = clientFrame({ id: 1, result: { text: 'x'.repeat(16 * MIB) } });
  const excluded = Array.from({ length: 5 }, () => limit.excludes(large, true));
  t.deepEqual(excluded, [false, false, false, true, true]);
});

const framed = (text: string) => `Content-Length: ${text.length}\r\n\r\n${text}`;

for (const size of [1, 7, 1000]) {
  test(`a server that frames its messages as the Language Server Protocol does is named, in pieces of ${size} bytes`, (t) => {
    const { messages, frames, unreadable } = createReader();
    const stream = Buffer.from(
      framed('{"jsonrpc":"2.0","id":1,"result":{}}') + framed('{"jsonrpc":"2.0","id":2,"result":{}}'),
    );
    for (let start = 0; start < stream.length; start += size) messages.push(stream.subarray(start, start + size));
    t.deepEqual(frames, []);
    t.true(unreadable.length >= 1);
    t.regex(unreadable[0] ?? '', /Content-Length headers.*one line of JSON/);
  });
}

test('a header that a server prints beside its lines says nothing of its messages', (t) => {
  const { messages, frames, unreadable } = createReader();
  const line = '{"jsonrpc":"2.0","id":1,"result":{}}\n';
  messages.push(Buffer.from(`POST /log\nContent-Length: 20\n\n${line}`));
  messages.push(Buffer.from(`Content-Length: 3\n${line.slice(0, 20)}`));
  messages.push(Buffer.from(line.slice(20)));
  t.is(frames.length, 2);
  t.deepEqual(unreadable, []);
});
