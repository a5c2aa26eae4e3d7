import { createPrivateKey, type KeyObject } from 'node:crypto';
import { importPKCS8 } from 'jose';
import { type AuthorizationServer, type ClientAuth, ClientSecretPost, None, PrivateKeyJwt } from 'oauth4webapi';
import type { ClientMethod, LoginConfig, RegisteredClient } from '../../config/remote.ts';
import { readSmallFile } from '../../io/bounded-file.ts';
import { showUrl } from '../shown-url.ts';
import { isSameIssuer } from './discover.ts';
import { describeOAuthError, loginError } from './login-error.ts';
import { busyError, isBusy, type LoginFetch } from './login-fetch.ts';
import { CLIENT_METHODS, type LoginClient, type RegisteredLoginClient, type StoredLogin } from './login-store.ts';
import type { RequestParameters } from './request-parameters.ts';
import { coversScopes, readRegisteredScopes } from './scopes.ts';

export interface IdentityRequest {
  readonly config: LoginConfig;
  readonly authorizationServer: AuthorizationServer;
  readonly previous: StoredLogin | undefined;
  /** The address that the browser returns to; undefined for a login with a code. */
  readonly callback: string | undefined;
  readonly scopes: readonly string[];
  /** `binding` creates a key if the authorization server registers this client for bound tokens only. */
  readonly parameters: Pick<RequestParameters, 'binding'>;
  readonly fetch: LoginFetch;
}

/**
 * Finds or registers the bridge's client at this authorization server, in the order of the specification. Rejects with
 * ERR_UPSTREAM_AUTH. [spec 2026-07-28 basic/authorization/client-registration]
 */
export async function identifyClient(request: IdentityRequest): Promise<LoginClient> {
  const client = await findClient(request);
  if (client.origin === 'registered' && client.areTokensBound) await request.parameters.binding?.begin();
  return client;
}

async function findClient(request: IdentityRequest): Promise<LoginClient> {
  const { authorizationServer: as, callback } = request;
  const own = findOwnClient(request);
  if (own !== undefined) return own;
  const registered = findRegistration(request.previous, as.issuer);
  const isFit = registered?.callback === callback && coversScopes(registered?.scopes, request.scopes);
  if (registered !== undefined && isFit) return registered;
  if (as.registration_endpoint !== undefined) return await registerClient(request);
  const alternative = as.client_id_metadata_document_supported === true ? ' or --oauth-client-document' : '';
  throw loginError(
    `${as.issuer} does not register clients that it does not know`,
    `Register one there by hand and give its id with --oauth-client-id${alternative}.`,
  );
}

/**
 * Returns the client that the user has configured, or that a metadata document describes if this authorization server
 * supports such documents. Returns undefined if there is neither. Throws ERR_UPSTREAM_AUTH.
 */
export function findOwnClient({
  config,
  authorizationServer: as,
  previous,
}: Pick<IdentityRequest, 'config' | 'authorizationServer' | 'previous'>): LoginClient | undefined {
  if (config.client !== undefined) return useConfigured(config.client, as, previous);
  if (as.client_id_metadata_document_supported !== true || config.clientMetadataUrl === undefined) return undefined;
  return { origin: 'document', id: config.clientMetadataUrl, method: 'none' };
}

/**
 * Returns the client that was registered for an earlier login. The registration is sent only to the authorization
 * server that made it. [spec 2026-07-28 …#authorization-server-binding]
 */
export function findRegistration(previous: StoredLogin | undefined, issuer: string): RegisteredLoginClient | undefined {
  if (previous === undefined || !isSameIssuer(previous.issuer, issuer)) return undefined;
  return previous.client.origin === 'registered' ? previous.client : undefined;
}

/**
 * Returns the client that the user has configured. [spec 2026-07-28 …#authorization-server-binding] A configured secret
 * is not sent to another issuer than that of the previous login; the function throws ERR_UPSTREAM_AUTH instead.
 */
export function useConfigured(
  { id, proof }: RegisteredClient,
  as: AuthorizationServer,
  previous: StoredLogin | undefined,
): LoginClient {
  if (previous !== undefined && !isSameIssuer(previous.issuer, as.issuer)) {
    const problem = `The server now names ${as.issuer}, but the client ${id} is known to ${previous.issuer}`;
    throw loginError(problem, 'If that is right, log in once with --login anew.');
  }
  return { origin: 'configured', id, method: methodOf(proof, as) };
}

function methodOf(proof: RegisteredClient['proof'], as: AuthorizationServer): ClientMethod {
  switch (proof.kind) {
    case 'none':
      return 'none';
    case 'key':
      return 'private_key_jwt';
    case 'secret':
      return chooseMethod(as, proof.secret);
  }
}

/** [RFC 8628 3.4] */
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const BY_HAND = 'Register a client there by hand and give its id with --oauth-client-id.';

/** [RFC 7591; spec 2025-11-25 basic/authorization#dynamic-client-registration] Rejects with ERR_UPSTREAM_AUTH. */
async function registerClient(request: IdentityRequest): Promise<RegisteredLoginClient> {
  const { authorizationServer: as, callback, scopes, fetch } = request;
  const offered = as.token_endpoint_auth_methods_supported;
  const isPublic = offered === undefined || offered.includes('none');
  const metadata = {
    client_name: 'mcp-portage',
    ...(callback === undefined
      ? { grant_types: [DEVICE_GRANT, 'refresh_token'], response_types: [] }
      : {
          redirect_uris: [callback],
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
        }),
    // A secret stored beside the token protects nothing, so a secret is requested only if the server offers no other
    // method.
    token_endpoint_auth_method: isPublic ? 'none' : chooseMethod(as, 'some'),
    // [spec 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints]
    application_type: 'native',
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  };
  const endpoint = new URL(as.registration_endpoint ?? '');
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  });
  if (isBusy(response)) {
    throw busyError(response, `${showUrl(endpoint)} registers no clients at the moment (status ${response.status})`);
  }
  const body: unknown = await response.json().catch(() => undefined);
  const fields: Readonly<Record<string, unknown>> = typeof body === 'object' && body !== null ? { ...body } : {};
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = fields;
  if (!response.ok || typeof id !== 'string' || id === '') throw refusal(request, response.status, fields);
  const kept = typeof secret === 'string' && secret !== '' ? secret : undefined;
  const { authMethod: wanted } = request.config;
  if (wanted !== undefined && wanted !== 'none' && kept === undefined) {
    const problem = `${showUrl(endpoint)} registered mcp-portage without a secret, which --oauth-auth-method ${wanted} needs`;
    throw loginError(problem, BY_HAND);
  }
  return {
    origin: 'registered',
    id,
    secret: kept,
    method: wanted ?? CLIENT_METHODS.find((known) => known === method) ?? chooseMethod(as, kept),
    callback,
    scopes: readRegisteredScopes(scopes, fields),
    areTokensBound: fields.dpop_bound_access_tokens === true,
  };
}

function refusal(
  { authorizationServer: as, callback }: IdentityRequest,
  status: number,
  { error, error_description: description }: Fields,
) {
  const said =
    typeof error === 'string'
      ? describeOAuthError(error, typeof description === 'string' ? description : undefined)
      : `it answered ${status} without a client_id`;
  const endpoint = showUrl(new URL(as.registration_endpoint ?? ''));
  const problem = `${endpoint} did not register mcp-portage as a client (${said})`;
  const isAboutCallback = error === 'invalid_redirect_uri' && callback !== undefined;
  return loginError(problem, isAboutCallback ? `${adviseCallback(callback)} ${BY_HAND}` : BY_HAND);
}

/**
 * Advises another callback address, because some authorization servers accept only one name of this machine, or a
 * certain port.
 */
export function adviseCallback(callback: string): string {
  const { hostname, port, pathname } = new URL(callback);
  const other = hostname === 'localhost' ? '127.0.0.1' : 'localhost';
  return `If ${callback} was refused, give another address with --oauth-callback, such as http://${other}:${port}${pathname}.`;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Chooses how a client authenticates, with or without a secret. [RFC 8414 2] If the metadata lists no methods, the
 * secret is sent in the `Authorization` header.
 */
export function chooseMethod(as: AuthorizationServer, secret: string | undefined): ClientMethod {
  const offered = as.token_endpoint_auth_methods_supported;
  if (secret === undefined) return 'none';
  if (offered === undefined || offered.includes('client_secret_basic')) return 'client_secret_basic';
  if (offered.includes('client_secret_post')) return 'client_secret_post';
  return 'none';
}

/** @param proof the credential of a client that the user has configured */
export async function authenticate(
  client: LoginClient,
  proof: RegisteredClient['proof'] | undefined,
): Promise<ClientAuth> {
  // [RFC 7521 4.1] The assertion identifies the client.
  if (client.origin === 'assertion') return () => {};
  const secret = proof?.kind === 'secret' ? proof.secret : client.origin === 'registered' ? client.secret : undefined;
  switch (client.method) {
    case 'private_key_jwt':
      if (proof?.kind !== 'key') break;
      return PrivateKeyJwt(await readKey(proof.file));
    case 'client_secret_basic':
      if (secret === undefined) break;
      return basic(secret);
    case 'client_secret_post':
      if (secret === undefined) break;
      return ClientSecretPost(secret);
    default:
      break;
  }
  return None();
}

/**
 * [RFC 6749 2.3.1] Id and secret are form-encoded. Characters that need no encoding are left as they are, because many
 * servers compare without decoding.
 */
function basic(secret: string): ClientAuth {
  return (_, { client_id: id }, __, headers) => {
    const words = [id, secret].map((word) => encodeURIComponent(word).replaceAll('%20', '+'));
    headers.set('authorization', `Basic ${Buffer.from(words.join(':')).toString('base64')}`);
  };
}

async function readKey(file: string) {
  try {
    const key = createPrivateKey(readSmallFile(file));
    return await importPKCS8(key.export({ type: 'pkcs8', format: 'pem' }).toString(), algorithmOf(key));
  } catch {
    throw loginError(`The private key ${file} cannot be used`, 'Expected a PEM file with a key of RSA, EC or Ed25519.');
  }
}

const CURVES: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' };

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  if (asymmetricKeyType === 'rsa') return 'RS256';
  if (asymmetricKeyType === 'ed25519') return 'Ed25519';
  return CURVES[asymmetricKeyDetails?.namedCurve ?? ''] ?? 'none';
}
