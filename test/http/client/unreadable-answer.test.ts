import test from 'ava';
import { isParserCode, unreadableAnswer } from '../../../src/http/client/network-error.ts';

const URL_OF_SERVER = new URL('http://user:secret@example.com:8080/mcp?key=secret');
const CODE = 'HPE_INVALID_CONSTANT';

function messageFor(answer: string, code = CODE): string {
  const cause = Object.assign(new Error('Parse Error'), { code, rawPacket: Buffer.from(answer, 'latin1') });
  return unreadableAnswer(URL_OF_SERVER, code, cause).message;
}

for (const [answer, what, wayOut] of [
  ['\x15\x03\x01\0\x02\x02\x46', 'TLS', 'Check the port, or use https://'],
  ['\x16\x03\x03\0\x7a', 'TLS', 'Check the port, or use https://'],
  ['SSH-2.0-OpenSSH_9\r\n', 'SSH', 'Check the port and the scheme'],
  ['\0\0\x12\x04\0\0\0\0\0', 'HTTP/2', 'The server has to speak HTTP/1.1, too'],
  ['{"jsonrpc":"2.0"}\n', 'JSON without HTTP around it', 'Check the port; a server on a bare socket is not served'],
  [
    'HTTP/1.1 200 OK\r\nA B: c\r\n',
    'HTTP with a mistake in its headers',
    'The server, or a proxy before it, has to be',
  ],
  ['220 mail.example.com\r\n', 'text that is no HTTP', 'Check the port and the scheme'],
  ['\x4a\0\0\0\x0a8.0\0', 'bytes that are no HTTP', 'Check the port and the scheme'],
  ['', 'bytes that are no HTTP', 'Check the port and the scheme'],
] as const) {
  test(`an answer that begins with ${JSON.stringify(answer)} is ${what}`, (t) => {
    const message = messageFor(answer);
    t.true(message.startsWith('The server at http://example.com:8080/mcp answered with what cannot be read'), message);
    t.true(message.includes(`it is ${what}. ${wayOut}`), message);
  });
}

test('headers without end are told as such, however they begin', (t) => {
  t.regex(messageFor('HTTP/1.1 200 OK\r\n', 'HPE_HEADER_OVERFLOW'), /headers without end.*16 KiB.*has to send less/);
});

test('what was said is never shown, and is found in the error that another was made of', (t) => {
  const inner = Object.assign(new Error('x'), { rawPacket: Buffer.from('{"token":"hunter2"}') });
  const error = unreadableAnswer(URL_OF_SERVER, CODE, new Error('of a library', { cause: inner }));
  t.regex(error.message, /it is JSON/);
  t.notRegex(error.message, /hunter2|secret/);
  t.deepEqual([error.code, error.data], ['ERR_UPSTREAM_UNREADABLE', { cause: CODE }]);
});

test('only codes of the parser are about an answer', (t) => {
  t.true(isParserCode(CODE));
  for (const code of [undefined, 'ECONNRESET', 'EPROTO']) t.false(isParserCode(code));
});
