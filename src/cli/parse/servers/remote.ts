/** Parses the options for connecting to a remote server: headers and credentials, TLS, proxies and timeouts. */
import { resolve } from 'node:path';
import type { AccessConfig } from '../../../config/access.ts';
import type { ForwardedHeader, RemoteConfig } from '../../../config/remote.ts';
import type { Target } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { isLoopback } from '../../../http/addresses.ts';
import { findProxy } from '../../../http/client/agents.ts';
import { handshakeUrlOf, isWebSocketUrl } from '../../../http/websocket/url.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { BridgeVerb } from '../../options/option-spec.ts';
import type { OptionName } from '../../options/option-table.ts';
import * as value from '../value.ts';
import type { Environment } from './child-environment.ts';
import { parseExchange } from './exchange.ts';
import { composeRemoteHeaders, type HeaderSources, parseForwardedHeader, type RemoteHeaders } from './headers.ts';
import { parseLogin } from './login.ts';

export interface RemoteSurroundings extends Pick<HeaderSources, 'env' | 'readFile'> {
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  /** Throws for a user without a home folder. The default asks the operating system. */
  readonly homeFolder?: (() => string) | undefined;
}

/** The server to connect to, the verb that does so, and the authentication of callers. */
export interface RemoteUse {
  readonly target: Target;
  readonly verb: BridgeVerb;
  readonly access: Pick<AccessConfig, 'auth'>;
}

export interface ParsedRemote {
  readonly remote: RemoteConfig;
  readonly warnings: readonly string[];
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function parseRemote(
  given: GivenOptions,
  around: RemoteSurroundings,
  { target, verb, access }: RemoteUse,
): ParsedRemote {
  const proxyEnv = pickProxyEnvironment(around.env);
  // An unusable proxy setting is an error at startup, not at the first call.
  const isOverNetwork = target.kind === 'url' && target.socketPath === undefined;
  if (isOverNetwork) findProxy(handshakeUrlOf(target.url), proxyEnv);
  const bearerTokenFile = parsePath(given, around, 'bearer-token-file');
  const { headers, warnings } = target.kind === 'url' ? parseHeaders(given, around) : NO_HEADERS;
  const forwardHeaders = parseForwardedHeaders(given);
  const shown = { headers, bearerTokenFile, forwardHeaders };
  const request = { given, verb, ...around, isOverNetwork, remote: shown };
  const exchanged = target.kind === 'url' && verb === 'serve' ? parseExchange({ ...request, access }) : undefined;
  const isLogin = target.kind === 'url' && exchanged === undefined;
  const { login, warnings: ofLogin } = isLogin ? parseLogin(request) : NO_LOGIN;
  const fromCallers = forwardHeaders.filter(({ name, sentAs }) => [name, sentAs].some(isCredential));
  refuseSecondCredential(given, { forwardHeaders, headers, bearerTokenFile, login });
  const isSecret =
    exchanged !== undefined ||
    bearerTokenFile !== undefined ||
    [...headers.keys()].some(isCredential) ||
    fromCallers.length > 0;
  const transport: RemoteConfig['transport'] = given.required(
    'transport',
    value.parseChoice(['auto', 'streamable-http', 'sse']),
  );
  if (target.kind === 'url' && isWebSocketUrl(target.url) && transport !== 'auto') {
    const problem = `${given.sourceOf('transport')} ${transport} is a way to speak over HTTP, and the URL of the server is of a WebSocket; leave one of them out`;
    throw new BridgeError('ERR_CONFIG_COMBINATION', `${problem}.`);
  }
  const remote: RemoteConfig = {
    transport,
    headers,
    bearerTokenFile,
    tls: parseClientTls(given, around),
    forwardHeaders,
    timeouts: {
      connectMs: given.required('connect-timeout', value.parseDuration),
      firstByteMs: given.required('first-byte-timeout', value.parseDuration),
      idleMs: given.required('idle-timeout', value.parseDuration),
      callMs: given.required('call-timeout', value.parseDuration),
    },
    exchange: exchanged?.exchange,
    login,
    keepAliveMs: given.required('keep-alive', value.parseDuration),
    proxyEnv,
  };
  return {
    remote,
    warnings: [
      ...warnings,
      ...ofLogin,
      ...(exchanged?.warnings ?? []),
      ...(target.kind === 'url' ? warnOfForwardedCredentials(given, forwardHeaders, target.url) : []),
      ...(isSecret && target.kind === 'url' ? warnOfPlainHttp(target.url) : []),
    ],
  };
}

const NO_HEADERS: RemoteHeaders = { headers: new Map(), warnings: [] };
const NO_LOGIN = { login: undefined, warnings: [] };
/** Headers that commonly carry credentials. */
const CREDENTIALS: readonly string[] = ['authorization', 'cookie', 'x-api-key'];

function isCredential(name: string): boolean {
  return CREDENTIALS.includes(name);
}

/** Throws ERR_CONFIG_COMBINATION for two headers that would be sent under the same name. */
function parseForwardedHeaders(given: GivenOptions): readonly ForwardedHeader[] {
  const byText = new Map(
    given.list('forward-header', parseForwardedHeader).map((header) => [`${header.name}: ${header.sentAs}`, header]),
  );
  const all = [...byText.values()];
  const [twice] = all.filter((header, index) => all.findIndex(({ sentAs }) => sentAs === header.sentAs) !== index);
  if (twice === undefined) return all;
  const names = all.filter(({ sentAs }) => sentAs === twice.sentAs).map(({ name }) => name);
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${given.sourceOf('forward-header')}: ${names.join(' and ')} would both become the header ${twice.sentAs}, which can have one value only; leave one of them out.`,
  );
}

/** Refuses a forwarded Authorization beside a credential of the user: users should not need to know which one wins. */
function refuseSecondCredential(
  given: GivenOptions,
  remote: Pick<RemoteConfig, 'forwardHeaders' | 'headers' | 'bearerTokenFile' | 'login'>,
): void {
  if (!remote.forwardHeaders.some(({ sentAs }) => sentAs === 'authorization')) return;
  const isShown = remote.bearerTokenFile !== undefined || remote.headers.has('authorization');
  if (!isShown && remote.login === undefined) return;
  const other = isShown ? 'a token of yours' : `${given.sourceOf('login')} on-demand`;
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${given.sourceOf('forward-header')} makes a header of the caller the Authorization of its requests, and so would ${other}: the server can be shown one credential only; leave one of them out.`,
  );
}

/**
 * Warns of headers that become Authorization, and of Authorization under another name. Other forwarded headers need no
 * warning: callers do not authenticate to mcp-portage with them.
 */
function warnOfForwardedCredentials(
  given: GivenOptions,
  headers: readonly ForwardedHeader[],
  { host }: URL,
): readonly string[] {
  return headers.flatMap(({ name, sentAs }) => {
    const source = `${given.sourceOf('forward-header')} ${name}: ${sentAs}`;
    if (name === 'authorization') {
      return [
        `${source} hands ${host} the tokens that callers show to mcp-portage. Whoever runs it could use them here in the name of these callers, and MCP forbids that it accepts them; if it trusts the same issuer, use --exchange-token.`,
      ];
    }
    if (sentAs !== 'authorization') return [];
    return [
      `${source} shows ${host} what callers send as ${name} as their Authorization. mcp-portage does not check it, and lets callers without it in unless --auth-token or --auth-issuer says otherwise; pass it over TLS only.`,
    ];
  });
}

function parseHeaders(given: GivenOptions, around: RemoteSurroundings): RemoteHeaders {
  const { env, readFile } = around;
  return composeRemoteHeaders({ given, env, readFile, headerFile: parsePath(given, around, 'header-file') });
}

function parseClientTls(given: GivenOptions, around: RemoteSurroundings): RemoteConfig['tls'] {
  const tls = {
    caFile: parsePath(given, around, 'ca'),
    certFile: parsePath(given, around, 'client-cert'),
    keyFile: parsePath(given, around, 'client-key'),
  };
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
    const [has, lacks] =
      tls.certFile === undefined ? (['client-key', 'client-cert'] as const) : (['client-cert', 'client-key'] as const);
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `${given.sourceOf(has)} needs --${lacks}: a client shows its certificate and proves it with the private key.`,
    );
  }
  return tls;
}

const PROXY_NAMES = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'].flatMap((name) => [
  name,
  name.toUpperCase(),
]);

/** Picks the proxy variables in upper and lower case. The code that uses them decides which takes precedence. */
export function pickProxyEnvironment(env: Environment): Readonly<Record<string, string>> {
  const found = PROXY_NAMES.map((name) => [name, env[name]] as const);
  return Object.fromEntries(found.flatMap(([name, text]) => (text === undefined ? [] : [[name, text] as const])));
}

function warnOfPlainHttp({ protocol, hostname }: URL): readonly string[] {
  const [scheme, secure] = protocol === 'ws:' ? ['ws', 'wss'] : ['http', 'https'];
  if (protocol !== `${scheme}:` || isLoopback(hostname.replace(/^\[|\]$/g, ''))) return [];
  return [
    `The credential for ${hostname} goes over ${scheme}, where anybody on the network path can read it; use ${secure} if the server has it.`,
  ];
}

function parsePath(given: GivenOptions, { cwd }: { readonly cwd: string }, name: OptionName): string | undefined {
  const path = given.optional(name, value.parseText);
  return path === undefined ? undefined : resolve(cwd, path);
}
