/** Parses the options for connecting to a remote server: headers and credentials, TLS, proxies and timeouts. */
import type { AccessConfig } from '../../../config/access.ts';
import type { ForwardedHeader, RemoteConfig } from '../../../config/remote.ts';
import type { GrpcTarget, MqttAddress, ServerConfig, UrlTarget } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { isLoopback } from '../../../http/addresses.ts';
import { findProxy } from '../../../http/client/agents.ts';
import { handshakeUrlOf, isWebSocketUrl } from '../../../http/websocket/url.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { BridgeVerb } from '../../options/option-table.ts';
import { parseAccount } from './account.ts';
import type { Environment } from './child-environment.ts';
import { parseExchange } from './exchange.ts';
import { composeRemoteHeaders, type HeaderSources, type RemoteHeaders } from './headers.ts';
import { parseLogin } from './login.ts';

export interface RemoteSurroundings extends Pick<HeaderSources, 'env' | 'readFile'> {
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  /** Throws for a user without a home folder. The default asks the operating system. */
  readonly homeFolder?: (() => string) | undefined;
}

/** The server to connect to, the verb that does so, and the authentication of callers. */
export interface RemoteUse {
  readonly target: ServerConfig['target'];
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
  const bearerTokenFile = given.get('bearerTokenFile');
  const isCalled = target.kind === 'url' || target.kind === 'grpc';
  const { headers, warnings } = isCalled ? composeRemoteHeaders({ given, ...around }) : NO_HEADERS;
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
  const account = parseAccount(given, around.env);
  const transport: RemoteConfig['transport'] = given.get('transport');
  if (target.kind === 'url' && isWebSocketUrl(target.url) && transport !== 'auto') {
    const problem = `${given.placeOf('transport')} ${transport} is a way to speak over HTTP, and the URL of the server is of a WebSocket; leave one of them out`;
    throw new BridgeError('ERR_CONFIG_COMBINATION', `${problem}.`);
  }
  const remote: RemoteConfig = {
    transport,
    account,
    headers,
    bearerTokenFile,
    tls: parseClientTls(given),
    forwardHeaders,
    timeouts: {
      connectMs: given.get('connectTimeout'),
      firstByteMs: given.get('firstByteTimeout'),
      idleMs: given.get('idleTimeout'),
      callMs: given.get('callTimeout'),
    },
    exchange: exchanged?.exchange,
    login,
    keepAliveMs: given.get('keepAlive'),
    proxyEnv,
  };
  return {
    remote,
    warnings: [
      ...warnings,
      ...ofLogin,
      ...(exchanged?.warnings ?? []),
      ...(isCalled ? warnOfForwardedCredentials(given, forwardHeaders, hostOfCalled(target)) : []),
      ...(isSecret && target.kind === 'url' ? warnOfPlainHttp(target.url) : []),
      ...(isSecret && target.kind === 'grpc' ? warnOfPlainGrpc(target) : []),
      ...(account.password !== undefined && target.kind === 'mqtt' ? warnOfPlainMqtt(target.address) : []),
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
  const byText = new Map(given.get('forwardHeader').map((header) => [`${header.name}: ${header.sentAs}`, header]));
  const all = [...byText.values()];
  const [twice] = all.filter((header, index) => all.findIndex(({ sentAs }) => sentAs === header.sentAs) !== index);
  if (twice === undefined) return all;
  const names = all.filter(({ sentAs }) => sentAs === twice.sentAs).map(({ name }) => name);
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${given.placeOf('forwardHeader')}: ${names.join(' and ')} would both become the header ${twice.sentAs}, which can have one value only; leave one of them out.`,
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
  const other = isShown ? 'a token of yours' : `${given.placeOf('login')} on-demand`;
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${given.placeOf('forwardHeader')} makes a header of the caller the Authorization of its requests, and so would ${other}: the server can be shown one credential only; leave one of them out.`,
  );
}

/**
 * Warns of headers that become Authorization, and of Authorization under another name. Other forwarded headers need no
 * warning: callers do not authenticate to mcp-portage with them.
 */
function warnOfForwardedCredentials(
  given: GivenOptions,
  headers: readonly ForwardedHeader[],
  host: string,
): readonly string[] {
  return headers.flatMap(({ name, sentAs }) => {
    const source = `${given.placeOf('forwardHeader')} ${name}: ${sentAs}`;
    if (name === 'authorization') {
      return [
        `${source} hands ${host} the tokens that callers show to mcp-portage. Whoever runs it could use them here in the name of these callers, and MCP forbids that it accepts them; if it trusts the same issuer, use ${given.nameOf('exchangeToken')}.`,
      ];
    }
    if (sentAs !== 'authorization') return [];
    return [
      `${source} shows ${host} what callers send as ${name} as their Authorization. mcp-portage does not check it, and lets callers without it in unless ${given.nameOf('authToken')} or ${given.nameOf('authIssuer')} says otherwise; pass it over TLS only.`,
    ];
  });
}

function parseClientTls(given: GivenOptions): RemoteConfig['tls'] {
  const tls = {
    caFile: given.get('ca'),
    certFile: given.get('clientCert'),
    keyFile: given.get('clientKey'),
  };
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
    const [has, lacks] =
      tls.certFile === undefined ? (['clientKey', 'clientCert'] as const) : (['clientCert', 'clientKey'] as const);
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `${given.placeOf(has)} needs ${given.nameOf(lacks)}: a client shows its certificate and proves it with the private key.`,
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

/** Over mqtt, anyone on the network path could read the password, and everything that is said. */
function warnOfPlainMqtt({ host, tls }: MqttAddress): readonly string[] {
  if (tls === 'on' || isLoopback(host)) return [];
  return [
    `The password for ${host} goes over mqtt, where anybody on the network path can read it; use mqtts if the broker has it.`,
  ];
}

function warnOfPlainHttp({ protocol, hostname }: URL): readonly string[] {
  const [scheme, secure] = protocol === 'ws:' ? ['ws', 'wss'] : ['http', 'https'];
  if (protocol !== `${scheme}:` || isLoopback(hostname.replace(/^\[|\]$/g, ''))) return [];
  return [
    `The credential for ${hostname} goes over ${scheme}, where anybody on the network path can read it; use ${secure} if the server has it.`,
  ];
}

function warnOfPlainGrpc({ host, tls }: GrpcTarget): readonly string[] {
  if (tls === 'on' || isLoopback(host)) return [];
  return [
    `The credential for ${host} goes over grpc without TLS, where anybody on the network path can read it; use grpcs if the server has it.`,
  ];
}

function hostOfCalled(target: UrlTarget | GrpcTarget): string {
  return target.kind === 'url' ? target.url.host : `${target.host}:${target.port}`;
}
