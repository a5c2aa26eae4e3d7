/** Parses the options for logging in at a remote server. */

import type { AssertionSource, ClientMethod, LoginConfig } from '../../../config/remote.ts';
import { BridgeError } from '../../../errors.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { type BridgeVerb, OPTIONS, type OptionName } from '../../options/option-table.ts';
import { parseClient, refuseHalfClient, refuseUnknownClient, refuseUnusableMethod } from './login-client.ts';
import { parseGrant, refuseAnonymousCallers } from './login-grant.ts';
import { excluded, type LoginRequest } from './login-request.ts';
import { findStateDirectory } from './state-directory.ts';

export interface ParsedLogin {
  readonly login: LoginConfig | undefined;
  readonly warnings: readonly string[];
}

/** Verbs that log in by default: their clients, if any, belong to the user who runs them. */
const LOGS_IN: readonly BridgeVerb[] = ['connect', 'login', 'logout'];

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function parseLogin(request: LoginRequest): ParsedLogin {
  const { given, verb } = request;
  const when = given.get('login');
  const isShown = request.remote.bearerTokenFile !== undefined || request.remote.headers.has('authorization');
  if (isShown && when !== undefined && when !== 'never') {
    throw excluded(
      `${given.placeOf('login')} ${when} and a token of yours exclude each other: the server can be shown one credential only; leave one of them out.`,
    );
  }
  if (!request.isOverNetwork && when !== undefined && when !== 'never') {
    throw excluded(
      `${given.placeOf('login')} ${when} is for a server that is reached over the network: no authorization server knows one at a socket. Show a token with ${given.nameOf('bearerTokenFile')} or ${given.nameOf('header')}.`,
    );
  }
  // `serve` logs in only on request: all callers would use the login of one user, so the user has to decide that.
  const isUsual = LOGS_IN.includes(verb) && !isShown && request.isOverNetwork;
  const chosen = when ?? (isUsual ? 'on-demand' : 'never');
  if (chosen === 'never') {
    refuseIdle(given, verb);
    return { login: undefined, warnings: [] };
  }
  const { client, warnings } = parseClient(request);
  const browser = given.get('oauthBrowser') ? findBrowser(request) : undefined;
  const usual = browser !== undefined && hasScreen(request) ? 'authorization-code' : 'device-code-if-offered';
  const { grant, assertion, warnings: moreWarnings } = parseGrant(request, usual);
  refuseHalfClient(given, grant, client);
  if (assertion?.kind === 'identity-provider') refuseUnknownClient(given, client);
  const authMethod: ClientMethod | undefined = given.get('oauthAuthMethod');
  if (authMethod !== undefined) refuseUnusableMethod(given, authMethod, client, grant);
  refuseAnonymousCallers(given, verb, grant, assertion);
  const login: LoginConfig = {
    grant,
    assertion,
    stored: chosen === 'anew' ? 'forget' : 'use',
    client,
    clientMetadataUrl: given.get('oauthClientDocument'),
    issuer: given.get('oauthIssuer'),
    tokenEndpoint: given.get('oauthTokenEndpoint'),
    authMethod,
    assumesPkce: given.get('oauthAssumePkce'),
    scopes: [...new Set(given.get('oauthScope').flat())],
    resource: given.get('oauthResource') ?? { kind: 'server' },
    token: parseTokenKind(given, grant),
    extraParameters: parseExtraParameters(given, assertion),
    callback: given.get('oauthCallback'),
    browser,
    stateDirectory: findStateDirectory(given, request),
  };
  return { login, warnings: [...warnings, ...moreWarnings] };
}

/** Refuses login options without a login, since they would have no effect. */
function refuseIdle(given: GivenOptions, verb: BridgeVerb): void {
  const idle = OPTIONS.map(({ name }) => name).find((name) => name.startsWith('oauth') && given.isMeantForUs(name));
  if (idle === undefined) return;
  const hint = LOGS_IN.includes(verb)
    ? `leave the token or ${given.nameOf('login')} never out`
    : `${verb} logs in with ${given.nameOf('login')} on-demand only`;
  throw excluded(`${given.placeOf(idle)} is about a login, but there is none here; ${hint}.`);
}

function parseTokenKind(given: GivenOptions, grant: LoginConfig['grant']): LoginConfig['token'] {
  const token: LoginConfig['token'] = given.get('oauthToken');
  if (token === 'access' || (grant !== 'client-credentials' && grant !== 'jwt-bearer')) return token;
  const cause = given.isGiven('oauthIdpIssuer')
    ? given.placeOf('oauthIdpIssuer')
    : `${given.placeOf('oauthGrant')} ${grant}`;
  throw excluded(
    `${given.placeOf('oauthToken')} id is for the login of a user at the authorization server: an ID token says who that is, and with ${cause} there is none.`,
  );
}

/** Parameters that the login itself sets, and the option that changes each; undefined if there is no such option. */
const PROTOCOL_PARAMETERS: ReadonlyMap<string, OptionName | undefined> = new Map<string, OptionName | undefined>([
  ['client_id', 'oauthClientId'],
  ['redirect_uri', 'oauthCallback'],
  ['resource', 'oauthResource'],
  ['scope', 'oauthScope'],
  ['grant_type', 'oauthGrant'],
  ['client_secret', 'oauthSecretFile'],
  ['client_assertion', 'oauthClientKey'],
  ['client_assertion_type', 'oauthClientKey'],
  ['assertion', 'oauthAssertionFile'],
  ['subject_token', 'oauthAssertionFile'],
  ...[
    ...['response_type', 'response_mode', 'state', 'code_challenge', 'code_challenge_method'],
    ...['code', 'code_verifier', 'refresh_token', 'device_code', 'dpop_jkt'],
    // [RFC 8693 2.1]
    ...['subject_token_type', 'requested_token_type', 'actor_token', 'actor_token_type'],
    // [RFC 9101 5] A request object replaces all other parameters.
    ...['request', 'request_uri'],
  ].map((name) => [name, undefined] as const),
]);

/**
 * Throws ERR_CONFIG_OPTION for a parameter that the login sets itself, and for one given twice: a request may hold each
 * parameter only once [RFC 6749 3.1]. Messages name parameters and never show their values.
 */
export function parseExtraParameters(
  given: GivenOptions,
  assertion: AssertionSource | undefined,
): ReadonlyMap<string, string> {
  const source = given.placeOf('oauthParam');
  const extra = new Map<string, string>();
  for (const [name, text] of given.get('oauthParam')) {
    // Some authorization servers ignore the case of names.
    const known = name.toLowerCase();
    // [RFC 8693 2.1] The login sets `audience` in its request for an assertion from the identity provider.
    const isAudience = known === 'audience' && assertion?.kind === 'identity-provider';
    if (isAudience || PROTOCOL_PARAMETERS.has(known)) {
      const option = PROTOCOL_PARAMETERS.get(known);
      const wayOut = option === undefined ? 'leave it out' : `use ${given.nameOf(option)}`;
      throw new BridgeError('ERR_CONFIG_OPTION', `${source}: ${name} is set by the login itself; ${wayOut}.`);
    }
    if (extra.has(name)) {
      throw new BridgeError('ERR_CONFIG_OPTION', `${source}: ${name} is given twice; leave one of them out.`);
    }
    extra.set(name, text);
  }
  return extra;
}

/** The command that opens a browser on platforms that `BROWSERS` does not list. */
const USUAL_BROWSER = ['xdg-open', '%s'];
const BROWSERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open', '%s'],
  // rundll32 is the one program of Windows that takes a URL without interpreting its characters.
  win32: ['rundll32', 'url.dll,FileProtocolHandler', '%s'],
};

/** Variables of an SSH session, whose user sits at another machine. */
const OVER_SSH = ['SSH_CONNECTION', 'SSH_CLIENT', 'SSH_TTY'];
/**
 * Variables of a graphical session. Many MCP clients do not pass them on; programs that open browsers then lack them,
 * too.
 */
const SCREENS = ['DISPLAY', 'WAYLAND_DISPLAY'];

/** Returns true if a browser can be opened on the user's screen. A browser that `BROWSER` names is assumed to work. */
function hasScreen({ env, platform }: LoginRequest): boolean {
  if (env.BROWSER) return true;
  if (OVER_SSH.some((name) => env[name])) return false;
  return platform === 'darwin' || platform === 'win32' || SCREENS.some((name) => env[name]);
}

function findBrowser({ env, platform }: LoginRequest): readonly string[] {
  const words = (env.BROWSER ?? '').split(/\s+/).filter((word) => word !== '');
  if (words.length > 0) return words.some((word) => word.includes('%s')) ? words : [...words, '%s'];
  return BROWSERS[platform] ?? USUAL_BROWSER;
}
