import test from 'ava';
import fc from 'fast-check';
import * as headers from '../../../src/mcp/vocabulary/headers.ts';
import {
  decodeHeaderValue,
  encodeHeaderValue,
  findHeaderFault,
  INEXPRESSIBLE,
  isSessionId,
  MAX_HEADER_BYTES,
  MAX_HEADERS,
} from '../../../src/mcp/vocabulary/headers.ts';
import { anyText } from '../../wire/json-text.ts';

test('header names are those of the specification', (t) => {
  t.like(headers, {
    SESSION_ID_HEADER_OUT: 'Mcp-Session-Id',
    PROTOCOL_VERSION_HEADER: 'mcp-protocol-version',
    LAST_EVENT_ID_HEADER: 'last-event-id',
  });
});

test('names to read are in lower case, as Node gives them, and the same as those to write', (t) => {
  const named: Readonly<Record<string, unknown>> = headers;
  const written = Object.entries(named).filter(([constant]) => constant.endsWith('_OUT'));
  t.is(written.length, 6);
  for (const [constant, name] of written) t.is(named[constant.replace(/_OUT$/, '')], String(name).toLowerCase());
});

for (const [text, encoded] of [
  ['us-west1', 'us-west1'],
  ['a b', 'a b'],
  ['~!"#', '~!"#'],
  ['=?base64?x', '=?base64?x'],
  ['x?=', 'x?='],
  ['=?BASE64?x?=', '=?BASE64?x?='],
  ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
  [' padded ', '=?base64?IHBhZGRlZCA=?='],
  [' x', '=?base64?IHg=?='],
  ['x ', '=?base64?eCA=?='],
  ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
  ['a\r\nX-Evil: 1', '=?base64?YQ0KWC1FdmlsOiAx?='],
  ['a\tb', '=?base64?YQli?='],
  ['', '=?base64??='],
  ['\u007f', '=?base64?fw==?='],
  ['\u0000', '=?base64?AA==?='],
  ['é', '=?base64?w6k=?='],
  ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
  ['=?base64?=', '=?base64?PT9iYXNlNjQ/PQ==?='],
  ['=?base64??=', '=?base64?PT9iYXNlNjQ/Pz0=?='],
] as const) {
  test(`encodes ${JSON.stringify(text)} and decodes it again`, (t) => {
    t.is(encodeHeaderValue(text), encoded);
    t.is(decodeHeaderValue(encoded), text);
    t.is(decodeHeaderValue(` \t${encoded}\t `), text);
  });
}

for (const [title, value] of [
  ['a payload that is no base64', '=?base64?SGVs*G8=?='],
  ['a payload without padding', '=?base64?SGVsbG8?='],
  ['a payload with too much padding', '=?base64?SGVsbG8==?='],
  ['a payload with blanks', '=?base64?SGVs bG8=?='],
  ['a payload in the alphabet for URLs', '=?base64?4pyT8J-YgA==?='],
  ['stray bits before the padding', '=?base64?SGVsbG9=?='],
  ['bytes that are no UTF-8', '=?base64?/w==?='],
  ['the bytes of a lone surrogate', '=?base64?7aCA?='],
  ['markers that overlap', '=?base64?='],
  ['bytes beyond ASCII', 'caf\u00e9'],
  ['a control character', 'a\u0001b'],
  ['a line break', 'a\nb'],
] as const) {
  test(`decodes nothing from ${title}`, (t) => {
    t.is(decodeHeaderValue(value), undefined);
  });
}

test('takes what is not marked as it is, and markers in capitals for none', (t) => {
  for (const value of ['', 'a\tb', '=?base64?x', 'SGVsbG8=', '=?Base64?eA==?=', '=?base64?eA==?']) {
    t.is(decodeHeaderValue(value), value);
  }
});

test('any text passes through a header, but for what has no UTF-8 form', (t) => {
  fc.assert(
    fc.property(anyText, (text) => {
      const encoded = encodeHeaderValue(text);
      if (Buffer.from(text).toString() !== text) return t.is(encoded, INEXPRESSIBLE);
      t.regex(encoded, /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/);
      return t.is(decodeHeaderValue(encoded), text);
    }),
    { numRuns: 1000 },
  );
});

test('finds headers that are too long or too many', (t) => {
  t.is(findHeaderFault([]), undefined);
  t.is(findHeaderFault([['Mcp-Name', 'x'.repeat(MAX_HEADER_BYTES - 10)]]), undefined);
  t.regex(findHeaderFault([['Mcp-Name', 'x'.repeat(MAX_HEADER_BYTES - 9)]]) ?? '', /^Mcp-Name has 8193 bytes/);
  const many = Array.from({ length: MAX_HEADERS + 1 }, (_, index) => [`H${index}`, 'x'] as const);
  t.regex(findHeaderFault(many) ?? '', /^65 headers/);
  const long = Array.from({ length: 3 }, (_, index) => [`H${index}`, 'x'.repeat(6000)] as const);
  t.regex(findHeaderFault(long) ?? '', /^18012 bytes of headers/);
});

test('half a surrogate pair has no value, and whole ones have', (t) => {
  for (const text of ['\ud800', 'a\udc00', '\udc00\ud800', '\ud83d']) t.is(encodeHeaderValue(text), INEXPRESSIBLE);
  t.is(decodeHeaderValue(encodeHeaderValue('\ud83d\ude00')), '\u{1f600}');
  t.regex(
    findHeaderFault([['Mcp-Name', encodeHeaderValue('\ud800')]]) ?? '',
    /^what Mcp-Name would repeat is no Unicode/,
  );
});

test('a session id is visible ASCII that fits into a header', (t) => {
  for (const id of ['a', '!~', 'x'.repeat(4096)]) t.true(isSessionId(id), id.slice(0, 10));
  for (const id of [undefined, ['a', 'b'], '', ' ', 'a b', 'a\tb', 'ä', 'a\r\nX: y', 'x'.repeat(4097)]) {
    t.false(isSessionId(id), JSON.stringify(id)?.slice(0, 20));
  }
});
