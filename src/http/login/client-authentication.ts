import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { importPKCS8 } from 'jose';
import { type AuthorizationServer, type ClientAuth, ClientSecretPost, None, PrivateKeyJwt } from 'oauth4webapi';
import type { RegisteredClient } from '../../config.ts';
import { loginError } from './login-error.ts';
import type { ClientMethod, LoginClient } from './login-store.ts';

/**
 * How a client with a secret, or without, shows who it is. [RFC 8414 2] Where nothing is said, a secret goes into the
 * header.
 */
export function chooseMethod(as: AuthorizationServer, secret: string | undefined): ClientMethod {
  const offered = as.token_endpoint_auth_methods_supported;
  if (secret === undefined) return 'none';
  if (offered === undefined || offered.includes('client_secret_basic')) return 'client_secret_basic';
  if (offered.includes('client_secret_post')) return 'client_secret_post';
  return 'none';
}

/** @param proof of a client that the user has configured */
export async function authenticate(
  client: LoginClient,
  proof: RegisteredClient['proof'] | undefined,
): Promise<ClientAuth> {
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
 * [RFC 6749 2.3.1] Both parts are form-encoded. Characters that need no encoding are left as they are, as many servers
 * compare without decoding.
 */
function basic(secret: string): ClientAuth {
  return (_, { client_id: id }, __, headers) => {
    const words = [id, secret].map((word) => encodeURIComponent(word).replaceAll('%20', '+'));
    headers.set('authorization', `Basic ${Buffer.from(words.join(':')).toString('base64')}`);
  };
}

async function readKey(file: string) {
  try {
    const key = createPrivateKey(await readFile(file, 'utf8'));
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
