/** Parses the options that select the OAuth grant and the identity to log in with. */
import { resolve } from 'node:path';
import type {
  AssertionSource,
  IdentityProvider,
  LoginConfig,
  RegisteredClient,
  UserGrant,
} from '../../../config/remote.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { BridgeVerb } from '../../options/option-spec.ts';
import { parseIssuer } from '../listener/auth-value.ts';
import * as value from '../value.ts';
import { readSecretFile } from './login-client.ts';
import { excluded, type LoginRequest } from './login-request.ts';

const GRANTS = ['authorization-code', 'device-code', 'client-credentials', 'jwt-bearer'] as const;

interface ParsedGrant extends Pick<LoginConfig, 'grant' | 'assertion'> {
  readonly warnings: readonly string[];
}

/** @param usual the grant for a user's login if the options do not choose one */
export function parseGrant(request: LoginRequest, usual: UserGrant): ParsedGrant {
  const { given, cwd } = request;
  const grant = given.optional('oauth-grant', value.parseChoice(GRANTS));
  const written = given.optional('oauth-assertion-file', value.parseText);
  const file = written === undefined ? undefined : resolve(cwd, written);
  if (given.isGiven('oauth-idp-issuer')) {
    const { provider, warnings } = parseIdentityProvider(request, grant, usual, file);
    return { grant: 'jwt-bearer', assertion: provider, warnings };
  }
  const orphan = (['oauth-idp-client-id', 'oauth-idp-secret-file'] as const).find((name) => given.isGiven(name));
  if (orphan !== undefined) throw excluded(`${given.sourceOf(orphan)} needs --oauth-idp-issuer.`);
  if (grant === 'jwt-bearer') {
    if (file !== undefined) return { grant, assertion: { kind: 'file', file }, warnings: [] };
    throw excluded(
      `${given.sourceOf('oauth-grant')} ${grant} needs --oauth-assertion-file, the file with the JWT of this workload.`,
    );
  }
  if (file !== undefined) {
    throw excluded(
      `${given.sourceOf('oauth-assertion-file')} needs --oauth-grant jwt-bearer (a workload), or --oauth-idp-issuer (a user).`,
    );
  }
  return { grant: grant ?? usual, assertion: undefined, warnings: [] };
}

/** @param file the file with the user's ID token; undefined if the user logs in at the identity provider */
function parseIdentityProvider(
  request: LoginRequest,
  grant: (typeof GRANTS)[number] | undefined,
  usual: UserGrant,
  file: string | undefined,
): { readonly provider: IdentityProvider; readonly warnings: readonly string[] } {
  const { given } = request;
  const source = given.sourceOf('oauth-idp-issuer');
  if (grant === 'client-credentials' || grant === 'jwt-bearer') {
    throw excluded(
      `${given.sourceOf('oauth-grant')} ${grant} and ${source} exclude each other: the one is for a login without a user, the other for one of a user; leave one of them out.`,
    );
  }
  if (grant !== undefined && file !== undefined) {
    throw excluded(
      `${given.sourceOf('oauth-grant')} ${grant} and ${given.sourceOf('oauth-assertion-file')} exclude each other: with an ID token from a file nobody logs in at ${source}; leave one of them out.`,
    );
  }
  const issuer = given.required('oauth-idp-issuer', parseIssuer);
  const id = given.optional('oauth-idp-client-id', value.parseText);
  if (id === undefined) throw excluded(`${source} needs --oauth-idp-client-id, the client that is registered there.`);
  const { secret, warnings } = readSecretFile(request, 'oauth-idp-secret-file');
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
  const isOpen = verb === 'serve' && given.required('allow-anonymous', value.parseFlag);
  if (!isOpen || grant === 'client-credentials' || assertion?.kind === 'file') return;
  throw excluded(
    `${given.sourceOf('login')} would let everybody act in the name of the user who logs in, as ${given.sourceOf('allow-anonymous')} lets everybody in; name the callers with --auth-token or --auth-issuer instead.`,
  );
}
