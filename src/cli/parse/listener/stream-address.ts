/** Addresses of byte streams and of gRPC, as users write them. */
import type { SocketAddress, TcpAddress } from '../../../config/listener.ts';
import type { GrpcTarget, StreamAddress } from '../../../config/server.ts';
import type { Parsed, ReadingContext } from '../../options/value-type.ts';
import * as value from '../value.ts';
import { parseSocketUrlPath } from './socket-path.ts';

interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

const TCP_FORM = 'an address like tcp://127.0.0.1:9000, with a port';

/** Parses the address of a server to connect to: `tcp://host:port` or `tls://host:port`. */
export function parseNetworkAddress(text: string): Parsed<StreamAddress> {
  const parsed = parseHostAndPort(text);
  if (!parsed.ok) return parsed;
  if (parsed.value.port === 0) return { ok: false, expected: TCP_FORM };
  return { ok: true, value: { kind: 'tcp', ...parsed.value, tls: /^tls:/i.test(text) ? 'on' : 'off' } };
}

/** Userinfo, a path and a query are refused: they have no meaning on a byte stream. */
function parseHostAndPort(text: string): Parsed<HostAndPort> {
  const [, host = '', digits = ''] = /^[a-z]+:\/\/(\[[^\]]+\]|[^/?#@:]+):(\d{1,5})\/?$/i.exec(text) ?? [];
  const named = value.parseListenHost(host);
  const port = value.parsePort(digits);
  if (!named.ok || !port.ok) return { ok: false, expected: TCP_FORM };
  return { ok: true, value: { host: named.value, port: port.value } };
}

/** An address for byte streams, and the server that it leads to. */
export interface StreamPlace {
  /** The name of a server in a configuration file; undefined if there is only one server. */
  readonly name: string | undefined;
  /** The file mode of a socket is another option's. */
  readonly address: TcpAddress | Omit<SocketAddress, 'mode'>;
}

const STREAM_FORM = 'tcp://host:port or unix:///path, after the name of a server and = where there are several';

/** Parses the value of `--stream`. */
export function parseStream(
  text: string,
  { platform, nameOf }: Pick<ReadingContext, 'platform' | 'nameOf'>,
): Parsed<StreamPlace> {
  const [, name, scheme = '', rest = ''] = /^(?:(.+?)=)?(tcp|unix):\/\/(.*)$/is.exec(text) ?? [];
  if (scheme.toLowerCase() === 'tcp') {
    const parsed = parseHostAndPort(`tcp://${rest}`);
    return parsed.ok ? { ok: true, value: { name, address: { kind: 'tcp', ...parsed.value } } } : parsed;
  }
  if (scheme === '') return { ok: false, expected: STREAM_FORM };
  if (rest.includes('#')) {
    return {
      ok: false,
      expected: `a socket without a path behind #, for lines need none; HTTP has ${nameOf('socket')}`,
    };
  }
  const parsed = parseSocketUrlPath('unix', rest, platform);
  return parsed.ok ? { ok: true, value: { name, address: { kind: 'socket', path: parsed.value } } } : parsed;
}

// ---- gRPC

const GRPC_FORM = 'an address like grpc://127.0.0.1:50051, with a port, and nothing behind it';

/** Parses the address of a server to connect to: `grpc://host:port`, or `grpcs://host:port` with TLS. */
export function parseGrpcAddress(text: string): Parsed<GrpcTarget> {
  const parsed = parseHostAndPort(text);
  if (!parsed.ok || parsed.value.port === 0) return { ok: false, expected: GRPC_FORM };
  return { ok: true, value: { kind: 'grpc', ...parsed.value, tls: /^grpcs:/i.test(text) ? 'on' : 'off' } };
}

/** A port for gRPC, and the server that it leads to. */
export interface GrpcPlace {
  /** The name of a server in a configuration file; undefined if there is only one server. */
  readonly name: string | undefined;
  readonly address: TcpAddress;
}

const GRPC_PLACE_FORM = 'host:port, after the name of a server and = where there are several';

/** Parses the value of `--grpc`. The scheme of a target is accepted, too. */
export function parseGrpcPlace(text: string): Parsed<GrpcPlace> {
  const [, name, place = ''] = /^(?:(.+?)=)?(?:grpcs?:\/\/)?([^=]+)$/is.exec(text) ?? [];
  const parsed = parseHostAndPort(`grpc://${place}`);
  if (!parsed.ok) return { ok: false, expected: GRPC_PLACE_FORM };
  return { ok: true, value: { name, address: { kind: 'tcp', ...parsed.value } } };
}
