import test from 'ava';
import fc from 'fast-check';
import type { Envelope } from '../../src/wire/frame.ts';
import { skipValue } from '../../src/wire/json/scan-json.ts';
import { recoverEnvelope, scanEnvelope, scanStrictEnvelope } from '../../src/wire/scan-envelope.ts';
import { anyMessage, mutate } from './json-text.ts';

function scan(text: string): Envelope | undefined {
  return scanEnvelope(Buffer.from(text));
}

function faultOf(text: string): string | undefined {
  JSON.parse(text); // the strict scan is for valid JSON only
  const scanned = scanStrictEnvelope(Buffer.from(text));
  return 'fault' in scanned ? scanned.fault : undefined;
}

test('reads a request with its offsets', (t) => {
  t.deepEqual(scan('{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"a":1}}'), {
    kind: 'request',
    id: 12,
    idStart: 22,
    idEnd: 24,
    method: 'tools/call',
    payloadStart: 56,
  });
});

test('reads a notification without parameters', (t) => {
  t.deepEqual(scan('{"jsonrpc":"2.0","method":"notifications/initialized"}'), {
    kind: 'notification',
    id: undefined,
    idStart: -1,
    idEnd: -1,
    method: 'notifications/initialized',
    payloadStart: -1,
  });
});

test('reads an id that follows a large result without walking the result', (t) => {
  // What the result holds is not JSON: a walk over it would lose its way.
  const id = scan('{"result":{"broken": """" ,"jsonrpc":"2.0","id":"abc"}')?.id;
  t.is(id, 'abc');
});

test('reads nothing after the members it needs', (t) => {
  t.is(scan('{"jsonrpc":"2.0","id":5,"result":{"broken": """"}')?.id, 5);
});

test('is not led astray by members that only text and nested objects contain', (t) => {
  const decoys = [
    '{"jsonrpc":"2.0","result":{"text":",\\"jsonrpc\\":\\"2.0\\",\\"id\\":7}"},"id":5}',
    '{"id":5,"result":{"jsonrpc":"2.0","id":7},"jsonrpc":"2.0"}',
    '{"result":{"x":{"jsonrpc":"2.0","id":7}},"note":",\\"id\\":7","jsonrpc":"2.0","id":5}',
    '{"result":"\\\\","jsonrpc":"2.0","id":5}',
    '{"jsonrpc":"2.0","result":"\\",\\"id\\":7","\\u0069d":5}',
    '{"result":{"id":7},"id":5,"jsonrpc":"2.0","extra":{"id":7}}',
    '{"result":{"id":7},"id":5,"jsonrpc":"2.0","x\\"id":7}',
    '{"result":{"id":7},"id":5,"jsonrpc":"2.0","x":"\\"id\\":7","y":7}',
    '{"result":{},"id":5,"x,\\"id":"7","jsonrpc":"2.0"}',
    '{"result":{},"id":5,"x":"\\"7","jsonrpc":"2.0"}',
  ];
  for (const text of decoys) {
    t.is(JSON.parse(text).id, 5, text);
    t.is(scan(text)?.id, 5, text);
    t.is(scan(text)?.kind, 'result', text);
  }
});

test('takes an error about an unreadable id, with the id null or left out', (t) => {
  const error = '"error":{"code":-32700,"message":"Parse error"}';
  for (const text of [
    `{"jsonrpc":"2.0",${error}}`,
    `{"jsonrpc":"2.0","id":null,${error}}`,
    `{${error},"id":null,"jsonrpc":"2.0"}`,
  ]) {
    const bytes = Buffer.from(text);
    const strict = scanStrictEnvelope(bytes);
    t.is('kind' in strict ? strict.kind : strict.fault, 'error');
    t.deepEqual(scanEnvelope(bytes), strict as Envelope);
    t.is(scanEnvelope(bytes)?.id, undefined);
  }
});

test('an outcome of null counts only when there is no other', (t) => {
  const result = '"result":{"a":1}';
  const error = '"error":{"code":7,"message":"m"}';
  for (const [members, kind, payload] of [
    [`"error":null,${result}`, 'result', '{"a":1}'],
    [`${result},"error":null`, 'result', '{"a":1}'],
    [`"result":null,${error}`, 'error', '{"code":7,"message":"m"}'],
    [`"params":null,"result": null ,${error}`, 'error', '{"code":7,"message":"m"}'],
    ['"result":null', 'result', 'null'],
    ['"error":null', 'error', 'null'],
  ] as const) {
    for (const text of [`{"jsonrpc":"2.0","id":1,${members}}`, `{${members},"id":1,"jsonrpc":"2.0"}`]) {
      const envelope = scan(text);
      t.is(envelope?.kind, kind, text);
      t.is(envelope?.id, 1, text);
      t.true(text.slice(envelope?.payloadStart).startsWith(payload), text);
    }
  }
  t.is(scan('{"jsonrpc":"2.0","method":"a","params":null}')?.kind, 'notification');
});

test('ignores lines that are no JSON-RPC message', (t) => {
  const noise = [
    '',
    '{',
    '}',
    '{}',
    '[]',
    'Server listening on port 3000',
    '{listening}',
    '{"level":30,"method":"GET","id":"abc","msg":"request"}',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"1.0","id":1,"result":{}}',
    '{"jsonrpc":"2.0","result":{}}',
    '{"jsonrpc":"2.0","id":null,"result":{}}',
    '{"jsonrpc":"2.0","id":null,"method":"a"}',
    '{"jsonrpc":"2.0","id":1.5,"result":{}}',
    '{"jsonrpc":"2.0","id":{},"result":{}}',
    '{"jsonrpc":"2.0","id":12345678901234567890,"error":{}}',
    '{"error":{},"jsonrpc":"2.0","id":12345678901234567890}',
    '{"jsonrpc":"2.0","method":5}',
    '{"jsonrpc":"2.0","method":"a"} {}',
    '[{"jsonrpc":"2.0","method":"a"}]',
  ];
  for (const text of noise) t.is(scan(text), undefined, text);
});

test('reads one id from every spelling of it', (t) => {
  for (const token of ['"é"', '"\\u00e9"', '"\\u00E9"']) {
    t.is(scan(`{"jsonrpc":"2.0","id":${token},"result":{}}`)?.id, 'é');
    t.is(scan(`{"result":{},"jsonrpc":"2.0","id":${token}}`)?.id, 'é');
    t.is(scan(`{"result":{"broken":,"id":${token},"jsonrpc":"2.0"}`)?.id, 'é');
  }
  t.is(scan('{"jsonrpc":"2.0","id":-9007199254740991,"result":{}}')?.id, -9007199254740991);
  t.is(scan('{"result":{},"jsonrpc":"2.0","id":-3}')?.id, -3);
  t.is(scan('{"jsonrpc":"2.0","id":-0,"result":{}}')?.id, 0);
});

test('reads every valid message as JSON.parse does, in both scans', (t) => {
  fc.assert(
    fc.property(anyMessage({ newlines: true }), ({ text, kind }) => {
      const bytes = Buffer.from(text);
      const parsed: Record<string, unknown> = JSON.parse(text);
      const envelope = scanStrictEnvelope(bytes);
      if ('fault' in envelope) throw new Error(envelope.fault);
      t.deepEqual(scanEnvelope(bytes), envelope);
      t.is(envelope.kind, kind);
      t.is(envelope.id, (parsed.id ?? undefined) as Envelope['id']);
      t.is(envelope.method, parsed.method as Envelope['method']);
      if (envelope.idStart !== -1) {
        t.is(JSON.parse(bytes.toString('utf8', envelope.idStart, envelope.idEnd)), parsed.id);
      }
      const payload = parsed.params ?? ('result' in parsed ? parsed.result : parsed.error);
      if (payload === undefined) {
        t.is(envelope.payloadStart, -1);
      } else {
        const end = skipValue(bytes, envelope.payloadStart);
        t.deepEqual(JSON.parse(bytes.toString('utf8', envelope.payloadStart, end)), payload);
      }
    }),
    { numRuns: 600 },
  );
});

test('never throws or hangs on bytes that are not a message', (t) => {
  fc.assert(
    fc.property(anyMessage({ newlines: true }), fc.integer(), ({ text }, seed) => {
      const bytes = mutate(Buffer.from(text), seed);
      scanEnvelope(bytes);
      scanStrictEnvelope(bytes);
      recoverEnvelope(bytes, bytes);
      const cut = Math.abs(seed) % (bytes.length + 1);
      recoverEnvelope(bytes.subarray(0, cut), bytes.subarray(cut));
    }),
    { numRuns: 1000 },
  );
  t.pass();
});

test('gives the strict scan and JSON.parse the same message after any damage that leaves valid JSON', (t) => {
  fc.assert(
    fc.property(anyMessage({ newlines: true }), fc.integer(), ({ text }, seed) => {
      const bytes = mutate(Buffer.from(text), seed);
      const damaged = bytes.toString();
      let parsed: unknown;
      try {
        parsed = JSON.parse(damaged);
      } catch {
        return;
      }
      if (bytes[0] !== 0x7b || !Buffer.from(damaged).equals(bytes)) return;
      const envelope = scanStrictEnvelope(bytes);
      if ('fault' in envelope) return;
      const { id, method } = parsed as Record<string, unknown>;
      t.is(envelope.id ?? undefined, (id ?? undefined) as Envelope['id']);
      t.is(envelope.method, method as Envelope['method']);
    }),
    { numRuns: 1000 },
  );
});

test('refuses a member that occurs twice, also when spelled with escapes', (t) => {
  const messages = {
    jsonrpc: '{"jsonrpc":"2.0","jsonrpc":"2.0","method":"a"}',
    id: '{"jsonrpc":"2.0","id":1,"method":"a","\\u0069d":2}',
    method: '{"jsonrpc":"2.0","method":"tools/list","meth\\u006fd":"tools/call"}',
    params: '{"jsonrpc":"2.0","method":"a","params":{},"\\u0070arams":{}}',
    result: '{"jsonrpc":"2.0","id":1,"result":{},"result":{}}',
    error: '{"jsonrpc":"2.0","id":1,"error":{},"\\u0065\\u0072\\u0072\\u006f\\u0072":{}}',
  };
  for (const [key, text] of Object.entries(messages)) {
    t.is(faultOf(text), `"${key}" occurs twice; expected each member once`);
  }
});

test('says what is wrong with a message and what was expected', (t) => {
  const idFault = '"id" must be a string or an integer within ±(2^53-1), written without fraction or exponent';
  const faults = [
    ['{"method":"a"}', '"jsonrpc" is missing; expected "jsonrpc":"2.0"'],
    ['{"jsonrpc":2.0,"method":"a"}', '"jsonrpc" must be the string "2.0"'],
    ['{"jsonrpc":"2.1","method":"a"}', '"jsonrpc" must be the string "2.0"'],
    ['{"jsonrpc":"2.0","id":1}', 'none of "method", "result" and "error" is present; expected one'],
    ['{"jsonrpc":"2.0","id":1,"method":7}', '"method" must be a string'],
    ['{"jsonrpc":"2.0","id":1,"method":null}', '"method" must be a string'],
    ['{"jsonrpc":"2.0","method":"a","params":"x"}', '"params" must be an object or an array'],
    ['{"jsonrpc":"2.0","method":"a","params":null}', '"params" must be an object or an array'],
    ['{"jsonrpc":"2.0","id":1,"error":"x"}', '"error" must be an object'],
    ['{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', 'both "result" and "error" are present; expected one of them'],
    [
      '{"jsonrpc":"2.0","id":1,"method":"a","result":1}',
      'both "method" and "result" are present; expected one of them',
    ],
    ['{"jsonrpc":"2.0","id":1,"params":{},"result":1}', 'both "params" and "result" are present; expected one of them'],
    ['{"jsonrpc":"2.0","result":1}', '"id" is missing; a result must name its request'],
    ['{"jsonrpc":"2.0","id":null,"result":1}', idFault],
    ['{"jsonrpc":"2.0","id":null,"method":"a"}', idFault],
    ['{"jsonrpc":"2.0","id":1.0,"method":"a"}', idFault],
    ['{"jsonrpc":"2.0","id":1e2,"method":"a"}', idFault],
    ['{"jsonrpc":"2.0","id":true,"method":"a"}', idFault],
    ['{"jsonrpc":"2.0","id":{},"method":"a"}', idFault],
    ['{"jsonrpc":"2.0","id":9007199254740992,"method":"a"}', idFault],
    ['{"jsonrpc":"2.0","id":9007199254740993,"method":"a"}', idFault],
    ['{"jsonrpc":"2.0","id":-9007199254740992,"error":{}}', idFault],
    ['{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"a"}', idFault],
    ['[]', 'the message is not one JSON object'],
  ] as const;
  for (const [text, fault] of faults) t.is(faultOf(text), fault, text);
});

test('tells the id of a faulty message when it can be read, wherever it stands', (t) => {
  t.like(scanStrictEnvelope(Buffer.from('{"method":7,"jsonrpc":"2.0","id":"a"}')), { id: 'a' });
  t.like(scanStrictEnvelope(Buffer.from('{"jsonrpc":"2.0","method":7,"id":1,"id":2}')), { id: undefined });
});

test('accepts members that JSON-RPC does not name', (t) => {
  t.is(faultOf('{"jsonrpc":"2.0","id":1,"method":"a","trace":{"id":9},"Ids":2}'), undefined);
});

test('recovers what the ends of an over-long message tell', (t) => {
  const filler = 'x'.repeat(5000);
  const cases = [
    [`{"jsonrpc":"2.0","id":5,"result":{"text":"${filler}"}}`, 'result', 5, undefined],
    [`{"result":{"text":"${filler}"},"jsonrpc":"2.0","id":"abc"}`, 'result', 'abc', undefined],
    [`{"error":{"text":"${filler}"},"id":7,"jsonrpc":"2.0"} \r`, 'error', 7, undefined],
    [`{"method":"a/b","params":{"text":"${filler}"},"jsonrpc":"2.0","id":1}`, 'request', 1, 'a/b'],
    [`  {"jsonrpc":"2.0","method":"a/b","params":{"text":"${filler}"}}`, 'notification', undefined, 'a/b'],
    [`{"jsonrpc":"2.0","method":"a/b","params":{"text":"${filler}`, undefined, undefined, 'a/b'],
    [`{"jsonrpc":"2.0","id":"${filler}","method":"a"}`, 'notification', undefined, 'a'],
    [`noise ${filler}}`, undefined, undefined, undefined],
    [`{"level":30,"id":5,"method":"a","text":"${filler}"}`, undefined, undefined, undefined],
  ] as const;
  for (const [text, kind, id, method] of cases) {
    const bytes = Buffer.from(text);
    t.deepEqual(
      recoverEnvelope(bytes.subarray(0, 1024), bytes.subarray(-1024)),
      { kind, id, method },
      text.slice(0, 60),
    );
  }
});

test('does not take the first digits of a number at the end of the head for an id', (t) => {
  t.is(recoverEnvelope(Buffer.from('{"jsonrpc":"2.0","result":1,"id":12'), Buffer.from('345,"x":{}}')).id, undefined);
});
