import test from 'ava';
import type { Parsed } from '../../../src/cli/options/value-type.ts';
import * as value from '../../../src/cli/parse/value.ts';

type Parse = (text: string) => Parsed<unknown>;

const accepts = test.macro({
  title: (_, parse: Parse, text: string, expected: unknown) => `${parse.name} reads '${text}' as ${String(expected)}`,
  exec(t, parse: Parse, text: string, expected: unknown) {
    t.deepEqual(parse(text), { ok: true, value: expected });
  },
});

const refuses = test.macro({
  title: (_, parse: Parse, text: string) => `${parse.name} refuses '${text}' and says what it expects`,
  exec(t, parse: Parse, text: string) {
    const parsed = parse(text);
    t.false(parsed.ok);
    if (!parsed.ok) t.regex(parsed.expected, /\w{3,}/);
  },
});

const { parseDuration, parsePositiveDuration, parseMessageSize, parsePort, parseCount, parsePositiveCount } = value;
test(accepts, parseDuration, '500ms', 500);
test(accepts, parseDuration, '30s', 30_000);
test(accepts, parseDuration, '5m', 300_000);
test(accepts, parseDuration, '2h', 7_200_000);
test(accepts, parseDuration, '1.5h', 5_400_000);
test(accepts, parseDuration, '45', 45_000);
test(accepts, parseDuration, '0', 0);
test(accepts, parseDuration, '5M', 300_000);
test(accepts, parseDuration, '596h', 2_145_600_000);
// Node fires a timer with a longer delay at once.
test(refuses, parseDuration, '597h');
for (const text of ['', '-1', '5 m', '5min', 'm', '1e3', 'Infinity', '1.', '.5s', '5d'])
  test(refuses, parseDuration, text);
test(accepts, parsePositiveDuration, '1ms', 1);
test(refuses, parsePositiveDuration, '0');
test(refuses, parsePositiveDuration, 'soon');

test(accepts, parseMessageSize, '65536', 65_536);
test(accepts, parseMessageSize, '64k', 65_536);
test(accepts, parseMessageSize, '16m', 16_777_216);
test(accepts, parseMessageSize, '16M', 16_777_216);
test(accepts, parseMessageSize, '16MiB', 16_777_216);
test(accepts, parseMessageSize, '16mb', 16_777_216);
test(accepts, parseMessageSize, '0.5g', 536_870_912);
for (const text of ['', '0', '1k', '513m', '1g', '16t', '-1m', 'big']) test(refuses, parseMessageSize, text);

test(accepts, parsePort, '0', 0);
test(accepts, parsePort, '65535', 65_535);
for (const text of ['', '-1', '65536', '80.5', '0x50', 'http', ' 80']) test(refuses, parsePort, text);

test(accepts, parseCount, '0', 0);
test(accepts, parsePositiveCount, '256', 256);
for (const text of ['', '-1', '1.5', 'many', '100001']) test(refuses, parseCount, text);
test(refuses, parsePositiveCount, '0');

const { parseFlag, parseListenHost, parseAllowedHost, parseOrigin, parseBaseUrl, parseEndpointPath } = value;
for (const text of ['true', '1', 'yes', 'ON']) test(accepts, parseFlag, text, true);
for (const text of ['false', '0', 'no', 'Off']) test(accepts, parseFlag, text, false);
for (const text of ['', 'maybe', '2']) test(refuses, parseFlag, text);

for (const text of ['127.0.0.1', '0.0.0.0', '::1', 'localhost', 'my-host.internal']) {
  test(accepts, parseListenHost, text, text);
}
test(accepts, parseListenHost, '[::]', '::');
for (const text of ['', 'localhost:8000', 'http://localhost', '8000', '127.0.0', '1.2.3.4.5', 'a b', '-x', '*']) {
  test(refuses, parseListenHost, text);
}

test(accepts, parseAllowedHost, 'MCP.example.com', 'mcp.example.com');
test(accepts, parseAllowedHost, 'bridge:8000', 'bridge:8000');
test(accepts, parseAllowedHost, '10.0.0.7', '10.0.0.7');
test(accepts, parseAllowedHost, 'FE80::1', '[fe80::1]');
test(accepts, parseAllowedHost, '[fe80::1]:80', '[fe80::1]:80');
for (const text of ['', '*', '*.example.com', 'https://example.com', 'a/b', 'host:', 'host:99999', '[x]']) {
  test(refuses, parseAllowedHost, text);
}

test(accepts, parseOrigin, 'https://app.example.com', 'https://app.example.com');
test(accepts, parseOrigin, 'HTTPS://App.Example.com:443/', 'https://app.example.com');
test(accepts, parseOrigin, 'http://localhost:3000', 'http://localhost:3000');
test(accepts, parseOrigin, 'chrome-extension://abcdef', 'chrome-extension://abcdef');
for (const text of [
  '',
  '*',
  'null',
  'app.example.com',
  'https://*.example.com',
  'https://a.example/x',
  'https://u@a.example',
]) {
  test(refuses, parseOrigin, text);
}

test('parseBaseUrl keeps the path prefix and drops the slash at its end', (t) => {
  const hrefOf = (text: string) => {
    const parsed = parseBaseUrl(text);
    return parsed.ok ? parsed.value.href : undefined;
  };
  t.is(hrefOf('https://example.com/tools/'), 'https://example.com/tools');
  t.is(hrefOf('http://example.com:8080'), 'http://example.com:8080/');
});
for (const text of [
  '',
  'example.com',
  'ftp://example.com',
  'https://u:p@example.com',
  'https://e.com/?a',
  'https://e.com/#a',
]) {
  test(refuses, parseBaseUrl, text);
}

for (const text of ['/mcp', '/', '/a/b-c_d.e~f']) test(accepts, parseEndpointPath, text, text);
test(accepts, parseEndpointPath, '/mcp/', '/mcp');
for (const text of ['', 'mcp', '//mcp', '/a b', '/a?b', '/a#b', '/a/../b', '/%41', '/ü', 'http://x/mcp']) {
  test(refuses, parseEndpointPath, text);
}

test('a choice is one of the listed words and nothing near it', (t) => {
  const parse = value.parseChoice(['session', 'shared']);
  t.deepEqual(parse('shared'), { ok: true, value: 'shared' });
  t.deepEqual(parse('Shared'), { ok: false, expected: 'one of session, shared', meant: 'shared' });
});

const { parseSunset } = value;
test('a date to end on is the end of that day, and a time that time', (t) => {
  const at = (text: string) => {
    const parsed = parseSunset(text);
    return parsed.ok ? parsed.value : t.fail(text);
  };
  t.deepEqual(at('2027-03-31'), { date: '2027-03-31', atMs: Date.UTC(2027, 2, 31, 23, 59, 59) });
  t.deepEqual(at('2028-02-29'), { date: '2028-02-29', atMs: Date.UTC(2028, 1, 29, 23, 59, 59) });
  t.like(at('2027-03-31T12:00Z'), { atMs: Date.UTC(2027, 2, 31, 12) });
  t.like(at('2027-03-31T12:00:00+02:00'), { atMs: Date.UTC(2027, 2, 31, 10) });
});
for (const text of [
  '2027-02-30',
  '2027-13-01',
  '31.03.2027',
  '2027-03-31T12:00',
  'tomorrow',
  '',
  '2024-12-31',
  '2027-3-1',
])
  test(refuses, parseSunset, text);
