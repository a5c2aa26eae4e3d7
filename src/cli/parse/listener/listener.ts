/** Parses the options of the HTTP listener: addresses, TLS, endpoints and access. */
import type { EndpointConfig, HttpListenerConfig, SunsetConfig } from '../../../config/listener.ts';
import { BridgeError } from '../../../errors.ts';
import { boundAddress } from '../../../http/server/listen-addresses.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { OptionName } from '../../options/option-table.ts';
import { pickProxyEnvironment, type RemoteSurroundings } from '../servers/remote.ts';
import { type AccessRequest, type ListenPlaces, parseAccess } from './access.ts';
import { type NamedGrpc, type NamedStream, parseAddresses } from './listen-addresses.ts';

export interface ParsedListener {
  readonly listener: HttpListenerConfig;
  readonly streams: readonly NamedStream[];
  readonly grpc: readonly NamedGrpc[];
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
  const { addresses, streams, grpc } = parseAddresses(given, around);
  const listen: ListenPlaces = { addresses, streams, grpc, tls: parseTls(given) };
  refuseTlsWithoutPort(given, listen);
  const endpoints = parseEndpoints(given);
  const { env } = around;
  const { access, warnings } = parseAccess({ given, env, listen, endpoints, listens });
  const maxHeaderBytes = given.get('maxHeaderBytes');
  const proxyEnv = pickProxyEnvironment(env);
  const { tls } = listen;
  // `leadStreams` and `leadGrpc` fill in `streams` and `grpc` later, once the servers that they lead to are parsed.
  const { spelling } = given;
  const parts = { addresses, streams: [], grpc: [], tls, endpoints, access, maxHeaderBytes, spelling, proxyEnv };
  const listener: HttpListenerConfig = { kind: 'http', ...parts };
  return { listener, streams, grpc, warnings };
}

function parseTls(given: GivenOptions): HttpListenerConfig['tls'] {
  const certFile = given.get('tlsCert');
  const keyFile = given.get('tlsKey');
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    const [has, lacks] = certFile === undefined ? (['tlsKey', 'tlsCert'] as const) : (['tlsCert', 'tlsKey'] as const);
    throw excluded(
      `${given.placeOf(has)} needs ${given.nameOf(lacks)}: https takes a certificate and its private key.`,
    );
  }
  return { certFile, keyFile };
}

function refuseTlsWithoutPort(given: GivenOptions, { addresses, streams, grpc, tls }: ListenPlaces): void {
  const all = [...addresses.map(boundAddress), ...[...streams, ...grpc].map(({ address }) => address)];
  if (tls === undefined || all.some(({ kind }) => kind === 'tcp')) return;
  // In the environment, as with the port, the certificate is for a port that need not exist.
  if (given.isFromEnvironment('tlsCert')) return;
  throw excluded(
    `${given.placeOf('tlsCert')} is for a port: nobody is on the way to a socket of this machine. Leave it out, or give a ${given.nameOf('port')}, too.`,
  );
}

type PathOption = Extract<OptionName, 'path' | 'ssePath' | 'messagePath' | 'wsPath'>;

function parseEndpoints(given: GivenOptions): EndpointConfig {
  const taken = new Map<string, string>(OWN_PATHS.map((path) => [path, 'what the bridge tells of itself']));
  const claim = (name: PathOption): string => {
    const path = given.get(name);
    const owner = taken.get(path);
    if (owner !== undefined) {
      throw excluded(`${given.placeOf(name)}: the path ${path} is taken by ${owner}; every endpoint needs its own.`);
    }
    taken.set(path, given.placeOf(name));
    return path;
  };
  const path = claim('path');
  const httpSse = given.get('sse') ? 'served' : 'off';
  const webSocket = given.get('ws') ? 'served' : 'off';
  // An endpoint that is off keeps its path free for others.
  const pathOf = (name: PathOption, served: 'served' | 'off') => (served === 'served' ? claim(name) : given.get(name));
  return {
    path,
    httpSse,
    ssePath: pathOf('ssePath', httpSse),
    messagePath: pathOf('messagePath', httpSse),
    sunset: parseSunset(given),
    webSocket,
    wsPath: pathOf('wsPath', webSocket),
    baseUrl: given.get('baseUrl'),
  };
}

function parseSunset(given: GivenOptions): SunsetConfig | undefined {
  const sunset = given.get('sunset');
  const afterward = given.get('afterSunset');
  if (sunset === undefined && given.isGiven('afterSunset')) {
    throw excluded(`${given.placeOf('afterSunset')} needs ${given.nameOf('sunset')}: the date that it is about.`);
  }
  if (sunset !== undefined && !given.get('sse')) {
    const off = given.spelling === 'fields' ? 'sse: false' : '--no-sse';
    throw excluded(
      `${given.placeOf('sunset')} says when HTTP+SSE ends, but ${off} does not serve it at all; leave one of them out.`,
    );
  }
  return sunset && { ...sunset, afterward };
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
