import type { Protection } from './protection.ts';

const HEADERS = { file: 'src/http/request-headers.ts', tests: ['test/http/client-headers.test.ts'] } as const;
const NAMES = { file: 'src/cli/parse-header.ts', tests: ['test/cli/parse-header.test.ts'] } as const;
const MAPPED = { file: 'src/http/auth/mapped-headers.ts', tests: ['test/downstream/mapped-headers.test.ts'] } as const;
const OPTIONS = { file: 'src/cli/parse-access.ts', tests: ['test/cli/parse-access.test.ts'] } as const;
const ENVIRONMENT = { file: 'src/cli/child-environment.ts', tests: ['test/cli/child-environment.test.ts'] } as const;
const LOG = { file: 'src/log.ts', tests: ['test/log.test.ts'] } as const;

/** Credentials stay where they are. */
export const CREDENTIALS: readonly Protection[] = [
  {
    promise: 'the token of a caller is not passed on',
    ...HEADERS,
    code: "'authorization',\n  'cookie'",
    without: "'cookie'",
  },
  {
    promise: 'cookies of a caller are not passed on',
    ...HEADERS,
    code: "'authorization',\n  'cookie'",
    without: "'authorization'",
  },
  {
    promise: 'of a caller’s headers only those that were named are passed on',
    ...HEADERS,
    tests: ['test/downstream/forwarded-headers.test.ts'],
    code: 'for (const name of names) {',
    without: 'for (const name of names.length === 0 ? names : Object.keys(request.headers)) {',
  },
  {
    promise: 'headers of HTTP and of MCP are nobody’s to set',
    ...HEADERS,
    code: '!OWN.has(name) && !name.startsWith(MCP_PREFIX)',
    without: 'true',
  },
  {
    promise: 'what clients send is looked at once more before it leaves',
    file: 'src/http/client.ts',
    tests: ['test/http/client-headers.test.ts'],
    code: 'pickHeaders(Object.entries(forwarded), isForwardable)',
    without: 'forwarded',
  },
  {
    promise: 'a credential of callers cannot be named to pass',
    ...NAMES,
    code: 'if (CREDENTIALS.includes(name)) return { ok: false, expected: NO_CREDENTIALS };',
  },
  {
    promise: 'a configured header cannot end its line',
    ...NAMES,
    code: '!isSendable(name, value)',
    without: 'false',
  },
  {
    promise: 'a credential is no header to map',
    file: 'src/cli/parse-auth-value.ts',
    tests: ['test/cli/parse-access.test.ts'],
    code: 'const header = parseForwardedName(name);',
    without: 'const header = { ok: true, value: name.toLowerCase(), expected: name } as const;',
  },
  {
    promise: 'no header becomes a variable that decides which code runs',
    file: 'src/cli/parse-auth-value.ts',
    tests: ['test/cli/parse-access.test.ts'],
    code: 'POWERFUL.test(variable)',
    without: 'false',
  },
  {
    promise: 'a shared process is told of no caller',
    ...OPTIONS,
    code: "given.optional('isolation', value.parseText) === 'shared'",
    without: 'false',
  },
  {
    promise: 'a process that was started ahead of need is told of no caller',
    ...OPTIONS,
    code: "given.optional('prewarm', value.parseText) !== '0'",
    without: 'false',
  },
  { promise: 'a header that is mapped must come once', ...MAPPED, code: 'values.length > 1', without: 'false' },
  {
    promise: 'and no number of others hides the second',
    file: 'src/downstream/http-server.ts',
    tests: ['test/downstream/mapped-headers.test.ts'],
    code: 'this.#server.maxHeadersCount = 0;',
  },
  { promise: 'a header that is mapped must be printable', ...MAPPED, code: '!PRINTABLE.test(value)', without: 'false' },
  {
    promise: 'a variable that is mapped comes from nowhere else',
    ...OPTIONS,
    code: 'if (both !== undefined) {',
    without: 'if (both === null) {',
  },
  {
    promise: 'the server does not get the tokens of callers, nor what is mapped',
    ...ENVIRONMENT,
    code: 'if (withheldAlways.includes(name)) continue;',
  },
  {
    promise: 'the server gets a short list of variables',
    ...ENVIRONMENT,
    code: 'inheritAll || isPassed(name, platform)',
    without: 'true',
  },
  {
    promise: 'the server does not get the settings of the bridge',
    ...ENVIRONMENT,
    code: 'name.toUpperCase().startsWith(ENV_PREFIX) || ',
  },
  { promise: 'credentials do not reach the log', ...LOG, code: 'isCredentialName(key) ? CENSOR : ', without: '' },
  {
    promise: 'credentials in errors do not reach the log',
    ...LOG,
    code: 'redactCredentials(stdSerializers.err(error))',
    without: 'stdSerializers.err(error)',
  },
  {
    promise: 'what a peer has chosen fits into a line of the log and drives no terminal',
    ...LOG,
    code: 'toPrintable(value.slice(0, 2 * MAX_CHOSEN_LENGTH), MAX_CHOSEN_LENGTH)',
    without: 'value',
  },
  {
    promise: 'URLs are shown without their query',
    file: 'src/http/shown-url.ts',
    tests: ['test/http/shown-url.test.ts'],
    code: 'hideKeys(url.pathname)}',
    without: 'hideKeys(url.pathname) + url.search}',
  },
  {
    promise: 'requests are logged without their query, which may hold a session id',
    file: 'src/downstream/http-server.ts',
    tests: ['test/downstream/http-server.test.ts'],
    code: "showRequestTarget(request.url ?? '')",
    without: 'request.url',
  },
  {
    promise: 'the log shows the beginning of a session id only',
    file: 'src/relay/session-registry.ts',
    tests: ['test/relay/session-registry.test.ts'],
    code: 'id.slice(0, 6)',
    without: 'id',
  },
  {
    promise: 'a header that cannot be sent is not shown',
    file: 'src/http/network-error.ts',
    tests: ['test/http/client-headers.test.ts'],
    code: "if (code !== 'ERR_INVALID_CHAR' && code !== 'ERR_INVALID_HTTP_TOKEN') return",
    without: 'return',
  },
  {
    promise: 'what is in a token file is not shown',
    file: 'src/http/bearer-token.ts',
    tests: ['test/http/client-headers.test.ts'],
    code: "'holds something that is no bearer token'",
    without: 'token',
  },
  {
    promise: 'arguments of a command are not shown: they may be credentials',
    file: 'src/process/command-name.ts',
    tests: ['test/process/command-name.test.ts'],
    code: 'if (!LAUNCHERS.has(program)) return program;',
    without: "if (!LAUNCHERS.has(program)) return [program, ...args].join(' ');",
  },
  {
    promise: 'the value of a variable that stands before the program is not shown',
    file: 'src/process/resolve-command.ts',
    tests: ['test/process/resolve-command.test.ts'],
    code: 'if (variable !== undefined) {',
    without: 'if (false) {',
  },
  {
    promise: 'what looks like a key in the path of a URL is not shown',
    file: 'src/http/shown-url.ts',
    tests: ['test/http/shown-url.test.ts'],
    code: "isLikeKey(segment) ? '…' : segment",
    without: 'segment',
  },
];
