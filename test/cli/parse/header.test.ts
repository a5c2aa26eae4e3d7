import test from 'ava';
import { flagOf } from '../../../src/cli/options/option-names.ts';
import { parseForwardedName, parseHeader } from '../../../src/cli/parse/servers/header-value.ts';

/** The command line's names. */
const ON_COMMAND_LINE = { nameOf: flagOf };
const KEY = `\${KEY}`;
const env = {
  KEY: 'hunter2',
  EMPTY: '',
  LINE: 'hunter2\n',
  LINES: 'hunter2\nx',
  UNICODE: 'hunter2☃',
  NESTED: `\${KEY}`,
};

function problem(text: string): string {
  const parsed = parseHeader(text, env);
  return parsed.ok ? 'accepted' : parsed.problem;
}

test('a name, a colon and a value; spaces around them do not count', (t) => {
  t.deepEqual(parseHeader('X-Key: a: b, c', env), { ok: true, value: { name: 'x-key', value: 'a: b, c' } });
  t.deepEqual(parseHeader('  X-Key :b  ', env), { ok: true, value: { name: 'x-key', value: 'b' } });
  t.deepEqual(parseHeader('X-Key:', env), { ok: true, value: { name: 'x-key', value: '' } });
});

test('values come from the environment, once and where they are marked', (t) => {
  t.deepEqual(parseHeader(`Authorization: Bearer ${KEY}`, env), {
    ok: true,
    value: { name: 'authorization', value: 'Bearer hunter2' },
  });
  t.deepEqual(parseHeader(`A: ${KEY}/${KEY}`, env), { ok: true, value: { name: 'a', value: 'hunter2/hunter2' } });
  t.deepEqual(parseHeader('A: $KEY {KEY}', env), { ok: true, value: { name: 'a', value: '$KEY {KEY}' } });
  t.deepEqual(parseHeader(`A: \${NESTED}`, env), { ok: true, value: { name: 'a', value: KEY } });
});

test('a line break at the end of a variable is left out: files read into one end with it', (t) => {
  t.deepEqual(parseHeader(`A: \${LINE}`, env), { ok: true, value: { name: 'a', value: 'hunter2' } });
});

test('a variable that is not set, or empty, is named', (t) => {
  t.is(
    problem(`Authorization: Bearer \${TOKNE} ${KEY}`),
    'the value of Authorization names the variable TOKNE, which is not set here; set it, or correct its name',
  );
  t.regex(problem(`A: \${EMPTY}`), /names the variable EMPTY/);
});

test('what is no header is refused without being shown', (t) => {
  for (const text of ['hunter2', ': hunter2', 'hunter 2: x', '', 'ü: hunter2']) {
    t.is(problem(text), "expected 'Name: value'; got something else");
  }
});

test('a value that HTTP cannot carry is refused without being shown', (t) => {
  for (const text of [`A: \${LINES}`, `A: \${UNICODE}`, 'A: hunter2\u0000']) {
    t.is(problem(text), 'the value of A has a character that HTTP headers cannot hold, such as a line break');
  }
});

for (const name of [
  'Host',
  'Connection',
  'Keep-Alive',
  'Transfer-Encoding',
  'TE',
  'Trailer',
  'Upgrade',
  'Proxy-Authorization',
  'Expect',
  'Content-Length',
  'Content-Type',
  'Content-Encoding',
  'Content-Language',
  'Accept',
  'Accept-Encoding',
  'Last-Event-ID',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'Mcp-Anything',
]) {
  test(`${name} is ours to write, not the user's, and no client's to pass`, (t) => {
    t.is(problem(`${name}: x`), `${name} is written by mcp-portage itself, as HTTP and MCP want it; leave it out`);
    t.false(parseForwardedName(name, ON_COMMAND_LINE).ok);
  });
}

for (const name of ['Authorization', 'Cookie', 'X-Api-Key', 'User-Agent', 'Accept-Language', 'Origin', 'Traceparent']) {
  test(`${name} may be set`, (t) => {
    t.like(parseHeader(`${name}: x`, env), { ok: true, value: { name: name.toLowerCase() } });
  });
}

test('a header to pass on is known by its name in lower case', (t) => {
  t.deepEqual(parseForwardedName('X-Request-Id', ON_COMMAND_LINE), { ok: true, value: 'x-request-id' });
});

test('a credential of clients cannot be named to pass, and the way out is told', (t) => {
  for (const name of ['authorization', 'Cookie']) {
    const parsed = parseForwardedName(name, ON_COMMAND_LINE);
    t.regex(
      parsed.ok ? 'accepted' : parsed.expected,
      /^a header that is no credential: MCP forbids .*--bearer-token-file/,
    );
  }
});

test('what is no name of a header, or says who the client itself is, cannot be passed on', (t) => {
  for (const text of ['', 'X Request', 'X-Request-Id: 7', '*', 'Origin', 'X-Forwarded-For', 'Forwarded']) {
    t.like(parseForwardedName(text, ON_COMMAND_LINE), { ok: text === '*' }, text);
  }
});
