/** Parses the options of the HTTP listener: addresses, TLS, endpoints and access. */
import { resolve } from 'node:path';
import type { EndpointConfig, HttpListenerConfig, SunsetConfig } from '../../../config/listener.ts';
import { BridgeError } from '../../../errors.ts';
import { boundAddress } from '../../../http/server/listen-addresses.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { envNameOf, type OptionName } from '../../options/option-table.ts';
import { pickProxyEnvironment, type RemoteSurroundings } from '../servers/remote.ts';
import * as value from '../value.ts';
import { type AccessRequest, type ListenPlaces, parseAccess } from './access.ts';
import { parseAddresses } from './listen-addresses.ts';
import type { WrittenStream } from './stream-address.ts';

export interface ParsedListener {
  readonly listener: HttpListenerConfig;
  readonly streams: readonly WrittenStream[];
  readonly warnings: readonly string[];
}

/** Paths that the bridge itself serves on every port. */
const OWN_PATHS = ['/healthz', '/readyz', '/metrics', '/status', '/status.css', '/status.js', '/status.json'];

/** @throws BridgeError ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION */
export function parseListener(
  given: GivenOptions,
  around: RemoteSurroundings,
  listens: AccessRequest['listens'],
): ParsedListener {
  const { addresses, streams } = parseAddresses(given, around);
  const listen: ListenPlaces = { addresses, streams, tls: parseTls(given, around) };
  refuseTlsWithoutPort(given, listen);
  const endpoints = parseEndpoints(given);
  const { env, cwd } = around;
  const { access, warnings } = parseAccess({ given, env, cwd, listen, endpoints, listens });
  const maxHeaderBytes = given.required('max-header-bytes', value.parseMessageSize);
  const proxyEnv = pickProxyEnvironment(env);
  const { tls } = listen;
  // `leadStreams` fills in `streams` later, once the servers that they lead to are parsed.
  const listener = { kind: 'http', addresses, streams: [], tls, endpoints, access, maxHeaderBytes, proxyEnv } as const;
  return { listener, streams, warnings };
}

function parseTls(given: GivenOptions, around: RemoteSurroundings): HttpListenerConfig['tls'] {
  const certFile = given.optional('tls-cert', value.parseText);
  const keyFile = given.optional('tls-key', value.parseText);
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    const [has, lacks] =
      certFile === undefined ? (['tls-key', 'tls-cert'] as const) : (['tls-cert', 'tls-key'] as const);
    throw excluded(`${given.sourceOf(has)} needs --${lacks}: https takes a certificate and its private key.`);
  }
  return { certFile: resolve(around.cwd, certFile), keyFile: resolve(around.cwd, keyFile) };
}

function refuseTlsWithoutPort(given: GivenOptions, { addresses, streams, tls }: ListenPlaces): void {
  const all = [...addresses.map(boundAddress), ...streams.map(({ address }) => address)];
  if (tls === undefined || all.some(({ kind }) => kind === 'tcp')) return;
  // In the environment, as with the port, the certificate is for a port that need not exist.
  if (given.sourceOf('tls-cert') === envNameOf('tls-cert')) return;
  throw excluded(
    `${given.sourceOf('tls-cert')} is for a port: nobody is on the way to a socket of this machine. Leave it out, or give a --port, too.`,
  );
}

function parseEndpoints(given: GivenOptions): EndpointConfig {
  const taken = new Map<string, string>(OWN_PATHS.map((path) => [path, 'what the bridge tells of itself']));
  const claim = (name: OptionName): string => {
    const path = given.required(name, value.parseEndpointPath);
    const owner = taken.get(path);
    if (owner !== undefined) {
      throw excluded(`${given.sourceOf(name)}: the path ${path} is taken by ${owner}; every endpoint needs its own.`);
    }
    taken.set(path, given.sourceOf(name));
    return path;
  };
  const path = claim('path');
  const isServed = (name: OptionName) => (given.required(name, value.parseFlag) ? 'served' : 'off');
  const httpSse = isServed('sse');
  const webSocket = isServed('ws');
  // An endpoint that is off keeps its path free for others.
  const pathOf = (name: OptionName, served: 'served' | 'off') =>
    served === 'served' ? claim(name) : given.required(name, value.parseEndpointPath);
  return {
    path,
    httpSse,
    ssePath: pathOf('sse-path', httpSse),
    messagePath: pathOf('message-path', httpSse),
    sunset: parseSunset(given),
    webSocket,
    wsPath: pathOf('ws-path', webSocket),
    baseUrl: given.optional('base-url', value.parseBaseUrl),
  };
}

const AFTER_SUNSET = ['refuse', 'serve'] as const;

function parseSunset(given: GivenOptions): SunsetConfig | undefined {
  const sunset = given.optional('sunset', value.parseSunset);
  const afterwards = given.required('after-sunset', value.parseChoice(AFTER_SUNSET));
  if (sunset === undefined && given.texts('after-sunset').length > 0) {
    throw excluded(`${given.sourceOf('after-sunset')} needs --sunset: the date that it is about.`);
  }
  return sunset && { ...sunset, afterwards };
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
