import { createHash } from 'node:crypto';
import { chmodSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { AssertionSource, ClientMethod, LoginConfig } from '../../config/remote.ts';
import { readSmallFile } from '../../io/bounded-file.ts';
import { makeFolderSync } from '../../io/make-folder.ts';
import { replaceFile } from '../../io/replace-file.ts';
import { isBearerToken } from '../client/credentials.ts';
import { ProofKey } from './proof-key.ts';
import type { RegisteredScopes } from './scopes.ts';

/** Only the user may read the files, because they are as sensitive as passwords. */
const FOLDER_MODE = 0o700;
const MAX_NAME_LENGTH = 60;

/**
 * Stores one login between runs, in its own file. Of two writers the later one wins. Reading and writing are
 * synchronous, because a few hundred bytes are read or written only now and then.
 */
export class LoginStore {
  /** Undefined if there is no folder for logins, so that no login can be stored. */
  readonly path: string | undefined;
  readonly #randomId: () => string;

  constructor(server: URL, config: LoginConfig, randomId: () => string) {
    const { stateDirectory } = config;
    this.path = stateDirectory && join(stateDirectory, 'logins', fileNameOf(server, config));
    this.#randomId = randomId;
  }

  /** Returns undefined if there is no login that can be used. */
  load(): StoredLogin | undefined {
    if (this.path === undefined) return undefined;
    try {
      return parseStoredLogin(readSmallFile(this.path));
    } catch {
      return undefined;
    }
  }

  /** Throws the error of the file system. */
  save(login: StoredLogin): void {
    if (this.path === undefined) throw new Error('there is no folder for logins');
    makeLoginFolder(dirname(this.path));
    replaceFile(this.path, `${JSON.stringify(login, undefined, 2)}\n`, this.#randomId);
  }

  /** Throws the error of the file system. */
  forget(): void {
    if (this.path !== undefined) rmSync(this.path, { force: true });
  }
}

/** Creates the folder for logins. Throws the error of the file system. */
export function makeLoginFolder(folder: string): void {
  makeFolderSync(folder, FOLDER_MODE);
  // An existing folder may have other permissions.
  chmodSync(folder, FOLDER_MODE);
}

/**
 * Returns the values that distinguish logins: the server, the client, and the way in which tokens are requested. A
 * user's logins with a browser and with a code have the same identity.
 */
export function identityOf(server: URL, config: LoginConfig): readonly (string | undefined)[] {
  const { grant, client, clientMetadataUrl, issuer } = config;
  const asWhom = grant === 'client-credentials' || grant === 'jwt-bearer' ? grant : 'authorization-code';
  return [server.href, asWhom, client?.id, clientMetadataUrl, issuer, ...wishesOf(config)];
}

/**
 * Returns a digest of further settings, because values of parameters are never shown. Returns an empty list for default
 * settings, so that their logins keep the file name that they have.
 */
function wishesOf(config: LoginConfig): readonly string[] {
  const { assertion, resource, extraParameters, token, tokenEndpoint, authMethod } = config;
  const wishes = [
    ...(assertion === undefined ? [] : [originOf(assertion)]),
    ...(resource.kind === 'server' ? [] : [resource]),
    ...[...extraParameters].sort(),
    ...(token === 'access' ? [] : [{ token }]),
    ...(tokenEndpoint === undefined ? [] : [{ tokenEndpoint: tokenEndpoint.href }]),
    ...(authMethod === undefined ? [] : [{ authMethod }]),
  ];
  return wishes.length === 0 ? [] : [digestOf(JSON.stringify(wishes))];
}

/**
 * Returns the source of the assertion as a part of a login's identity. The result does not depend on whether the user
 * logs in with a browser or with a code.
 */
function originOf(assertion: AssertionSource): unknown {
  if (assertion.kind === 'file') return assertion;
  const { issuer, client, idToken } = assertion;
  return { issuer, client: client.id, ...(idToken.kind === 'file' && idToken) };
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Returns a file name with the host, for people who look for it, and a digest that tells the logins apart. */
function fileNameOf(server: URL, config: LoginConfig): string {
  const digest = digestOf(JSON.stringify(identityOf(server, config)));
  const host = server.host.replace(/[^a-z0-9.-]/gi, '_').slice(0, MAX_NAME_LENGTH);
  return `${host}-${digest}.json`;
}

/**
 * The stored form of a login. `parseStoredLogin` checks it, because files may come from other versions or may have been
 * edited.
 */
export interface StoredLogin {
  /** The authorization server that issued the rest. No other server may receive it. */
  readonly issuer: string;
  readonly tokenEndpoint: string;
  /** Absent if the server has none, or if an older version stored the login. */
  readonly revocationEndpoint?: string;
  /** The resource that the tokens are for; undefined if the user has it left out. */
  readonly resource: string | undefined;
  readonly client: LoginClient;
  /** The scopes requested so far; the server may have granted fewer. */
  readonly scopes: readonly string[];
  /** Undefined if the client is registered, but has not logged in. */
  readonly tokens: Tokens | undefined;
  /**
   * The login at the identity provider whose assertions are exchanged for the tokens; its token is the user's ID token.
   * Absent for logins without an identity provider.
   */
  readonly identity?: StoredLogin;
}

/**
 * The bridge's client at an authorization server:
 * - `registered`: the bridge has registered it there.
 * - `configured`: the user has configured it; a configured secret is not stored.
 * - `document`: the document at the URL that is its id describes it.
 * - `assertion`: the assertions identify it, so requests do not name it; `id` is the subject of the assertions.
 */
export type LoginClient =
  | RegisteredLoginClient
  | { readonly origin: 'configured' | 'document' | 'assertion'; readonly id: string; readonly method: ClientMethod };

export interface RegisteredLoginClient {
  readonly origin: 'registered';
  readonly id: string;
  readonly method: ClientMethod;
  /** Undefined if the client was registered without a secret. */
  readonly secret: string | undefined;
  /** The only address that the browser may return to; undefined for logins with a code. */
  readonly callback: string | undefined;
  /** Undefined if the registration does not limit the scopes. */
  readonly scopes: RegisteredScopes | undefined;
  /** True if all tokens of this client are bound to a key. [RFC 9449 5.2] */
  readonly areTokensBound: boolean;
}

export const CLIENT_METHODS: readonly ClientMethod[] = [
  'none',
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
];

export interface Tokens {
  /** The token that is sent to the server. With `--oauth-token id` it is the ID token instead of the access token. */
  readonly accessToken: string;
  /** True if an ID token was issued together with this token. */
  readonly hasIdToken: boolean;
  readonly refreshToken: string | undefined;
  /**
   * The time at which to renew the token, in milliseconds since 1970, because other processes read it. Undefined if the
   * server did not say how long the token lasts.
   */
  readonly renewAtMs: number | undefined;
  /** The scopes that the authorization server has granted. Undefined if an older version stored the login. */
  readonly scopes: readonly string[] | undefined;
  /** The key that the tokens are bound to; undefined if they are not bound. */
  readonly key: ProofKey | undefined;
}

/** Returns undefined if the text is not a login that can be used. */
export function parseStoredLogin(text: string): StoredLogin | undefined {
  const fields = parseObject(text);
  const login = parseLogin(fields);
  if (login === undefined) return undefined;
  const identity = parseLogin(asFields(fields.identity));
  return { ...login, ...(identity !== undefined && { identity }) };
}

function parseLogin(fields: Readonly<Record<string, unknown>>): StoredLogin | undefined {
  const { issuer, tokenEndpoint, revocationEndpoint, resource, scopes, tokens, client: written } = fields;
  const client = parseClient(written);
  if (!isText(issuer) || !isText(tokenEndpoint) || client === undefined) return undefined;
  if (resource !== undefined && !isText(resource)) return undefined;
  const known = Array.isArray(scopes) ? scopes.filter(isText) : [];
  const revocation = isText(revocationEndpoint) && URL.canParse(revocationEndpoint) ? { revocationEndpoint } : {};
  return { issuer, tokenEndpoint, ...revocation, resource, client, scopes: known, tokens: parseTokens(tokens) };
}

function parseClient(value: unknown): LoginClient | undefined {
  const { id, origin, secret, method, callback, scopes, areTokensBound } = asFields(value);
  const known = CLIENT_METHODS.find((candidate) => candidate === method);
  if (!isText(id) || known === undefined) return undefined;
  switch (origin) {
    case 'registered':
      return {
        origin,
        id,
        method: known,
        secret: isText(secret) ? secret : undefined,
        callback: isText(callback) ? callback : undefined,
        scopes: parseRegisteredScopes(scopes),
        areTokensBound: areTokensBound === true,
      };
    case 'configured':
    case 'document':
    case 'assertion':
      return { origin, id, method: known };
    default:
      return undefined;
  }
}

function parseRegisteredScopes(value: unknown): RegisteredScopes | undefined {
  const { asked, granted } = asFields(value);
  if (!Array.isArray(asked) || !Array.isArray(granted)) return undefined;
  return { asked: asked.filter(isText), granted: granted.filter(isText) };
}

function parseTokens(value: unknown): Tokens | undefined {
  const { accessToken, hasIdToken, refreshToken, renewAtMs, scopes, key: stored } = asFields(value);
  const key = ProofKey.parse(stored);
  // A token that is bound to a key is useless without it.
  if (!isText(accessToken) || !isBearerToken(accessToken) || (stored !== undefined && key === undefined))
    return undefined;
  return {
    accessToken,
    hasIdToken: hasIdToken === true,
    refreshToken: isText(refreshToken) ? refreshToken : undefined,
    renewAtMs: typeof renewAtMs === 'number' ? renewAtMs : undefined,
    scopes: Array.isArray(scopes) ? scopes.filter(isText) : undefined,
    key,
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return asFields(JSON.parse(text));
  } catch {
    return {};
  }
}

function asFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
