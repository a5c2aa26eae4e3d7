import type { AuthorizationServer } from 'oauth4webapi';
import { showUrl } from '../shown-url.ts';
import { chooseMethod } from './client-authentication.ts';
import { describeOAuthError, loginError } from './login-error.ts';
import type { LoginFetch } from './login-fetch.ts';
import { CLIENT_METHODS, type LoginClient } from './stored-login.ts';

export interface Registration {
  readonly authorizationServer: AuthorizationServer;
  /** Where the browser comes back to. */
  readonly callback: string;
  readonly scopes: readonly string[];
  readonly fetch: LoginFetch;
}

const WAY_OUT = 'Register a client there by hand and give its id with --oauth-client-id.';

/** [RFC 7591; spec 2025-11-25 basic/authorization#dynamic-client-registration] Rejects with ERR_UPSTREAM_AUTH. */
export async function registerClient(registration: Registration): Promise<LoginClient> {
  const { authorizationServer: as, callback, scopes, fetch } = registration;
  const offered = as.token_endpoint_auth_methods_supported;
  const isPublic = offered === undefined || offered.includes('none');
  const metadata = {
    client_name: 'mcp-portage',
    redirect_uris: [callback],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    // A secret that lies beside the token protects nothing; it is taken only where there is no other way.
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
  const body: unknown = await response.json().catch(() => undefined);
  const fields: Readonly<Record<string, unknown>> = typeof body === 'object' && body !== null ? { ...body } : {};
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = fields;
  if (!response.ok || typeof id !== 'string' || id === '') throw refusal(endpoint, response.status, fields);
  const kept = typeof secret === 'string' && secret !== '' ? secret : undefined;
  return {
    id,
    origin: 'registered',
    secret: kept,
    method: CLIENT_METHODS.find((known) => known === method) ?? chooseMethod(as, kept),
    callback,
  };
}

function refusal(endpoint: URL, status: number, { error, error_description: description }: Fields) {
  const said =
    typeof error === 'string'
      ? describeOAuthError(error, typeof description === 'string' ? description : undefined)
      : `it answered ${status} without a client_id`;
  return loginError(`${showUrl(endpoint)} did not register mcp-portage as a client (${said})`, WAY_OUT);
}

type Fields = Readonly<Record<string, unknown>>;
