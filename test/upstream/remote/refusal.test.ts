import test from 'ava';
import { readRefusal } from '../../../src/upstream/remote/refusal.ts';

const URL_OF_SERVER = new URL('https://user:hunter2@mcp.example/mcp?key=hunter2');
const refuse = (status: number, body: string, headers: Record<string, string> = {}) =>
  readRefusal(URL_OF_SERVER, { status, headers, url: URL_OF_SERVER }, Buffer.from(body));

test('what a server says with its refusal is shown short and printable, the URL without what is secret', (t) => {
  const { error } = refuse(500, `\u001b[31mno\u001b[0m\r\n{"level":"error"}\u202e${'x'.repeat(1000)}`);
  t.regex(error.message, /^The server at https:\/\/mcp\.example\/mcp answered 500 Internal Server Error: no\{/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none of these may be there
  t.notRegex(error.message, /[\u0000-\u001f\u202e]|hunter2/);
  t.true(error.message.length < 320);
});

test('where to learn how to authorize is shown without what is secret, and only if it is a URL', (t) => {
  const challenge = 'Bearer resource_metadata="https://user:hunter2@auth.example/well-known?key=hunter2"';
  const { error } = refuse(401, '', { 'www-authenticate': challenge });
  t.regex(error.message, /describes how to get it at https:\/\/auth\.example\/well-known\./);
  t.notRegex(JSON.stringify([error.message, error.data]), /hunter2/);
  t.notRegex(refuse(401, '', { 'www-authenticate': 'Bearer resource_metadata="no url"' }).error.message, /describes/);
});
