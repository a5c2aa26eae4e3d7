import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { BridgeError } from '../../../src/errors.ts';
import type { ReadFile } from '../../../src/io/bounded-file.ts';
import { MAX_RECORDING_BYTES, readRecording } from '../../../src/upstream/replay/read-recording.ts';
import { RecordingScript, request, result, toolCall } from '../../support/recording-script.ts';
import { replay } from './replay.ts';

const SOURCE = { file: 'session.jsonl', server: undefined };

function reads(content: string | Buffer): ReadFile {
  return () => ({ kind: 'file', mode: 0o600, uid: 0, bytes: Buffer.from(content) });
}

const GOOD = new RecordingScript().handshake().sent(toolCall(1, 'a')).received(result(1, 'a'));
const [FIRST_LINE = ''] = GOOD.text.split('\n');

const DAMAGES: Readonly<Record<string, readonly [line: string, said: RegExp]>> = {
  'that is not JSON': ['{"at":', /line 4 is not JSON; remove that line/],
  'that is no object': ['[1]', /line 4 is not an object/],
  'without a member': [FIRST_LINE.replace('"seq"', '"sec"'), /line 4 has no valid "seq"/],
  'whose message is none': [FIRST_LINE.replace(/"message":.*/, '"message":{"a":1}}'), /line 4 has no JSON-RPC message/],
};

for (const [title, [line, said]] of Object.entries(DAMAGES)) {
  test(`a line ${title} is named by its number`, (t) => {
    const lines = GOOD.text.split('\n');
    const text = [...lines.slice(0, 3), line, ...lines.slice(3)].join('\n');
    const error = t.throws(() => readRecording(SOURCE, reads(text)), { instanceOf: BridgeError });
    t.is(error?.code, 'ERR_CONFIG_RECORDING');
    t.regex(error?.message ?? '', said);
  });
}

test('a last line without a line break, which a killed bridge leaves, is skipped with a warning', (t) => {
  const { warnings, calls } = readRecording(SOURCE, reads(`${GOOD.text}{"at":"2026`));
  t.deepEqual(warnings, ['Line 6, the last one of session.jsonl, is not JSON and is skipped.']);
  t.is(calls.length, 2);
});

test('a whole last line needs no line break, and empty lines say nothing', (t) => {
  const { warnings, calls } = readRecording(SOURCE, reads(`\n${GOOD.text.trim()}`));
  t.deepEqual(warnings, []);
  t.is(calls[1]?.answer.kind, 'whole');
});

for (const [title, content, said] of [
  ['an empty file', '', /has no message between a bridge and a server/],
  ['a client without a server', GOOD.text.replaceAll('"side":"server"', '"side":"client"'), /has no message between/],
  ['a server that never answered', new RecordingScript().sent(toolCall(1, 'a')).text, /no answer of the server "demo"/],
] as const) {
  test(`${title} cannot be replayed`, (t) => {
    t.throws(() => readRecording(SOURCE, reads(content)), { code: 'ERR_CONFIG_RECORDING', message: said });
  });
}

test('a file that is too large, missing or a folder is named with what is wrong', (t) => {
  const large: ReadFile = (_path, maxBytes) => {
    t.is(maxBytes, MAX_RECORDING_BYTES + 1);
    return { kind: 'file', mode: 0, uid: 0, bytes: { length: maxBytes } as Uint8Array };
  };
  t.throws(() => readRecording(SOURCE, large), { message: /more than 268435456 bytes; split it/ });
  const { file } = replay(t, GOOD);
  const folder = join(file, '..', 'folder');
  mkdirSync(folder);
  const failing =
    (error: Error): ReadFile =>
    () => {
      throw error;
    };
  const missing = failing(Object.assign(new Error('x'), { code: 'ENOENT' }));
  t.throws(() => readRecording(SOURCE, missing), {
    message: /session\.jsonl cannot be replayed: it cannot be read \(ENOENT\)/,
  });
  const isFolder: ReadFile = () => ({ kind: 'directory', mode: 0, uid: 0, bytes: new Uint8Array() });
  t.throws(() => readRecording(SOURCE, isFolder), { message: /it is a folder/ });
});

// ---- several servers

const TWO = `${GOOD.text}${new RecordingScript({ server: 'other', session: 'c2' }).handshake().sent(toolCall(1, 'b')).received(result(1, 'b')).text}`;

test('of several servers, the one that is named is replayed', async (t) => {
  const client = replay(t, TWO, { server: 'other' }).connect();
  t.deepEqual(await client.ask(toolCall(1, 'b')), result(1, 'b'));
  t.truthy((await client.ask(toolCall(2, 'a'))).error);
});

test('without a name, or with an unknown one, the error lists the servers', (t) => {
  t.throws(() => replay(t, TWO), { code: 'ERR_CONFIG_RECORDING', message: /name one of "demo", "other" after a #/ });
  t.throws(() => replay(t, TWO, { server: 'none' }), { message: /has no server "none"; it has "demo", "other"/ });
});

// ---- hostile recordings

test('names of members that every object has are ordinary names', async (t) => {
  const args = JSON.parse('{"__proto__":{"x":1},"constructor":"c","toString":1}');
  const script = new RecordingScript()
    .handshake()
    .sent(toolCall(1, '__proto__', args))
    .received(result(1, 'proto'))
    .sent(request(2, 'constructor'))
    .received({ jsonrpc: '2.0', id: 2, result: {} });
  const client = replay(t, script).connect();
  t.deepEqual(await client.ask(toolCall(1, '__proto__', args)), result(1, 'proto'));
  t.deepEqual(await client.ask(request(2, 'constructor')), { jsonrpc: '2.0', id: 2, result: {} });
  t.regex(JSON.stringify(await client.ask(toolCall(3, '__proto__', {}))), /ERR_REPLAY_PARAMS/);
  t.regex(JSON.stringify(await client.ask(request(4, 'toString'))), /ERR_REPLAY_METHOD/);
});

test('megabytes in one line and deep nesting are replayed as they are', async (t) => {
  const deep = `${'['.repeat(5000)}${']'.repeat(5000)}`;
  const long = 'x'.repeat(4 * 1024 * 1024);
  const script = new RecordingScript()
    .handshake()
    .sent(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deep","arguments":{"a":${deep}}}}`)
    .received(`{"jsonrpc":"2.0","id":1,"result":{"deep":${deep}}}`)
    .sent(toolCall(2, 'long', { long }))
    .received(result(2, long));
  const client = replay(t, script).connect();
  t.deepEqual(await client.ask(toolCall(5, 'long', { long })), result(5, long));
  client.send(`{"params":{"arguments":{"a":${deep}},"name":"deep"},"jsonrpc":"2.0","id":6,"method":"tools/call"}`);
  client.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"deep","arguments":{"a":${deep}}}}`);
  await client.received(3);
  t.regex(
    client.listener.frames[1]?.bytes.toString() ?? '',
    /ERR_REPLAY_PARAMS/,
    'its members would have to be put in order',
  );
  t.true(client.listener.frames[2]?.bytes.includes(deep));
});

test('hidden values in deep nesting match nothing, instead of overflowing the stack', async (t) => {
  const nest = (inner: string): string => `${'['.repeat(100_000)}${inner}${']'.repeat(100_000)}`;
  const script = new RecordingScript()
    .handshake()
    .sent(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":${nest('"[hidden]"')}}}`, { hidden: 1 })
    .received({ jsonrpc: '2.0', id: 1, result: {} });
  t.truthy(
    (
      await replay(t, script)
        .connect()
        .ask(request(1, 'x', { a: [] }))
    ).error,
  );
});

test('whatever a file holds, it is replayed or refused with the reason', (t) => {
  const lines = GOOD.text.split('\n');
  const line = fc.oneof(
    fc.constantFrom(...lines),
    fc.string(),
    fc.json(),
    fc.tuple(fc.constantFrom(...lines), fc.nat(), fc.string()).map(([text, at, other]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + other + text.slice(place);
    }),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), (written) => {
      try {
        readRecording(SOURCE, reads(written.join('\n')));
      } catch (thrown) {
        if (!(thrown instanceof BridgeError) || thrown.code !== 'ERR_CONFIG_RECORDING') throw thrown;
      }
    }),
  );
  t.pass();
});
