import { createHash } from 'node:crypto';
import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { AssertionSource, ClientMethod, LoginConfig } from '../../config/remote.ts';
import { readSmallFile } from '../../io/bounded-file.ts';
import { makeFolderSync } from '../../io/make-folder.ts';
import { isBearerToken } from '../client/credentials.ts';
import { ProofKey } from './proof-key.ts';
import type { RegisteredScopes } from './scopes.ts';

/** Only the user may read them: the files are as good as passwords. */
const FOLDER_MODE = 0o700;
export const FILE_MODE = 0o600;
const MAX_NAME_LENGTH = 60;

/**
 * One login between runs, in a file of its own. Written aside and renamed, so that whoever reads gets the old one or the
 * new one; of two writers the later one wins. Read and written at once rather than later: it is a few hundred bytes, once
 * in a while.
 */
export class LoginStore {
  /** Undefined: there is no folder for logins, so none is ever there. */
  readonly path: string | undefined;
  readonly #randomId: () => string;

  constructor(server: URL, config: LoginConfig, randomId: () => string) {
    const { stateDirectory } = config;
    this.path = stateDirectory && join(stateDirectory, 'logins', fileNameOf(server, config));
    this.#randomId = randomId;
  }

  /** Undefined: there is none that could be used. */
  load(): StoredLogin | undefined {
    if (this.path === undefined) return undefined;
    try {
      return parseStoredLogin(readSmallFile(this.path));
    } catch {
      return undefined;
    }
  }

  /** Throws what the system says. */
  save(login: StoredLogin): void {
    if (this.path === undefined) throw new Error('there is no folder for logins');
    makeLoginFolder(dirname(this.path));
    const aside = `${this.path}.${this.#randomId()}`;
    try {
      writeFileSync(aside, `${JSON.stringify(login, undefined, 2)}\n`, { mode: FILE_MODE, flag: 'wx' });
      renameSync(aside, this.path);
    } catch (thrown) {
      rmSync(aside, { force: true });
      throw thrown;
    }
  }

  /** Throws what the system says. */
  forget(): void {
    if (this.path !== undefined) rmSync(this.path, { force: true });
  }
}

/** Throws what the system says. */
export function makeLoginFolder(folder: string): void {
  makeFolderSync(folder, FOLDER_MODE);
  // An older folder may have been made with other permissions.
  chmodSync(folder, FOLDER_MODE);
}

/**
 * Tells servers, clients of one server, and logins that are asked for in different ways apart. A user's login is one and the
 * same with a browser and with a code.
 */
export function identityOf(server: URL, config: LoginConfig): readonly (string | undefined)[] {
  const { grant, client, clientMetadataUrl, issuer } = config;
  const asWhom = grant === 'client-credentials' || grant === 'jwt-bearer' ? grant : 'authorization-code';
  return [server.href, asWhom, client?.id, clientMetadataUrl, issuer, ...wishesOf(config)];
}

/** A digest, as values of parameters are shown nowhere. Empty for usual logins, which keep the name that they have. */
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

/** The same for a user who logs in with a browser and with a code. */
function originOf(assertion: AssertionSource): unknown {
  if (assertion.kind === 'file') return assertion;
  const { issuer, client, idToken } = assertion;
  return { issuer, client: client.id, ...(idToken.kind === 'file' && idToken) };
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** The host for people who look for it; the rest tells the others apart. */
function fileNameOf(server: URL, config: LoginConfig): string {
  const digest = digestOf(JSON.stringify(identityOf(server, config)));
  const host = server.host.replace(/[^a-z0-9.-]/gi, '_').slice(0, MAX_NAME_LENGTH);
  return `${host}-${digest}.json`;
}

/** What is stored of a login. Files of other versions, and edited ones, are checked when they are read. */
export interface StoredLogin {
  /** Which authorization server all this comes from and may be shown to. */
  readonly issuer: string;
  readonly tokenEndpoint: string;
  /** Absent: there is none, or a version stored the login that did not ask. */
  readonly revocationEndpoint?: string;
  /** The resource that the tokens are for. Undefined: the user had it left out. */
  readonly resource: string | undefined;
  readonly client: LoginClient;
  /** The scopes asked for so far; a server may have granted fewer. */
  readonly scopes: readonly string[];
  /** Undefined: registered, but not logged in. */
  readonly tokens: Tokens | undefined;
  /**
   * The login at the identity provider whose assertions are exchanged for the tokens. Its token is the ID token of the user.
   * Absent: there is none.
   */
  readonly identity?: StoredLogin;
}

/**
 * The client that the bridge is to an authorization server:
 * - `registered`: by us, there and then.
 * - `configured`: by the user; a secret that the user configures is not kept.
 * - `document`: it is described by the document at the URL that is its id.
 * - `assertion`: it is the one that its assertions are about, so requests do not name it; `id` is their subject.
 */
export type LoginClient =
  | RegisteredLoginClient
  | { readonly origin: 'configured' | 'document' | 'assertion'; readonly id: string; readonly method: ClientMethod };

export interface RegisteredLoginClient {
  readonly origin: 'registered';
  readonly id: string;
  readonly method: ClientMethod;
  /** Undefined: the registration is one without a secret. */
  readonly secret: string | undefined;
  /** Where the browser comes back to, and nowhere else; undefined: to no place, as it is for logins with a code. */
  readonly callback: string | undefined;
  /** Undefined: the registration limits none. */
  readonly scopes: RegisteredScopes | undefined;
  /** True: all tokens of this client are bound to a key. [RFC 9449 5.2] */
  readonly areTokensBound: boolean;
}

export const CLIENT_METHODS: readonly ClientMethod[] = [
  'none',
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
];

export interface Tokens {
  /** The token that the server is shown. With `--oauth-token id` this is the ID token in place of the access token. */
  readonly accessToken: string;
  /** True: an ID token came with it. */
  readonly hasIdToken: boolean;
  readonly refreshToken: string | undefined;
  /**
   * When it is time to get another one, in milliseconds since 1970, as other processes read this. Undefined: the server
   * did not say how long the token lasts.
   */
  readonly renewAtMs: number | undefined;
  /** The scopes that the authorization server has granted. Undefined: the login was stored by a version that did not ask. */
  readonly scopes: readonly string[] | undefined;
  /** The key that they are bound to; undefined: to none. */
  readonly key: ProofKey | undefined;
}

/** Undefined: nothing that can be used. */
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
  // Without its key a token that is bound to one is of no use.
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
