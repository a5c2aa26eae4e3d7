import type { AccessConfig } from './access.ts';

/** The side towards clients. */
export type ListenerConfig = HttpListenerConfig | PipeListenerConfig;

/** `serve`: clients of every era over HTTP. */
export interface HttpListenerConfig {
  readonly kind: 'http';
  /** Where it listens, everywhere for the same clients; empty: nowhere over HTTP. */
  readonly addresses: readonly ListenAddress[];
  /** Where it takes lines on byte streams; each connection is one client of one server. */
  readonly streams: readonly StreamConfig[];
  /** For ports: a socket of this machine has nobody on the way who could read along. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly endpoints: EndpointConfig;
  readonly access: AccessConfig;
  /** Limits the head of a request. */
  readonly maxHeaderBytes: number;
  /** The way to an issuer of access tokens: HTTP_PROXY, HTTPS_PROXY, NO_PROXY as the environment had them. */
  readonly proxyEnv: Readonly<Record<string, string>>;
}

/** An address at which byte streams are taken, for one server. */
export interface StreamConfig {
  readonly address: BoundAddress;
  /** What comes before the paths of the server that it leads to, as in its listing; undefined: it has none. */
  readonly segment: string | undefined;
}

export type ListenAddress = BoundAddress | InheritedAddress;

/** What an address is once something listens there. */
export type BoundAddress = TcpAddress | SocketAddress;

export interface TcpAddress {
  readonly kind: 'tcp';
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** A Unix socket; on Windows a named pipe, which has no mode. */
export interface SocketAddress {
  readonly kind: 'socket';
  readonly path: string;
  /** Permissions of the file, which say who may connect. */
  readonly mode: number;
}

/** A socket that whoever started this process has opened and listens on, and that stays theirs: systemd, for example. */
export interface InheritedAddress {
  readonly kind: 'inherited';
  readonly fd: number;
  readonly bound: BoundAddress;
}

/** `connect`: one client on this process's own stdin and stdout. */
export interface PipeListenerConfig {
  readonly kind: 'pipes';
}

/** The paths that are served, and what is served at them. */
export interface EndpointConfig {
  /** Streamable HTTP. */
  readonly path: string;
  /** HTTP+SSE, the transport of 2024-11-05, as a whole: its paths, and its streams at `path`. */
  readonly httpSse: 'served' | 'off';
  /** HTTP+SSE: the GET stream and the POST endpoint it announces. */
  readonly ssePath: string;
  readonly messagePath: string;
  /** When HTTP+SSE ends; undefined: that is not known yet. */
  readonly sunset: SunsetConfig | undefined;
  readonly webSocket: 'served' | 'off';
  readonly wsPath: string;
  /** How clients reach this process from outside, without a trailing slash; undefined: as it listens. */
  readonly baseUrl: URL | undefined;
}

/** The announced end of HTTP+SSE. */
export interface SunsetConfig {
  /** As the user wrote it. */
  readonly date: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** What its clients get from then on. */
  readonly afterwards: 'refuse' | 'serve';
}
