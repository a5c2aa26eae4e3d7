import type { AuthorizationServer } from 'oauth4webapi';
import type { LoginConfig, RegisteredClient } from '../../config.ts';
import { chooseMethod } from './client-authentication.ts';
import { loginError } from './login-error.ts';
import type { LoginFetch } from './login-fetch.ts';
import { registerClient } from './register-client.ts';
import type { ClientMethod, LoginClient, StoredLogin } from './stored-login.ts';

export interface IdentityRequest {
  readonly config: LoginConfig;
  readonly authorizationServer: AuthorizationServer;
  readonly previous: StoredLogin | undefined;
  /** Where the browser comes back to. */
  readonly callback: string;
  readonly scopes: readonly string[];
  readonly fetch: LoginFetch;
}

/**
 * Who we are to this authorization server, in the order of the specification. Rejects with ERR_UPSTREAM_AUTH.
 * [spec 2026-07-28 basic/authorization/client-registration]
 */
export async function identifyClient(request: IdentityRequest): Promise<LoginClient> {
  const { config, authorizationServer: as, callback } = request;
  if (config.client !== undefined) return useConfigured(config.client, as, request.previous);
  if (as.client_id_metadata_document_supported === true && config.clientMetadataUrl !== undefined) {
    const id = config.clientMetadataUrl;
    return { id, origin: 'document', secret: undefined, method: 'none', callback: undefined };
  }
  const registered = findRegistration(request.previous, as.issuer);
  if (registered?.callback === callback) return registered;
  if (as.registration_endpoint !== undefined) return await registerClient({ ...request, callback });
  const ways = as.client_id_metadata_document_supported === true ? ' or --oauth-client-document' : '';
  throw loginError(
    `${as.issuer} does not register clients that it does not know`,
    `Register one there by hand and give its id with --oauth-client-id${ways}.`,
  );
}

/** What an authorization server knows us by is for itself alone. [spec 2026-07-28 …#authorization-server-binding] */
export function findRegistration(previous: StoredLogin | undefined, issuer: string): LoginClient | undefined {
  return previous?.issuer === issuer && previous.client.origin === 'registered' ? previous.client : undefined;
}

/** [spec 2026-07-28 …#authorization-server-binding] A secret is not shown to whomever the metadata names today. */
export function useConfigured(
  { id, proof }: RegisteredClient,
  as: AuthorizationServer,
  previous: StoredLogin | undefined,
): LoginClient {
  if (previous !== undefined && previous.issuer !== as.issuer) {
    const problem = `The server now names ${as.issuer}, but the client ${id} is known to ${previous.issuer}`;
    throw loginError(problem, 'If that is right, log in once with --login anew.');
  }
  return { id, origin: 'configured', secret: undefined, method: methodOf(proof, as), callback: undefined };
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
