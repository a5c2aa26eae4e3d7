/** Parses the options for the bridge's OAuth client at an authorization server, and for its authentication there. */
import type { ClientMethod, LoginConfig, RegisteredClient } from '../../../config/remote.ts';
import { BridgeError } from '../../../errors.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { CLIENT_SECRET_VARIABLE } from '../../options/option-table.ts';
import { tryToRead, warnOfOpenFile } from './headers.ts';
import { excluded, type LoginRequest } from './login-request.ts';

export function parseClient(request: LoginRequest): {
  client: RegisteredClient | undefined;
  warnings: readonly string[];
} {
  const { given } = request;
  const id = given.get('oauthClientId');
  const { secret, source, warnings } = findSecret(request);
  const key = given.get('oauthClientKey');
  if (secret !== undefined && key !== undefined) {
    throw excluded(`${source} and ${given.placeOf('oauthClientKey')} prove the same; leave one of them out.`);
  }
  if (id === undefined) {
    const orphan = key === undefined ? source : given.placeOf('oauthClientKey');
    if (orphan !== undefined)
      throw excluded(`${orphan} needs ${given.nameOf('oauthClientId')}, the client that it authenticates.`);
    return { client: undefined, warnings };
  }
  const proof: RegisteredClient['proof'] =
    secret !== undefined
      ? { kind: 'secret', secret }
      : key !== undefined
        ? { kind: 'key', file: key }
        : { kind: 'none' };
  return { client: { id, proof }, warnings };
}

interface FoundSecret {
  readonly secret: string | undefined;
  /** The name of the variable or option with the secret, for messages. */
  readonly source: string | undefined;
  readonly warnings: readonly string[];
}

function findSecret(request: LoginRequest): FoundSecret {
  const fromEnvironment = request.env[CLIENT_SECRET_VARIABLE]?.trim() || undefined;
  const inFile = readSecretFile(request, 'oauthSecretFile');
  if (fromEnvironment === undefined) return inFile;
  if (inFile.source === undefined) return { secret: fromEnvironment, source: CLIENT_SECRET_VARIABLE, warnings: [] };
  throw excluded(`${CLIENT_SECRET_VARIABLE} and ${inFile.source} are both set; leave one of them out.`);
}

export function readSecretFile(
  { given, readFile }: Pick<LoginRequest, 'given' | 'readFile'>,
  option: 'oauthSecretFile' | 'oauthIdpSecretFile',
): FoundSecret {
  const file = given.get(option);
  if (file === undefined) return { secret: undefined, source: undefined, warnings: [] };
  const source = given.placeWith(option, file);
  const { text, isOpenToAll } = tryToRead(source, () => readFile(file));
  const secret = text.trim();
  if (secret === '') throw new BridgeError('ERR_CONFIG_OPTION', `${source}: expected a secret; the file is empty.`);
  return { secret, source, warnings: isOpenToAll ? [warnOfOpenFile(source)] : [] };
}

export function refuseHalfClient(
  given: GivenOptions,
  grant: LoginConfig['grant'],
  client: RegisteredClient | undefined,
): void {
  if (grant !== 'client-credentials' || (client !== undefined && client.proof.kind !== 'none')) return;
  throw excluded(
    `${given.placeOf('oauthGrant')} client-credentials needs ${given.nameOf('oauthClientId')}, and a secret (${CLIENT_SECRET_VARIABLE}, ${given.nameOf('oauthSecretFile')}) or ${given.nameOf('oauthClientKey')}.`,
  );
}

/**
 * [ext-auth enterprise-managed-authorization#client-registration] The identity provider names the client to the server,
 * so the client has to be registered beforehand or have a metadata document.
 */
export function refuseUnknownClient(given: GivenOptions, client: RegisteredClient | undefined): void {
  if (client !== undefined || given.isGiven('oauthClientDocument')) return;
  throw excluded(
    `${given.placeOf('oauthIdpIssuer')} needs ${given.nameOf('oauthClientId')}, the client that the authorization server of the MCP server knows.`,
  );
}

/** The proof that each authentication method needs. */
const PROOF_OF_METHOD: Readonly<Record<ClientMethod, RegisteredClient['proof']['kind']>> = {
  none: 'none',
  client_secret_basic: 'secret',
  client_secret_post: 'secret',
  private_key_jwt: 'key',
};

function wayToProve(kind: RegisteredClient['proof']['kind'], given: GivenOptions): string {
  switch (kind) {
    case 'none':
      return 'no secret and no key; leave one of them out';
    case 'secret':
      return `a secret (${CLIENT_SECRET_VARIABLE}, ${given.nameOf('oauthSecretFile')}), and no key`;
    case 'key':
      return `${given.nameOf('oauthClientId')} and ${given.nameOf('oauthClientKey')}`;
  }
}

/**
 * A client that registers itself may receive a secret and has no key. A client with a metadata document or an assertion
 * has neither.
 */
export function refuseUnusableMethod(
  given: GivenOptions,
  method: ClientMethod,
  client: RegisteredClient | undefined,
  grant: LoginConfig['grant'],
): void {
  const needed = PROOF_OF_METHOD[method];
  const mayGetSecret = grant !== 'jwt-bearer' && !given.isGiven('oauthClientDocument');
  const isUsable =
    client !== undefined ? client.proof.kind === needed : needed === 'none' || (needed === 'secret' && mayGetSecret);
  if (isUsable) return;
  const other = client === undefined && needed === 'secret' ? `, of ${given.nameOf('oauthClientId')}` : '';
  throw excluded(`${given.placeOf('oauthAuthMethod')} ${method} needs ${wayToProve(needed, given)}${other}.`);
}
