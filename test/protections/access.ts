import type { Protection } from './protection.ts';

const POLICY = { file: 'src/http/access-policy.ts', tests: ['test/http/access-policy.test.ts'] } as const;
const CORS = { file: 'src/http/access-policy.ts', tests: ['test/downstream/access.test.ts'] } as const;
const SERVER = { file: 'src/downstream/http-server.ts', tests: ['test/downstream/access.test.ts'] } as const;
const OPTIONS = { file: 'src/cli/parse-access.ts', tests: ['test/cli/parse-access.test.ts'] } as const;

/** Who may come in: browsers, other machines. */
export const ACCESS: readonly Protection[] = [
  { promise: 'a Host of another name is refused', ...POLICY, code: '!this.#isKnownHost(host)', without: 'false' },
  {
    promise: 'on all interfaces a Host is still checked once names were given',
    ...POLICY,
    code: ' && options.allowHosts.length === 0',
  },
  {
    promise: 'a name allowed with a port is refused with another',
    ...POLICY,
    code: 'this.#hosts.has(withoutPort(lower))',
    without: '[...this.#hosts].some((known) => withoutPort(known) === withoutPort(lower))',
  },
  {
    promise: 'an Origin that was not named is refused',
    ...POLICY,
    code: 'origin !== undefined && !this.#isNamed(origin) && !(isOwn && isOfThisMachine(origin))',
    without: 'false',
  },
  {
    promise: 'the Origin null is refused',
    ...POLICY,
    code: 'return host !== undefined && LOOPBACK_NAMES',
    without: 'return host === undefined || LOOPBACK_NAMES',
  },
  {
    promise: 'CORS is for origins that were named, not for those of this machine',
    ...CORS,
    code: ' || !this.#isNamed(origin)) return',
    without: ') return',
  },
  {
    promise: 'CORS names the origin itself, never a wildcard',
    ...CORS,
    code: "-Origin', origin)",
    without: "-Origin', '*')",
  },
  {
    promise: 'Host and Origin are checked before anything is opened or read',
    ...SERVER,
    code: 'if (refusal !== undefined) return respondError(response, refusal);',
  },
  {
    promise: 'a request with two names has none',
    ...SERVER,
    code: 'joinDuplicateHeaders: true,',
  },
  {
    promise: 'why no call could be served is told to those who may call',
    file: 'src/downstream/health.ts',
    tests: ['test/downstream/health.test.ts'],
    code: 'isWelcome && ',
  },
  {
    promise: 'a foreign page is not among them',
    ...SERVER,
    tests: ['test/downstream/health.test.ts'],
    code: 'if (access.check(request) !== undefined) return told(false);',
  },
  {
    promise: 'what a refusal repeats of a request is taken for no page',
    file: 'src/http/respond.ts',
    tests: ['test/downstream/http-server.test.ts'],
    code: "'X-Content-Type-Options': 'nosniff',",
  },
  {
    promise: 'listening beyond loopback without asking who calls is refused',
    ...OPTIONS,
    code: 'if (isExposed && !anonymous && auth === undefined) throw exposed(given, listen);',
  },
  {
    promise: 'only loopback addresses and localhost count as this machine',
    file: 'src/http/addresses.ts',
    tests: ['test/cli/parse-access.test.ts'],
    code: String.raw`/(^|\.)localhost\.?$/i.test(host)`,
    without: 'true',
  },
  {
    promise: 'the environment of a container does not open the door',
    ...OPTIONS,
    code: '!isLoopback(listen.host)',
    without: "!isLoopback(listen.host) && given.sourceOf('host').startsWith('--')",
  },
  {
    promise: 'everybody and only some are not let in together',
    ...OPTIONS,
    code: 'anonymous && auth !== undefined',
    without: 'false',
  },
  {
    promise: 'an empty list of tokens does not open the door',
    ...OPTIONS,
    code: "given.isGiven('auth-token') && tokens.length === 0",
    without: 'false',
  },
];
