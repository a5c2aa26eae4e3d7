import type { Protection } from './protection.ts';

const FAILURES = ['test/http/login/login-failures.test.ts'] as const;
const BROWSER = { file: 'src/http/login/authorize-in-browser.ts', tests: FAILURES } as const;
const GUARD = { file: 'src/http/login/address-guard.ts' } as const;
const CLIENT = { file: 'src/http/login/client-identity.ts', tests: ['test/http/login/login-clients.test.ts'] } as const;

/** Logins at remote servers: what strangers, and what metadata, cannot bring about. */
export const LOGIN: readonly Protection[] = [
  {
    promise: 'the end of a login that somebody else began is nobody’s',
    ...BROWSER,
    title: 'an answer with another state*',
    code: "if (parameters.get('state') !== state) return 'ignored';",
  },
  {
    promise: 'the end of a login at another issuer is not taken',
    ...BROWSER,
    title: 'an answer of another issuer*',
    code: 'validateAuthResponse(as, { client_id: clientId }, parameters, state)',
    without: 'parameters',
  },
  {
    promise: 'there is no login without PKCE',
    ...BROWSER,
    title: '*plain PKCE only*',
    code: "as.code_challenge_methods_supported?.includes('S256') !== true",
    without: 'false',
  },
  {
    promise: 'a user is sent to a page with https only',
    ...BROWSER,
    title: 'a login page that is no web page*',
    code: ' || !isSecure(url)',
  },
  {
    promise: 'a page elsewhere whose name leads here cannot end a login',
    file: 'src/http/login/callback-listener.ts',
    tests: FAILURES,
    title: 'a page elsewhere*',
    code: ' || !isOurs',
  },
  {
    promise: 'metadata cannot lead a login out of https',
    ...GUARD,
    tests: FAILURES,
    title: 'a token endpoint without https*',
    code: 'if (!isSecure(url)) {',
    without: 'if (url === undefined) {',
  },
  {
    promise: 'metadata of a server out there cannot name addresses of a private network',
    ...GUARD,
    tests: ['test/http/login/address-guard.test.ts'],
    code: 'isNear && !(await this.#mayBeNear())',
    without: 'false',
  },
  {
    promise: 'names that lead into a private network are not connected to',
    ...GUARD,
    tests: ['test/http/login/address-guard.test.ts'],
    code: "if (found.some(({ address }) => isPrivateAddress(address))) return callback(farTooNear(url), '', 4);",
  },
  {
    promise: 'a token is for the server that asked for it',
    file: 'src/http/login/discover.ts',
    tests: FAILURES,
    title: 'metadata about another server*',
    code: ' || !isAbout(resource, request.server)',
  },
  {
    promise: 'only the issuer that the user trusts is used',
    file: 'src/http/login/discover.ts',
    tests: ['test/http/login/login-discovery.test.ts'],
    title: 'only the issuer that is trusted*',
    code: 'issuer === undefined || named === issuer',
    without: 'true',
  },
  {
    promise: 'a token request is not sent on',
    file: 'src/http/login/login-fetch.ts',
    tests: FAILURES,
    title: 'a token endpoint that sends us on*',
    code: "request.method === 'GET' ? redirectOf(target, answer, hops) : undefined",
    without: 'answer.headers.location === undefined ? undefined : new URL(answer.headers.location)',
  },
  {
    promise: 'the secret of a client is for the issuer that knows it',
    ...CLIENT,
    title: 'a secret is not shown*',
    code: 'previous !== undefined && previous.issuer !== as.issuer',
    without: 'false',
  },
  {
    promise: 'a registration is for the issuer that made it',
    ...CLIENT,
    title: 'with a new authorization server*',
    code: 'previous?.issuer === issuer && ',
  },
  {
    promise: 'a token that would break its header is not taken',
    file: 'src/http/login/token-requests.ts',
    tests: FAILURES,
    title: 'a token that would break*',
    code: ' || !isBearerToken(accessToken)',
  },
  {
    promise: 'a login is kept where nobody else can read it',
    file: 'src/http/login/login-store.ts',
    tests: ['test/http/login/login-store.test.ts'],
    code: 'const FILE_MODE = 0o600;',
    without: 'const FILE_MODE = 0o644;',
  },
];
