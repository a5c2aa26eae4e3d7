/** Options from several places: which one counts, what type it has, and how errors name it. */
import test from 'ava';
import type { OptionUse } from '../../../src/cli/options/applicable.ts';
import { GivenOptions, type OptionLayer, readProcess } from '../../../src/cli/options/given-options.ts';
import { type CommandLineOptions, defaultOf, OPTIONS, type OptionName } from '../../../src/cli/options/option-table.ts';
import { BridgeError } from '../../../src/errors.ts';

const SERVE: OptionUse = { verb: 'serve', target: 'any', spelling: 'flags' };

function given(options: Record<string, readonly string[]>, env: Record<string, string> = {}, use = SERVE) {
  const commandLine = new Map(Object.entries(options)) as CommandLineOptions;
  return new GivenOptions(readProcess(commandLine, { env, cwd: '/work-dir', platform: 'linux' }), use);
}

function refusal(read: () => unknown): string {
  try {
    read();
    return 'accepted';
  } catch (thrown) {
    if (thrown instanceof BridgeError) return thrown.message;
    throw thrown;
  }
}

test('a value has the type of its option, wherever it is written', (t) => {
  const options = given(
    { port: ['80'], sse: ['false'], requestTimeout: ['2m'], tlsCert: ['cert.pem'] },
    { MCP_PORTAGE_MAX_SESSIONS: '5', MCP_PORTAGE_BASE_URL: 'https://a.example/' },
  );
  t.is(options.get('port'), 80);
  t.is(options.get('sse'), false);
  t.is(options.get('requestTimeout'), 120_000);
  t.is(options.get('tlsCert'), '/work-dir/cert.pem');
  t.is(options.get('maxSessions'), 5);
  t.deepEqual(options.get('baseUrl'), new URL('https://a.example/'));
});

test('the command line overrides the environment, and an empty variable counts as not set', (t) => {
  const options = given({ port: ['80'] }, { MCP_PORTAGE_PORT: '81', MCP_PORTAGE_HOST: '', MCP_PORTAGE_PATH: '/x' });
  t.is(options.get('port'), 80);
  t.is(options.get('host'), '127.0.0.1');
  t.is(options.get('path'), '/x');
  t.false(options.isGiven('host'));
});

test('the values of a list are separated by commas in a variable, those that may have commas by line breaks', (t) => {
  const options = given({}, { MCP_PORTAGE_INCLUDE_TOOL: 'read_*, list_*,', MCP_PORTAGE_HEADER: 'A: b, c\nD: e' });
  t.deepEqual(options.get('includeTool'), ['read_*', 'list_*']);
  t.deepEqual(options.get('header'), [
    { name: 'a', value: 'b, c' },
    { name: 'd', value: 'e' },
  ]);
});

test('an option that is not set has its default, a list is empty, and others are undefined', (t) => {
  const options = given({});
  t.is(options.get('maxSessions'), 256);
  t.is(options.get('status'), true);
  t.deepEqual(options.get('socket'), []);
  t.is(options.get('poolSize'), undefined);
});

test('every default is a value of its option', (t) => {
  for (const option of OPTIONS) {
    if (option.default !== undefined) t.not(defaultOf(option.name), undefined, option.name);
  }
});

test('a wrong value is an error only where it is needed, and names its place', (t) => {
  const options = given({ port: ['x'] }, { MCP_PORTAGE_LEASE: 'soon', MCP_PORTAGE_TIMEOUT: 'soon' });
  t.is(
    refusal(() => options.get('port')),
    '--port: expected a port number from 0 to 65535; got "x".',
  );
  t.is(
    refusal(() => options.get('lease')),
    'MCP_PORTAGE_LEASE: expected a duration of at least 1s, like 15s; got "soon".',
  );
  // The option is for another command.
  t.is(options.get('timeout'), undefined);
});

test('a wrong value whose right form is clear is answered with that', (t) => {
  const problemOf = (name: OptionName, text: string) => refusal(() => given({ [name]: [text] }).get(name));
  t.regex(problemOf('lease', '5 minutes'), /; got "5 minutes"; write 5m\.$/);
  t.regex(problemOf('sessionTimeout', '5 minutes'), /; got "5 minutes"; write 5m\.$/);
  t.regex(problemOf('sessionTimeout', '1.5 Hours'), /; write 1\.5h\.$/);
  t.regex(problemOf('sessionTimeout', '250 ms'), /; write 250ms\.$/);
  const inReport = (text: string) =>
    refusal(() => given({ since: [text] }, {}, { ...SERVE, verb: 'report' }).get('since'));
  t.regex(inReport('30 days'), /; write 30d\.$/);
  for (const unclear of ['5 fortnights', 'minutes', '9999 hours'])
    t.regex(problemOf('sessionTimeout', unclear), /; got "[^"]+"\.$/);
  t.is(
    problemOf('transport', 'http'),
    '--transport: expected one of auto, streamable-http, sse; got "http"; write streamable-http.',
  );
  t.regex(problemOf('transport', 'streamableHttp'), /; write streamable-http\.$/);
  t.regex(problemOf('isolation', 'share'), /; write shared\.$/);
  t.regex(problemOf('transport', 'grpc'), /; got "grpc"\.$/);
});

for (const name of ['authToken', 'statusToken', 'dialToken', 'clusterKey', 'env', 'oauthParam'] as const) {
  test(`a wrong value of ${name} is not shown, since it may be the credential itself`, (t) => {
    const message = refusal(() => given({ [name]: ['=hunter2'] }).get(name));
    t.regex(message, /^--[a-z-]+: (expected .*; got something else|write where the token is, .*)\.$/);
    t.false(message.includes('hunter2'));
  });
}

test('options are called by their flags on the command line, and by their fields in a program', (t) => {
  const layer: OptionLayer = new Map([
    ['port', { place: { kind: 'field', text: 'port' }, values: [{ ok: false, problem: 'expected a port' }] }],
  ]);
  const program = new GivenOptions([layer], { ...SERVE, spelling: 'fields' });
  t.is(program.nameOf('maxSessions'), 'maxSessions');
  t.is(program.placeOf('maxSessions'), 'maxSessions');
  t.is(
    refusal(() => program.get('port')),
    'port: expected a port.',
  );
  t.is(given({}).nameOf('maxSessions'), '--max-sessions');
  t.is(given({}, { MCP_PORTAGE_MAX_SESSIONS: '5' }).placeOf('maxSessions'), 'MCP_PORTAGE_MAX_SESSIONS');
});
