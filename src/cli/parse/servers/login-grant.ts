/** Parses the options that select the OAuth grant and the identity to log in with. */
import type {
  AssertionSource,
  IdentityProvider,
  LoginConfig,
  RegisteredClient,
  UserGrant,
} from '../../../config/remote.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { BridgeVerb, OptionValue } from '../../options/option-table.ts';
import { readSecretFile } from './login-client.ts';
import { excluded, type LoginRequest } from './login-request.ts';

interface ParsedGrant extends Pick<LoginConfig, 'grant' | 'assertion'> {
  readonly warnings: readonly string[];
}

/** @param usual the grant for a user's login if the options do not choose one */
export function parseGrant(request: LoginRequest, usual: UserGrant): ParsedGrant {
  const { given } = request;
  const grant = given.get('oauthGrant');
  const file = given.get('oauthAssertionFile');
  const issuer = given.get('oauthIdpIssuer');
  if (issuer !== undefined) {
    const { provider, warnings } = parseIdentityProvider(request, issuer, { grant, usual, file });
    return { grant: 'jwt-bearer', assertion: provider, warnings };
  }
  const orphan = (['oauthIdpClientId', 'oauthIdpSecretFile'] as const).find((name) => given.isGiven(name));
  if (orphan !== undefined) throw excluded(`${given.placeOf(orphan)} needs ${given.nameOf('oauthIdpIssuer')}.`);
  if (grant === 'jwt-bearer') {
    if (file !== undefined) return { grant, assertion: { kind: 'file', file }, warnings: [] };
    throw excluded(
      `${given.placeOf('oauthGrant')} ${grant} needs ${given.nameOf('oauthAssertionFile')}, the file with the JWT of this workload.`,
    );
  }
  if (file !== undefined) {
    throw excluded(
      `${given.placeOf('oauthAssertionFile')} needs ${given.nameOf('oauthGrant')} jwt-bearer (a workload), or ${given.nameOf('oauthIdpIssuer')} (a user).`,
    );
  }
  return { grant: grant ?? usual, assertion: undefined, warnings: [] };
}

interface UserLogin {
  readonly grant: OptionValue<'oauthGrant'>;
  readonly usual: UserGrant;
  /** The file with the user's ID token; undefined if the user logs in at the identity provider. */
  readonly file: string | undefined;
}

function parseIdentityProvider(
  request: LoginRequest,
  issuer: string,
  { grant, usual, file }: UserLogin,
): { readonly provider: IdentityProvider; readonly warnings: readonly string[] } {
  const { given } = request;
  const source = given.placeOf('oauthIdpIssuer');
  if (grant === 'client-credentials' || grant === 'jwt-bearer') {
    throw excluded(
      `${given.placeOf('oauthGrant')} ${grant} and ${source} exclude each other: the one is for a login without a user, the other for one of a user; leave one of them out.`,
    );
  }
  if (grant !== undefined && file !== undefined) {
    throw excluded(
      `${given.placeOf('oauthGrant')} ${grant} and ${given.placeOf('oauthAssertionFile')} exclude each other: with an ID token from a file nobody logs in at ${source}; leave one of them out.`,
    );
  }
  const id = given.get('oauthIdpClientId');
  if (id === undefined)
    throw excluded(`${source} needs ${given.nameOf('oauthIdpClientId')}, the client that is registered there.`);
  const { secret, warnings } = readSecretFile(request, 'oauthIdpSecretFile');
  const proof: RegisteredClient['proof'] = secret === undefined ? { kind: 'none' } : { kind: 'secret', secret };
  const idToken: IdentityProvider['idToken'] =
    file === undefined ? { kind: 'login', grant: grant ?? usual } : { kind: 'file', file };
  return { provider: { kind: 'identity-provider', issuer, client: { id, proof }, idToken }, warnings };
}

/** [decision 0013] With --allow-anonymous, every caller would act in the name of the user who has logged in. */
export function refuseAnonymousCallers(
  given: GivenOptions,
  verb: BridgeVerb,
  grant: LoginConfig['grant'],
  assertion: AssertionSource | undefined,
): void {
  const isOpen = verb === 'serve' && given.get('allowAnonymous');
  if (!isOpen || grant === 'client-credentials' || assertion?.kind === 'file') return;
  throw excluded(
    `${given.placeOf('login')} would let everybody act in the name of the user who logs in, as ${given.placeOf('allowAnonymous')} lets everybody in; name the callers with ${given.nameOf('authToken')} or ${given.nameOf('authIssuer')} instead.`,
  );
}
