import type { Protection } from './protection.ts';

const SERVER = { file: 'src/downstream/http-server.ts', tests: ['test/downstream/authentication.test.ts'] } as const;
const BEARER = {
  file: 'src/http/auth/bearer-authenticator.ts',
  tests: ['test/downstream/authentication.test.ts'],
} as const;
const TOKENS = { file: 'src/http/auth/token-table.ts', tests: ['test/http/auth/token-table.test.ts'] } as const;
const CHALLENGE = { file: 'src/http/auth/challenge.ts', tests: ['test/downstream/authentication.test.ts'] } as const;
const METADATA = {
  file: 'src/http/auth/protected-resource.ts',
  tests: ['test/downstream/authentication.test.ts'],
} as const;

/** Who calls: tokens that were handed out, and what callers are told. */
export const AUTHENTICATION: readonly Protection[] = [
  {
    promise: 'who shows no token, or a wrong one, is refused on every route',
    file: 'src/http/auth/callers.ts',
    tests: ['test/downstream/authentication.test.ts'],
    code: "if (verdict.kind === 'refused') return decided(verdict.refusal);",
    without:
      "if (verdict.kind === 'refused') return ((request as IdentifiedRequest)[CALLER] = this.#describe(request, '') as Caller), decided(undefined);",
  },
  {
    promise: 'who leaves while its token is looked at opens nothing',
    ...SERVER,
    code: 'if (response.destroyed) return;',
  },
  {
    promise: 'only a token counts, no other scheme',
    ...BEARER,
    code: '/^Bearer +(',
    without: '/^\\w+ +(',
  },
  {
    promise: 'a token that nobody was given is refused',
    ...BEARER,
    code: 'if (jwt === undefined) return settle(UNKNOWN_TOKEN);',
    without: "if (jwt === undefined) return settle({ kind: 'principal', principal: token });",
  },
  {
    promise: 'two tokens are nobody’s, even if the first is right',
    ...SERVER,
    code: 'joinDuplicateHeaders: true,',
  },
  {
    promise: 'a token in the query string is refused, beside the right header too',
    ...BEARER,
    code: 'if (hasTokenInQuery(request)) return settle(IN_QUERY);',
  },
  {
    promise: 'every token is compared, whichever matches: time tells nothing',
    ...TOKENS,
    code: 'principal ??= entry.principal;',
    without: 'return entry.principal;',
  },
  {
    promise: 'tokens are compared in constant time',
    ...TOKENS,
    code: 'this.#isEqual(digest, shown)',
    without: 'digest.equals(shown)',
  },
  {
    promise: 'a token is compared by its digest, whatever its length',
    ...TOKENS,
    code: "return createHash('sha256').update(token).digest();",
    without: 'return Buffer.from(token);',
  },
  {
    promise: 'a token file that is gone lets nobody in and disturbs nobody else',
    ...TOKENS,
    code: '} catch {\n    return undefined;',
    without: '} finally {',
  },
  {
    promise: 'a file without a token lets nobody in',
    ...TOKENS,
    code: 'isBearerToken(text.trim()) ? digestOf(text.trim()) : undefined',
    without: 'digestOf(text.trim())',
  },
  {
    promise: 'a token that is replaced in its file is no longer good',
    file: 'src/http/changing-file.ts',
    tests: ['test/http/auth/token-table.test.ts'],
    code: 'this.#read?.seen === signs',
    without: 'this.#read !== undefined',
  },
  {
    promise: 'so is one that is replaced at once, whose file looks the same',
    file: 'src/http/changing-file.ts',
    tests: ['test/http/changing-file.test.ts'],
    code: 'Date.now() - mtimeMs < UNSETTLED_MS',
    without: 'false',
  },
  {
    promise: 'names of tokens are no subjects of an issuer',
    file: 'src/cli/parse-access.ts',
    tests: ['test/cli/parse-access.test.ts'],
    code: '= `token:$',
    without: '= `$',
  },
  {
    promise: 'a token itself is no option: other users can read command lines',
    file: 'src/cli/parse-auth-value.ts',
    tests: ['test/cli/parse-access.test.ts'],
    code: "return refuse(\n    'where a token is found",
    without:
      "return { ok: true, value: { name, kind: 'env', place: text } };\n  return refuse(\n    'where a token is found",
  },
  {
    promise: 'a refusal repeats nothing that could end its header',
    ...CHALLENGE,
    tests: ['test/http/auth/challenge.test.ts'],
    code: String.raw`text.replaceAll(/[^\x20-\x7e]|["\\]/g, '')`,
    without: 'text',
  },
  {
    promise: 'a challenge names where to learn who hands out tokens',
    ...CHALLENGE,
    code: 'resource_metadata=',
  },
  {
    promise: 'a token without the scopes is told so',
    ...CHALLENGE,
    code: "scope: 'insufficient_scope'",
    without: 'scope: undefined',
  },
  {
    promise: 'the metadata names the resource as clients call it',
    ...METADATA,
    file: 'src/http/public-url.ts',
    code: 'baseUrl !== undefined',
    without: 'baseUrl === null',
  },
  {
    promise: 'a Host that is none does not get into the metadata',
    file: 'src/http/public-url.ts',
    tests: ['test/http/auth/protected-resource.test.ts'],
    code: "HOST.test(headers.host ?? '') ? headers.host : 'localhost'",
    without: 'headers.host',
  },
];
