/** Parses the options for exchanging callers' tokens for tokens of a remote server. */
import type { AccessConfig } from '../../../config/access.ts';
import type { ClientMethod, ExchangeConfig, RemoteConfig } from '../../../config/remote.ts';
import { BridgeError } from '../../../errors.ts';
import { CLIENT_SECRET_VARIABLE, OPTIONS, type OptionName } from '../../options/option-table.ts';
import { parseExtraParameters } from './login.ts';
import { parseClient, refuseUnusableMethod } from './login-client.ts';
import type { LoginRequest } from './login-request.ts';

export interface ExchangeRequest extends Omit<LoginRequest, 'remote'> {
  readonly access: Pick<AccessConfig, 'auth'>;
  /** Other credentials and headers for the server, which may conflict with an exchanged token. */
  readonly remote: Pick<RemoteConfig, 'headers' | 'bearerTokenFile' | 'forwardHeaders'>;
}

export interface ParsedExchange {
  readonly exchange: ExchangeConfig;
  readonly warnings: readonly string[];
}

/** The login options that also apply to an exchange. */
const OF_EXCHANGES: readonly OptionName[] = [
  ...(['oauthClientId', 'oauthSecretFile', 'oauthClientKey', 'oauthAuthMethod'] as const),
  ...(['oauthTokenEndpoint', 'oauthScope', 'oauthResource', 'oauthParam'] as const),
];

/** Returns undefined if no tokens are exchanged. Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function parseExchange(request: ExchangeRequest): ParsedExchange | undefined {
  const { given, access } = request;
  if (!given.get('exchangeToken')) return undefined;
  const source = given.placeOf('exchangeToken');
  refuseOthers(request, source);
  const issuer = access.auth?.oauth?.issuer;
  if (issuer === undefined) {
    throw excluded(
      `${source} needs ${given.nameOf('authIssuer')}: the token with which a caller is let in is exchanged there for one of the server, so every caller has to show one.`,
    );
  }
  const { client, warnings } = parseClient(request);
  if (client === undefined || client.proof.kind === 'none') {
    throw excluded(
      `${source} needs ${given.nameOf('oauthClientId')}, the client that may exchange tokens at ${issuer}, and its secret (${CLIENT_SECRET_VARIABLE}, ${given.nameOf('oauthSecretFile')}) or ${given.nameOf('oauthClientKey')}.`,
    );
  }
  const authMethod: ClientMethod | undefined = given.get('oauthAuthMethod');
  if (authMethod !== undefined) refuseUnusableMethod(given, authMethod, client, 'client-credentials');
  const exchange: ExchangeConfig = {
    issuer,
    client,
    tokenEndpoint: given.get('oauthTokenEndpoint'),
    authMethod,
    scopes: [...new Set(given.get('oauthScope').flat())],
    resource: given.get('oauthResource') ?? { kind: 'server' },
    extraParameters: parseExtraParameters(given, undefined),
  };
  return { exchange, warnings };
}

/**
 * Refuses options that admit callers without a token, that send the server another credential, or that concern a user's
 * own login.
 */
function refuseOthers({ given, remote }: ExchangeRequest, source: string): void {
  if (given.get('allowAnonymous')) {
    throw excluded(
      `${source} exchanges the token of each caller, and ${given.placeOf('allowAnonymous')} lets callers in that have none; leave one of them out.`,
    );
  }
  if (given.isGiven('dial')) {
    throw excluded(
      `${source} exchanges the token of each caller, and those who come through a hub (${given.placeOf('dial')}) have none; leave one of them out.`,
    );
  }
  const isShown = remote.bearerTokenFile !== undefined || remote.headers.has('authorization');
  const isForwarded = remote.forwardHeaders.some(({ sentAs }) => sentAs === 'authorization');
  const when = given.get('login');
  const other =
    when !== undefined && when !== 'never'
      ? `${given.placeOf('login')} ${when}`
      : isForwarded
        ? `a header that becomes Authorization (${given.placeOf('forwardHeader')})`
        : isShown
          ? 'a token of yours'
          : undefined;
  if (other !== undefined) {
    throw excluded(
      `${source} and ${other} exclude each other: the server can be shown one credential only; leave one of them out.`,
    );
  }
  const idle = OPTIONS.map(({ name }) => name).find(
    (name) => name.startsWith('oauth') && !OF_EXCHANGES.includes(name) && given.isMeantForUs(name),
  );
  if (idle !== undefined) {
    throw excluded(
      `${given.placeOf(idle)} is about the login of a user, but with ${source} callers have logged in at ${given.nameOf('authIssuer')}; leave it out.`,
    );
  }
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
