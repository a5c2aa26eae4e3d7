import fc from 'fast-check';

const key = fc.constantFrom(
  'progressToken',
  'progress',
  'total',
  'message',
  'progress\\u0054oken',
  'progresstoken',
  'x',
);
const value = fc.constantFrom(
  '1',
  '"1"',
  '"a\\"b"',
  '0.5',
  '-1e3',
  'true',
  'null',
  '{}',
  '{"progressToken":2}',
  '[1]',
  ' 7',
);
const members = fc
  .array(fc.tuple(key, value), { maxLength: 4 })
  .map((entries) => entries.map(([name, text]) => `"${name}":${text}`).join(','));
const params = fc.oneof(
  { weight: 3, arbitrary: members.map((rest) => `{"progressToken":12${rest === '' ? '' : `,${rest}`}}`) },
  { weight: 1, arbitrary: members.map((all) => `{${all}}`) },
  { weight: 1, arbitrary: fc.constantFrom('[]', '"x"', '{"a":x"y,"progressToken":1,"b":z"}') },
);
const method = fc.constantFrom('notifications/progress', 'notifications/progress', 'notifications/message', 'ping');
const tail = fc.constantFrom(
  '',
  '',
  '',
  ' ',
  ',"id":1',
  ',"id":null',
  ',"method":"m"',
  ',"params":{}',
  ',"result":{}',
  '}',
);
const whole = fc.tuple(method, params, tail).map(([name, text, end]) => {
  return `{"jsonrpc":"2.0","method":"${name}","params":${text}${end}}`;
});
const otherOrder = fc
  .tuple(method, params)
  .map(([name, text]) => `{"params":${text},"method":"${name}","jsonrpc":"2.0"}`);

/** Some characters gone, doubled or changed. */
const damaged = fc
  .tuple(whole, fc.nat(150), fc.constantFrom('', '"', '{', '}', '\\', ',', ' ', 'é'))
  .map(([text, at, put]) => {
    const place = at % text.length;
    return `${text.slice(0, place)}${put}${text.slice(place + 1)}`;
  });

/** Lines that are progress notifications, or nearly. */
export const progressLine = fc
  .oneof({ weight: 4, arbitrary: whole }, otherOrder, damaged)
  .map((text) => Buffer.from(text));
