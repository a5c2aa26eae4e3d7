import test from 'ava';
import fc from 'fast-check';
import { MetadataReader, readRequestMetadata } from '../../../src/mcp/classify/request-metadata.ts';
import { clientFrame } from '../../support/frames.ts';
import { anyJson, anyText, JsonPrinter } from '../../wire/json-text.ts';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const INFO = 'io.modelcontextprotocol/clientInfo';
const LEVEL = 'io.modelcontextprotocol/logLevel';

const request = (params: string) => clientFrame(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
const envelope = { [VERSION]: '2026-07-28', [CAPABILITIES]: {} };
const from = (name: string, more: object = {}) =>
  request(JSON.stringify({ name: 'x', _meta: { ...envelope, [INFO]: { name, version: '1' }, ...more } }));

const anyMember = fc.oneof(
  fc.record({ key: fc.constantFrom(VERSION, INFO, LEVEL, CAPABILITIES), value: anyJson }),
  fc.record({ key: fc.constantFrom('progressToken', VERSION.toUpperCase(), CAPABILITIES), value: anyJson }),
  fc.constantFrom(
    { key: VERSION, value: '2026-07-28' },
    { key: INFO, value: { name: 'c', version: '1' } },
    { key: LEVEL, value: 'info' },
  ),
);
const anyMeta = fc
  .tuple(fc.array(anyMember, { maxLength: 3 }), fc.boolean(), fc.integer())
  .map(([members, isWhole, seed]) => {
    const whole = isWhole ? Object.entries(envelope).map(([key, value]) => ({ key, value })) : [];
    const all = [...whole, ...members].map(({ key, value }) => [key, value] as const);
    return new JsonPrinter(seed, { newlines: false }).object(all);
  });
const anyParams = fc
  .tuple(fc.constantFrom('_meta', '_Meta', '\\u005fmeta'), fc.option(anyText), anyMeta, fc.boolean())
  .map(([key, name, meta, isTwice]) => {
    const members = [`"name":${JSON.stringify(name)}`, `"${key}":${meta}`, ...(isTwice ? [`"_meta":${meta}`] : [])];
    return `{${members.join(',')}}`;
  });

test('reads what is read without it, whatever it has read before', (t) => {
  fc.assert(
    fc.property(fc.array(anyParams, { minLength: 1, maxLength: 12 }), fc.infiniteStream(fc.nat()), (texts, picks) => {
      const reader = new MetadataReader();
      for (const pick of [...picks.take(40)]) {
        const frame = request(texts[pick % texts.length] ?? '{}');
        t.deepEqual(reader.read(frame), readRequestMetadata(frame));
      }
    }),
    { numRuns: 300 },
  );
});

test('an envelope that was met before is not read again', (t) => {
  const reader = new MetadataReader();
  const first = reader.read(from('a'));
  reader.read(from('b'));
  t.is(reader.read(from('a')), first);
});

test('what is known of an envelope does not keep its message', (t) => {
  const reader = new MetadataReader();
  const frame = from('a');
  const first = reader.read(frame);
  frame.bytes.fill(0x20);
  t.is(reader.read(from('a')), first);
});

test('an envelope is not read again where one value beside it is another one in each request', (t) => {
  const reader = new MetadataReader();
  const first = reader.read(from('a', { progressToken: 1 }));
  for (const progressToken of [1, 23_456, 'a token', '', -1.5e3]) {
    t.is(reader.read(from('a', { progressToken })), first, String(progressToken));
  }
  t.not(reader.read(from('b', { progressToken: 1 })), first);
  t.not(reader.read(from('a')), first);
});

test('an envelope is read again where the value beside it might be more than a value', (t) => {
  const reader = new MetadataReader();
  const withToken = (token: string) =>
    request(`{"name":"x","_meta":${JSON.stringify(envelope).slice(0, -1)},"progressToken":${token}}}`);
  const first = reader.read(withToken('1'));
  for (const token of ['"a\\\\"', '[1]', '{}', `"${'x'.repeat(200)}"`, '1 ']) {
    t.not(reader.read(withToken(token)), first, token);
    t.deepEqual(reader.read(withToken(token)), first, token);
  }
  for (const injected of [`1,"${VERSION}":"2000-01-01"`, `"a","${VERSION}":"b"`, `1,"${LEVEL}":"info"`]) {
    t.deepEqual(reader.read(withToken(injected)), readRequestMetadata(withToken(injected)), injected);
    t.notDeepEqual(reader.read(withToken(injected)), first, injected);
  }
});

test('envelopes with several other members are not kept', (t) => {
  const reader = new MetadataReader();
  const first = reader.read(from('a', { progressToken: 1, traceparent: '00' }));
  t.not(reader.read(from('a', { progressToken: 1, traceparent: '00' })), first);
});

test('a few envelopes are known, and none that is large', (t) => {
  const reader = new MetadataReader();
  const first = reader.read(from('a'));
  for (let index = 0; index < 7; index += 1) reader.read(from(`b${index}`));
  t.is(reader.read(from('a')), first);
  reader.read(from('c'));
  t.not(reader.read(from('a')), first);
  const large = from('x'.repeat(2048));
  t.not(reader.read(large), reader.read(large));
});
