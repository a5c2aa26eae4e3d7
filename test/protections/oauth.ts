import type { Protection } from './protection.ts';

const JWT = { file: 'src/http/auth/jwt-verifier.ts', tests: ['test/http/auth/jwt-verifier.test.ts'] } as const;
const KEYS = { file: 'src/http/auth/key-source.ts', tests: ['test/http/auth/key-source.test.ts'] } as const;
const FETCH = { file: 'src/http/auth/fetch-json.ts', tests: ['test/http/auth/fetch-json.test.ts'] } as const;

/** Access tokens of an OAuth issuer, check by check. */
export const OAUTH: readonly Protection[] = [
  {
    promise: 'the signature of a token is checked',
    ...JWT,
    title: '*signed by somebody else*',
    code: 'await jwtVerify(token, keys, {',
    without: "{ payload: JSON.parse(String(Buffer.from(token.split('.')[1] ?? '', 'base64'))) }; void ({",
  },
  {
    promise: 'a token of another issuer is refused',
    ...JWT,
    code: 'issuer,\n      audience: [',
    without: 'audience: [',
  },
  { promise: 'a token for another audience is refused', ...JWT, code: 'audience: [...audiences],' },
  { promise: 'only signatures of a public key count', ...JWT, code: 'algorithms: ALGORITHMS,' },
  {
    promise: 'an expired token, or one that is not valid yet, is refused',
    ...JWT,
    code: 'const CLOCK_TOLERANCE_S = 30;',
    without: 'const CLOCK_TOLERANCE_S = 100_000;',
  },
  { promise: 'a token that never expires is refused', ...JWT, code: "requiredClaims: ['exp']," },
  {
    promise: 'a token without a subject is refused',
    ...JWT,
    code: "typeof payload.sub !== 'string' || payload.sub === ''",
    without: 'payload.sub === null',
  },
  {
    promise: 'what is no text is nobody’s name',
    ...JWT,
    title: '*subject that is no text*',
    code: "typeof payload.sub !== 'string' || payload.sub === ''",
    without: '!payload.sub',
  },
  {
    promise: 'a token lets in only with all scopes',
    ...JWT,
    code: 'scopes.every((scope) => granted.has(scope))',
    without: 'scopes.length === 0 || granted.size > 0',
  },
  {
    promise: 'a subject counts together with its issuer',
    ...JWT,
    code: 'principal: `$',
    without: 'principal: payload.sub ?? `$',
  },
  {
    promise: 'a token that was good is looked at again after a minute',
    ...JWT,
    code: 'Math.min(leftMs, REMEMBERED_MS)',
    without: 'leftMs',
  },
  {
    promise: 'a token that was good is forgotten when it expires',
    ...JWT,
    code: 'Math.min(leftMs, REMEMBERED_MS)',
    without: 'REMEMBERED_MS',
  },
  {
    promise: 'requests that wait for keys are limited',
    ...JWT,
    code: 'this.#taken >= this.#count',
    without: 'false',
  },
  {
    promise: 'a key that came after ours were fetched is asked for',
    ...JWT,
    code: 'if (newer === undefined) throw thrown;',
    without: 'if (newer !== tried) throw thrown;',
  },
  {
    promise: 'without keys nobody comes in, and it is not the fault of the token',
    ...JWT,
    code: "if (thrown instanceof BridgeError) return { kind: 'unavailable', error: thrown };",
  },
  {
    promise: 'keys are renewed after a while',
    ...KEYS,
    code: 'if (ageMs >= FRESH_MS) this.#renew()',
    without: 'if (false) this.#renew()',
  },
  {
    promise: 'keys that cannot be renewed are not believed for ever',
    ...KEYS,
    code: 'if (ageMs >= USABLE_MS) return undefined;',
  },
  {
    promise: 'unknown keys do not make the bridge ask its issuer again and again',
    ...KEYS,
    code: 'if (leftMs > 0) throw notYet(leftMs);',
  },
  { promise: 'keys come over https, or from this machine', ...FETCH, code: '!isTrustworthy(url)', without: 'false' },
  {
    promise: 'a redirect leads to no keys',
    file: 'src/http/control-client.ts',
    tests: ['test/http/auth/fetch-json.test.ts'],
    code: 'followRedirect: false',
    without: 'followRedirect: true',
  },
  {
    promise: 'a document of keys without end is not read to its end',
    file: 'src/http/control-client.ts',
    tests: ['test/http/auth/fetch-json.test.ts'],
    code: 'if (transferred <= MAX_BODY_BYTES) return;',
    without: 'if (transferred > 0) return;',
  },
  {
    promise: 'metadata of another issuer is not believed',
    file: 'src/http/auth/discover-issuer.ts',
    tests: ['test/http/auth/discover-issuer.test.ts'],
    code: 'metadata.issuer !== issuer',
    without: 'false',
  },
  {
    promise: 'an issuer is asked over https, or on this machine',
    file: 'src/cli/parse-auth-value.ts',
    tests: ['test/cli/parse-access.test.ts'],
    code: "(url.protocol === 'http:' && isLocal)",
    without: "url.protocol === 'http:'",
  },
  {
    promise: 'tokens of an issuer are taken only when it is known what this server is called in them',
    file: 'src/cli/parse-access.ts',
    tests: ['test/cli/parse-access.test.ts'],
    code: 'if (audiences.length === 0) {',
    without: 'if (audiences.length < 0) {',
  },
];
