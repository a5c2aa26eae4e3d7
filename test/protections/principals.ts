import type { Protection } from './protection.ts';

const VISIT = {
  file: 'src/relay/session-registry.ts',
  tests: ['test/downstream/session-owner.test.ts'],
  code: ' || entry.principal !== principal',
} as const;
const STATE = {
  file: 'src/eras/modern-to-legacy/request-state.ts',
  tests: ['test/eras/modern-to-legacy/request-state.test.ts'],
} as const;
const POOL = {
  file: 'src/relay/session-wanted.ts',
  code: '[caller, affinity, capabilities.key, name, title, version]',
} as const;
const AFFINITY = { file: 'src/http/auth/affinity.ts', tests: ['test/http/auth/affinity.test.ts'] } as const;

/** What belongs to one caller does not exist for another. */
export const PRINCIPALS: readonly Protection[] = [
  { promise: 'a session of somebody else cannot be called in', ...VISIT, title: '*, a call is the 404*' },
  { promise: 'questions to somebody else cannot be answered', ...VISIT, title: '*, an answer is the 404*' },
  { promise: 'the events of somebody else cannot be replayed', ...VISIT, title: '*, resuming a stream is the 404*' },
  { promise: 'a session of somebody else cannot be ended', ...VISIT, title: '*, ending it is the 404*' },
  { promise: 'an HTTP+SSE session of somebody else cannot be posted to', ...VISIT, title: '*posting to the stream*' },
  {
    promise: 'no cache on the way tells a caller what another was refused with',
    file: 'src/http/respond.ts',
    tests: ['test/downstream/http-server.test.ts'],
    code: "'Cache-Control': 'no-store',\n  // It may",
    without: '// It may',
  },
  {
    promise: 'a session belongs to the transport it came in by',
    file: 'src/downstream/http-sse.ts',
    tests: ['test/downstream/session-owner.test.ts'],
    code: 'session?.peer instanceof HttpSsePeer',
    without: 'session !== undefined',
  },
  {
    promise: 'a waiting call is its own caller’s',
    ...STATE,
    code: ".update('.').update(principal)",
  },
  {
    promise: 'a waiting call goes on with the same request only',
    ...STATE,
    code: "if (fields.d !== digest) return { fault: 'state_mismatch' };",
  },
  {
    promise: 'a waiting call goes on in its time only',
    ...STATE,
    code: "if (expiresAtMs <= this.#clock.now()) return { fault: 'state_expired' };",
  },
  {
    promise: 'a state that was changed is refused',
    ...STATE,
    code: 'given.length === expected.length && timingSafeEqual(given, expected)',
    without: 'true',
  },
  {
    promise: 'a state has one spelling',
    ...STATE,
    code: " && given.toString('base64url') === seal",
  },
  {
    promise: 'states are sealed with a key nobody else knows',
    ...STATE,
    code: 'randomBytes(32)',
    without: 'Buffer.alloc(32)',
  },
  {
    promise: 'a state that is too long is not looked at',
    ...STATE,
    code: ' || state.length > MAX_STATE_LENGTH',
  },
  {
    promise: 'a task is its own caller’s',
    file: 'src/eras/modern-to-legacy/hosted-tasks.ts',
    tests: ['test/eras/modern-to-legacy/hosted-tasks.test.ts'],
    code: 'task?.principal === principal ? task : undefined',
    without: 'task',
  },
  {
    promise: 'pooled sessions are one caller’s',
    ...POOL,
    tests: ['test/eras/modern-to-legacy/calls.test.ts'],
    title: 'ML-02 ML-03*',
    without: '[affinity, capabilities.key, name, title, version]',
  },
  {
    promise: 'pooled sessions are for one set of capabilities',
    ...POOL,
    tests: ['test/eras/modern-to-legacy/calls.test.ts'],
    title: 'ML-02 ML-03*',
    without: '[caller, affinity, name, title, version]',
  },
  {
    promise: 'callers of one name who are strangers share no session',
    ...POOL,
    tests: ['test/eras/modern-to-legacy/affinity.test.ts'],
    without: '[caller, capabilities.key, name, title, version]',
  },
  {
    promise: 'what a server said of itself to one caller is told to no other',
    file: 'src/relay/legacy-pool.ts',
    tests: ['test/relay/legacy-pool.test.ts'],
    code: 'isSame && entry.session.initializeResult !== undefined',
    without: 'entry.session.initializeResult !== undefined',
  },
  {
    promise: 'where nobody is asked for a name, those beyond this machine are strangers',
    ...AFFINITY,
    code: 'return isLoopback(listen.host) && !isProxied;',
    without: 'return !isProxied;',
  },
  {
    promise: 'behind a reverse proxy callers without a name are strangers',
    ...AFFINITY,
    code: 'return isLoopback(listen.host) && !isProxied;',
    without: 'return isLoopback(listen.host);',
  },
  {
    promise: 'notifications of callers go out on links of their own',
    file: 'src/relay/caller-links.ts',
    tests: ['test/relay/call-registry.test.ts'],
    code: 'this.#links.get(key) ?? this.#dial(key, caller)',
    without: '[...this.#links.values()][0] ?? this.#dial(key, caller)',
  },
  {
    promise: 'the tools a caller was shown say nothing about those of another',
    file: 'src/downstream/streamable-stateless/listed-tools.ts',
    tests: ['test/downstream/streamable-stateless/listed-tools.test.ts'],
    code: 'const tools = this.#callers.get(principal);',
    without: 'const [tools] = this.#callers.values();',
  },
  {
    promise: 'values a process was told of its caller are part of the caller’s name',
    file: 'src/http/auth/callers.ts',
    tests: ['test/downstream/mapped-headers.test.ts'],
    code: 'JSON.stringify([principal, environment])',
    without: 'principal',
  },
  {
    promise: 'a process that was told of one caller serves no other',
    file: 'src/relay/dialer-by-environment.ts',
    tests: ['test/relay/dialer-by-environment.test.ts'],
    code: 'const key = JSON.stringify(variables);',
    without: "const key = '';",
  },
  {
    promise: 'ids are 128 random bits',
    file: 'src/cli/system-deps.ts',
    tests: ['test/cli/system-deps.test.ts'],
    code: 'randomFillSync(random);',
  },
];
