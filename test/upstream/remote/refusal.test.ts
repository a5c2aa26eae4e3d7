import test from 'ava';
import { readRefusal } from '../../../src/upstream/remote/refusal.ts';

const URL_OF_SERVER = new URL('https://user:hunter2@mcp.example/mcp?key=hunter2');
const refuse = (
  status: number,
  body: string,
  headers: Record<string, string> = {},
  { wasAuthorized = false, offersNoLogin = false } = {},
) =>
  readRefusal(URL_OF_SERVER, { status, headers, url: URL_OF_SERVER, wasAuthorized, offersNoLogin }, Buffer.from(body));

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

test('what to do about a 401 depends on whether the server was shown a token, and on whether it offers a login', (t) => {
  const where = 'The server at https://mcp.example/mcp';
  const how = 'with MCP_PORTAGE_BEARER_TOKEN, --bearer-token-file or --header';
  t.is(
    refuse(401, '').error.message,
    `${where} requires authorization (401). Give it a token ${how}, or, if the server offers a login, --login on-demand.`,
  );
  t.is(
    refuse(401, '', {}, { offersNoLogin: true }).error.message,
    `${where} requires authorization (401) and offers no login. Give it a token ${how}.`,
  );
  t.is(
    refuse(401, '', {}, { wasAuthorized: true, offersNoLogin: true }).error.message,
    `${where} does not accept the token it was given (401) and offers no login. Give it another token ${how}.`,
  );
});

test('what a server says with a 403 is shown, as it may be no matter of credentials; with a 401 it may repeat them', (t) => {
  const body = '{"jsonrpc":"2.0","error":{"code":-32000,"message":"The Host header is none of mine."}}';
  t.is(
    refuse(403, body, { 'content-type': 'application/json' }).error.message,
    'The server at https://mcp.example/mcp does not allow this (403). It says: "The Host header is none of mine." Give it a token with MCP_PORTAGE_BEARER_TOKEN, --bearer-token-file or --header.',
  );
  const page = '<!doctype html><html><title>Attention Required!</title><body>no</body></html>';
  t.regex(refuse(403, page, { 'content-type': 'text/html' }).error.message, /It says: "Attention Required!" Give/);
  const oauth = { error: 'access_denied', error_description: 'Not in your plan' };
  const json = { 'content-type': 'application/json; charset=utf-8' };
  t.regex(refuse(403, JSON.stringify(oauth), json).error.message, /It says: "Not in your plan"\./);
  for (const other of ['{"error":"no"}', 'null', '{"error":']) {
    t.true(refuse(403, other, json).error.message.includes(`It says: "${other}".`), other);
  }
  t.notRegex(refuse(403, '').error.message, /It says/);
  t.notRegex(refuse(401, 'hunter2 is no token of mine').error.message, /It says|hunter2/);
});
