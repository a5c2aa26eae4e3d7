import type { AccessConfig } from './access.ts';

/** The configuration of the client side. */
export type ListenerConfig = HttpListenerConfig | PipeListenerConfig;

/** `serve`: clients of every era connect over HTTP. */
export interface HttpListenerConfig {
  readonly kind: 'http';
  /** Addresses that all serve the same clients. Empty: no HTTP listener. */
  readonly addresses: readonly ListenAddress[];
  /** Addresses for byte streams of JSON lines. Each connection is one client of one server. */
  readonly streams: readonly StreamConfig[];
  /** Ports for gRPC. Each stream there is one client of one server. */
  readonly grpc: readonly GrpcConfig[];
  /** Applies to TCP ports only: traffic over a local socket does not leave this machine. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly endpoints: EndpointConfig;
  readonly access: AccessConfig;
  /** Limit for the head of a request. */
  readonly maxHeaderBytes: number;
  /** Errors name the options of addresses as flags of the command line, or as fields of a program's options. */
  readonly spelling: 'flags' | 'fields';
  /**
   * The proxy for connections to an issuer of access tokens: HTTP_PROXY, HTTPS_PROXY, NO_PROXY from the environment.
   */
  readonly proxyEnv: Readonly<Record<string, string>>;
}

/** An address for byte streams to one server. */
export interface StreamConfig {
  readonly address: BoundAddress;
  /** The segment of the server's listing; undefined for a server without a listing. */
  readonly segment: string | undefined;
}

/** A port for gRPC to one server. */
export interface GrpcConfig {
  readonly address: TcpAddress;
  /** The segment of the server's listing; undefined for a server without a listing. */
  readonly segment: string | undefined;
}

export type ListenAddress = BoundAddress | InheritedAddress;

/** An address on which a listener is open. */
export type BoundAddress = TcpAddress | SocketAddress;

export interface TcpAddress {
  readonly kind: 'tcp';
  readonly host: string;
  /** 0: the system chooses a port. */
  readonly port: number;
}

/** A Unix socket, or on Windows a named pipe, which has no mode. */
export interface SocketAddress {
  readonly kind: 'socket';
  readonly path: string;
  /** Permissions of the socket file, which control who may connect. */
  readonly mode: number;
}

/** A listening socket that the parent process, such as systemd, has opened and continues to own. */
export interface InheritedAddress {
  readonly kind: 'inherited';
  readonly fd: number;
  readonly bound: BoundAddress;
}

/** `connect`: a single client on stdin and stdout of this process. */
export interface PipeListenerConfig {
  readonly kind: 'pipes';
}

/** The served paths and the transport at each. */
export interface EndpointConfig {
  /** Streamable HTTP. */
  readonly path: string;
  /** The HTTP+SSE transport of 2024-11-05, including its streams at `path`. */
  readonly httpSse: 'served' | 'off';
  /** HTTP+SSE: the path of the GET stream, and of the POST endpoint that it announces. */
  readonly ssePath: string;
  readonly messagePath: string;
  /** The end of HTTP+SSE; undefined if no date is announced. */
  readonly sunset: SunsetConfig | undefined;
  readonly webSocket: 'served' | 'off';
  readonly wsPath: string;
  /** The public URL of this process, without a trailing slash; undefined if clients use the listen address. */
  readonly baseUrl: URL | undefined;
}

/** The announced end of HTTP+SSE. */
export interface SunsetConfig {
  /** The date as the user wrote it. */
  readonly date: string;
  /** The date in milliseconds since 1970. */
  readonly atMs: number;
  /** The response to HTTP+SSE clients after that date: an error, or service as before. */
  readonly afterward: 'refuse' | 'serve';
}
