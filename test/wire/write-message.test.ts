import test from 'ava';
import fc from 'fast-check';
import type { Frame } from '../../src/wire/frame.ts';
import { scanStrictEnvelope } from '../../src/wire/scan-envelope.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../src/wire/write-message.ts';
import { anyJson, anyText } from './json-text.ts';

function text(frame: Frame): string {
  return frame.bytes.toString();
}

test('writes the four kinds of message', (t) => {
  t.is(text(requestFrame(1, 'a', { b: 2 })), '{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":2}}');
  t.is(text(requestFrame('x', 'ping')), '{"jsonrpc":"2.0","id":"x","method":"ping"}');
  t.is(text(notificationFrame('n', { b: [] })), '{"jsonrpc":"2.0","method":"n","params":{"b":[]}}');
  t.is(text(notificationFrame('n')), '{"jsonrpc":"2.0","method":"n"}');
  t.is(text(resultFrame(1, {})), '{"jsonrpc":"2.0","id":1,"result":{}}');
  t.is(
    text(errorFrame(1, { code: -32603, message: 'no' })),
    '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}',
  );
});

test('leaves out the id of an error that answers nothing in particular', (t) => {
  t.is(
    text(errorFrame(undefined, { code: -32700, message: 'no', data: { a: 1 } })),
    '{"jsonrpc":"2.0","error":{"code":-32700,"message":"no","data":{"a":1}}}',
  );
});

test('echoes a raw id token', (t) => {
  const frame = resultFrame(Buffer.from('"\\u00e9"'), null);
  t.is(text(frame), '{"jsonrpc":"2.0","id":"\\u00e9","result":null}');
  t.is(frame.id, 'é');
});

test('describes each message it writes as the scan of its bytes does', (t) => {
  const anyId = fc.oneof(fc.integer(), anyText);
  const anyParams = fc.dictionary(anyText, anyJson, { maxKeys: 3 });
  fc.assert(
    fc.property(anyId, anyText, anyParams, anyJson, fc.boolean(), (id, method, params, result, bare) => {
      const optional = bare ? [] : [params];
      const frames = [
        requestFrame(id, method, ...optional),
        notificationFrame(method, ...optional),
        resultFrame(id, result),
        errorFrame(bare ? undefined : id, { code: 1, message: method, data: result }),
      ];
      for (const frame of frames) {
        const { bytes, outline: _, recordedCall: __, ...envelope } = frame;
        t.deepEqual(scanStrictEnvelope(bytes), envelope);
        t.false(bytes.includes('\n') || bytes.includes('\r'));
      }
    }),
    { numRuns: 200 },
  );
});
