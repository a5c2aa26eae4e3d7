import test from 'ava';
import fc from 'fast-check';
import {
  type RequestMetadata,
  readRequestMetadata,
  stampMetadata,
  stripMetadata,
} from '../../../src/mcp/classify/request-metadata.ts';
import { claimsModern } from '../../../src/mcp/classify/route-era.ts';
import { readMessage } from '../../../src/wire/read-message.ts';
import { clientFrame } from '../../support/frames.ts';
import { anyJson, anyText, JsonPrinter } from '../../wire/json-text.ts';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const INFO = 'io.modelcontextprotocol/clientInfo';
const RELATED_TASK = 'io.modelcontextprotocol/related-task';
const LEVEL = 'io.modelcontextprotocol/logLevel';
const keys: readonly string[] = [VERSION, CAPABILITIES, INFO, LEVEL];

const request = (params: string, method = 'tools/call') =>
  clientFrame(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`);
const textOf = (frame: { readonly bytes: Buffer }) => frame.bytes.toString();
const paramsOf = (frame: { json(): unknown }) => (frame.json() as { params?: unknown }).params;

const full = {
  [VERSION]: '2026-07-28',
  [CAPABILITIES]: { roots: {}, sampling: { tools: {} } },
  [INFO]: { name: 'c', version: '1', title: 'C' },
  [LEVEL]: 'warning',
};
const withMeta = (meta: object) => request(JSON.stringify({ name: 'x', _meta: meta }));

for (const [title, params] of [
  ['with a full envelope', `{"_meta":{"${VERSION}":"2026-07-28","${CAPABILITIES}":{}}}`],
  ['with any value of the key', `{"_meta":{"${VERSION}":7}}`],
  ['with an escaped solidus', `{"_meta":{"${VERSION.replace('/', '\\/')}":"x"}}`],
  ['with the key all in escapes', `{"_meta":{"${VERSION.replace(/i|o|\./g, escapeOf)}":"x"}}`],
  ['with an escaped _meta', `{"\\u005fmeta":{"${VERSION}":"x"}}`],
  ['with two _meta', `{"_meta":{},"_meta":{"${VERSION}":"x"}}`],
] as const) {
  test(`takes a message for modern ${title}`, (t) => {
    t.true(claimsModern(request(params)));
  });
}

test('takes a message for modern as a client wrote it, however it spells the keys', (t) => {
  for (const meta of ['_meta', '\\u005fmeta']) {
    for (const key of [VERSION, VERSION.replace('i', '\\u0069')]) {
      const params = `{"text":"${'\\n\\"u'.repeat(200)}","${meta}":{"${key}":"2026-07-28"}}`;
      const bytes = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
      const read = readMessage(bytes, { maxDepth: 10, maxBatch: 1, maxValues: 1_000_000 });
      t.true(read.kind === 'message' && claimsModern(read.frame), params.slice(-70));
    }
  }
});

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

for (const [title, params] of [
  ['without params', undefined],
  ['with another reserved key', '{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}'],
  ['with the other keys of the envelope', `{"_meta":{"${CAPABILITIES}":{},"${INFO}":{}}}`],
  ['with the key as a text', `{"_meta":{"x":"${VERSION}"},"y":"\\"_meta\\":{\\"${VERSION}\\":1}"}`],
  ['with the key in the arguments', `{"arguments":{"_meta":{"${VERSION}":"x"}}}`],
  ['with the key beside _meta', `{"${VERSION}":"x"}`],
  ['with an array for params', `["_meta",{"${VERSION}":"x"}]`],
  ['with an array for _meta', `{"_meta":["${VERSION}"]}`],
  ['with escapes of other things', '{"_meta":{"x":"\\u0069"}}'],
] as const) {
  test(`takes a message for no modern one ${title}`, (t) => {
    const frame =
      params === undefined ? clientFrame('{"jsonrpc":"2.0","id":1,"method":"initialize"}') : request(params);
    t.false(claimsModern(frame));
  });
}

test('takes a notification for modern by the same key, and no response', (t) => {
  t.true(claimsModern(clientFrame({ method: 'notifications/x', params: { _meta: { [VERSION]: 'x' } } })));
  t.false(claimsModern(clientFrame({ id: 1, result: { _meta: { [VERSION]: 'x' } } })));
});

test('reads the envelope', (t) => {
  t.deepEqual(readRequestMetadata(withMeta({ ...full, other: 1 })), {
    revision: '2026-07-28',
    capabilities: { roots: {}, sampling: { tools: {} } },
    clientInfo: { name: 'c', version: '1', title: 'C' },
    logLevel: 'warning',
  });
  t.deepEqual(readRequestMetadata(withMeta({ [VERSION]: 'never', [CAPABILITIES]: {} })), {
    revision: 'never',
    capabilities: {},
    clientInfo: undefined,
    logLevel: undefined,
  });
});

for (const [title, params, fault] of [
  ['no params', undefined, `params._meta["${VERSION}"] is missing; expected a string`],
  ['no _meta', '{}', `params._meta["${VERSION}"] is missing; expected a string`],
  ['an array for _meta', '{"_meta":[]}', `params._meta["${VERSION}"] is missing; expected a string`],
  ['no version', `{"_meta":{"${CAPABILITIES}":{}}}`, `params._meta["${VERSION}"] is missing; expected a string`],
  ['a number for a version', `{"_meta":{"${VERSION}":1}}`, `params._meta["${VERSION}"] must be a string`],
  ['no capabilities', `{"_meta":{"${VERSION}":"x"}}`, `params._meta["${CAPABILITIES}"] is missing; expected an object`],
  [
    'an array for capabilities',
    `{"_meta":{"${VERSION}":"x","${CAPABILITIES}":[]}}`,
    `params._meta["${CAPABILITIES}"] must be an object`,
  ],
  [
    'null for capabilities',
    `{"_meta":{"${VERSION}":"x","${CAPABILITIES}":null}}`,
    `params._meta["${CAPABILITIES}"] must be an object`,
  ],
  [
    'clientInfo without version',
    `{"_meta":{"${VERSION}":"x","${CAPABILITIES}":{},"${INFO}":{"name":"c"}}}`,
    `params._meta["${INFO}"] must be an object with the strings "name" and "version"`,
  ],
  [
    'an unknown log level',
    `{"_meta":{"${VERSION}":"x","${CAPABILITIES}":{},"${LEVEL}":"loud"}}`,
    `params._meta["${LEVEL}"] must be a log level`,
  ],
  [
    '_meta twice',
    `{"_meta":{"${VERSION}":"x","${CAPABILITIES}":{}},"_meta":{}}`,
    'params._meta must occur once, and nothing that could be taken for it',
  ],
  [
    'a _meta in another case beside it',
    `{"_meta":{"${VERSION}":"x","${CAPABILITIES}":{}},"_Meta":{}}`,
    'params._meta must occur once, and nothing that could be taken for it',
  ],
  ...keys.map(
    (key) =>
      [
        `${key} twice, once in escapes`,
        `{"_meta":${JSON.stringify(full).replace(/}$/, `,"${[...key].map(escapeOf).join('')}":{}}`)}}`,
        `params._meta["${key}"] must occur once, and nothing that could be taken for it`,
      ] as const,
  ),
] as const) {
  test(`refuses ${title}`, (t) => {
    const frame =
      params === undefined ? clientFrame('{"jsonrpc":"2.0","id":1,"method":"tools/list"}') : request(params);
    t.deepEqual(readRequestMetadata(frame), { fault });
  });
}

test('of a large envelope only the text is kept, which is read anew at each look', (t) => {
  const read = (padding: number): RequestMetadata => {
    const said = readRequestMetadata(
      withMeta({ ...full, [INFO]: { name: 'c', version: '1', more: 'x'.repeat(padding) } }),
    );
    if ('fault' in said) throw new Error(said.fault);
    return said;
  };
  const small = read(1000);
  t.is(small.capabilities, small.capabilities);
  t.is(small.clientInfo, small.clientInfo);
  const large = read(3000);
  t.not(large.capabilities, large.capabilities);
  t.not(large.clientInfo, large.clientInfo);
  // Who is to look knows how much there is.
  const capabilitiesBytes = JSON.stringify(small.capabilities).length;
  t.deepEqual({ ...large, clientInfo: undefined }, { ...small, capabilitiesBytes, clientInfo: undefined });
  t.is((large.clientInfo?.more as string).length, 3000);
});

const envelope = JSON.stringify(full).slice(1, -1);

for (const [title, method, before, after] of [
  ['what else _meta holds', 'm', `{"_meta":{ "progressToken":1 ,${envelope}}}`, '{"_meta":{ "progressToken":1}}'],
  ['numbers and escapes', 'm', `{"_meta":{${envelope}},"n":1e400,"s":"\\u0041"}`, '{"n":1e400,"s":"\\u0041"}'],
  ['an empty _meta that was empty before', 'm', '{"_meta":{}}', '{"_meta":{}}'],
  ['a related task', 'm', `{"_meta":{"${RELATED_TASK}":{},${envelope}}}`, `{"_meta":{"${RELATED_TASK}":{}}}`],
  ['the params of a method that needs some', 'vendor/x', `{"_meta":{${envelope}}}`, '{}'],
  ['inputResponses', 'tools/call', `{"_meta":{${envelope}},"inputResponses":{}}`, '{"inputResponses":{}}'],
  ['what is no object', 'm', '[1]', '[1]'],
] as const) {
  test(`strips the envelope and leaves ${title}`, (t) => {
    t.is(textOf(stripMetadata(request(before, method))), textOf(request(after, method)));
  });
}

test('strips params that are empty without the envelope where a method does without', (t) => {
  const frame = request(`{"_meta":{${envelope}}}`, 'tools/list');
  t.is(textOf(stripMetadata(frame)), '{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
  const empty = request('{}', 'tools/list');
  t.is(stripMetadata(empty), empty);
});

test('strips what answers an input request when told to', (t) => {
  const frame = request(`{"requestState":"s","name":"x","_meta":{${envelope}},"inputResponses":{"a":{}}}`);
  t.is(textOf(stripMetadata(frame, { inputs: 'remove' })), textOf(request('{"name":"x"}')));
});

const metadata: RequestMetadata = {
  revision: '2026-07-28',
  capabilities: { roots: {} },
  clientInfo: { name: 'c', version: '1' },
  logLevel: undefined,
};
const stamped = `"${VERSION}":"2026-07-28","${CAPABILITIES}":{"roots":{}},"${INFO}":{"name":"c","version":"1"}`;

for (const [title, before, after] of [
  ['empty params', '{}', `{"_meta":{${stamped}}}`],
  ['params with members', '{"cursor":"x" }', `{"cursor":"x","_meta":{${stamped}} }`],
  ['a _meta', '{"_meta":{"progressToken":1}}', `{"_meta":{"progressToken":1,${stamped}}}`],
  ['an empty _meta', '{"_meta":{}}', `{"_meta":{${stamped}}}`],
  ['a _meta that is no object', '{"_meta":null}', `{"_meta":{${stamped}}}`],
  ['params that are an empty array', '[ ]', `{"_meta":{${stamped}}}`],
  ['an envelope', `{"_meta":{${envelope.replace('"2026-07-28"', '0')}}}`, `{"_meta":{${stamped}}}`],
  ['a tool call for a task', '{"task":{"ttl":1},"name":"x"}', `{"name":"x","_meta":{${stamped}}}`],
] as const) {
  test(`stamps ${title}`, (t) => {
    const frame = stampMetadata(request(before), metadata);
    t.is(textOf(frame), textOf(request(after)));
    t.deepEqual(readRequestMetadata(frame), metadata);
  });
}

test('stamps a request without params', (t) => {
  const frame = stampMetadata(clientFrame('{"jsonrpc":"2.0","method":"tools/list","id":"a"}'), metadata);
  t.is(textOf(frame), `{"jsonrpc":"2.0","method":"tools/list","id":"a","params":{"_meta":{${stamped}}}}`);
  t.deepEqual(frame, clientFrame(textOf(frame)));
});

test('leaves params by position to the server', (t) => {
  const frame = request('[1]');
  t.is(stampMetadata(frame, metadata), frame);
});

test('leaves a task of a vendor method alone', (t) => {
  t.deepEqual(paramsOf(stampMetadata(request('{"task":1}', 'vendor/x'), { ...metadata, clientInfo: undefined })), {
    task: 1,
    _meta: { [VERSION]: '2026-07-28', [CAPABILITIES]: { roots: {} } },
  });
});

const anyFields = fc.dictionary(anyText, anyJson, { maxKeys: 3 });
const anyMetadata: fc.Arbitrary<RequestMetadata> = fc.record({
  revision: anyText,
  capabilities: anyFields.map((fields) => JSON.parse(JSON.stringify(fields)) as Record<string, unknown>),
  clientInfo: fc.option(fc.record({ name: anyText, version: anyText }), { nil: undefined }),
  logLevel: fc.constantFrom('debug', 'emergency', undefined),
});
const anyMeta = fc.dictionary(fc.oneof(anyText, fc.constantFrom(...keys, 'progressToken')), anyJson, { maxKeys: 5 });
const anyParams = fc
  .tuple(
    fc.dictionary(fc.oneof(anyText, fc.constantFrom('name', 'arguments')), anyJson, { maxKeys: 3 }),
    fc.option(fc.oneof(anyMeta, anyJson), { nil: undefined }),
    fc.integer(),
  )
  .map(([params, meta, seed]) => {
    const printer = new JsonPrinter(seed, { newlines: false });
    const members: [string, unknown][] = Object.entries(params);
    if (meta !== undefined) members.push(['_meta', meta]);
    return printer.object(printer.shuffle(members));
  });

test('what was stamped is what is read, and nothing else has changed', (t) => {
  fc.assert(
    fc.property(anyParams, anyMetadata, (params, given) => {
      const frame = request(params, 'vendor/x');
      const once = stampMetadata(frame, given);
      t.deepEqual(readRequestMetadata(once), given);
      t.true(claimsModern(once));
      t.deepEqual(once, clientFrame(textOf(once)));
      t.deepEqual(paramsOf(once), {
        ...(paramsOf(frame) as object),
        _meta: { ...withoutEnvelope(paramsOf(frame)), ...envelopeIn(paramsOf(once)) },
      });
      t.deepEqual(readRequestMetadata(stampMetadata(once, given)), given);
      t.is(textOf(stampMetadata(once, given)), textOf(once));
    }),
    { numRuns: 500 },
  );
});

test('what was stripped holds no envelope, and nothing else has changed', (t) => {
  fc.assert(
    fc.property(anyParams, (params) => {
      const frame = request(params, 'vendor/x');
      const before = paramsOf(frame) as Record<string, unknown>;
      const once = stripMetadata(frame);
      t.false(claimsModern(once));
      t.deepEqual(once, clientFrame(textOf(once)));
      t.is(stripMetadata(once), once);
      const { _meta: meta, ...rest } = before;
      const kept = withoutEnvelope(before);
      const isEmptied = isObject(meta) && Object.keys(meta).length > 0 && Object.keys(kept).length === 0;
      const expected = isObject(meta) ? (isEmptied ? rest : { ...rest, _meta: kept }) : before;
      t.deepEqual(paramsOf(once), expected);
    }),
    { numRuns: 500 },
  );
});

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function withoutEnvelope(params: unknown): Record<string, unknown> {
  const meta = isObject(params) ? params._meta : undefined;
  return Object.fromEntries(Object.entries(isObject(meta) ? meta : {}).filter(([key]) => !keys.includes(key)));
}

function envelopeIn(params: unknown): Record<string, unknown> {
  const meta = isObject(params) && isObject(params._meta) ? params._meta : {};
  return Object.fromEntries(Object.entries(meta).filter(([key]) => keys.includes(key)));
}

test('says of capabilities with more values than are looked at that it is their number', (t) => {
  const read = readRequestMetadata(
    withMeta({ ...full, [CAPABILITIES]: { a: Array.from({ length: 60_000 }, () => 0) } }),
  );
  t.regex('fault' in read ? read.fault : '', /clientCapabilities"\] has more than 50000 values; expected an object/);
});
