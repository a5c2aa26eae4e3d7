import { connect as connectHttp2 } from 'node:http2';
import { connect, isIP, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import type { BoundAddress } from '../../config/listener.ts';
import type { RemoteConfig } from '../../config/remote.ts';
import type { GrpcTarget } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import { leadsBack } from '../../http/addresses.ts';
import { BearerTokenFile } from '../../http/client/credentials.ts';
import { readSecureContext } from '../../http/client/secure-context.ts';
import { isConfigurable, isForwardTarget, pickHeaders } from '../../http/headers.ts';
import { showGrpcAddress } from '../../http/socket-addresses.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import type { Lane } from '../../relay/call.ts';
import type { Readiness } from '../../relay/readiness.ts';
import { IdWarnings } from '../answer-ids.ts';
import type { Connection, Connector } from '../connection.ts';
import { DuplexConnection } from '../duplex/connection.ts';
import { Reachability } from '../resilience/reachability.ts';
import { tryConnection } from '../resilience/try-connection.ts';
import { GrpcCarrier } from './carrier.ts';

/** Bytes that the server may send before they are read, for each stream. A message of this size needs no second turn. */
const WINDOW_BYTES = 1024 * 1024;
/** TCP keep-alive delay, after which a peer is probed that may have vanished without closing the connection. */
const TCP_KEEP_ALIVE_MS = 30_000;

export interface GrpcConnectorOptions {
  readonly target: GrpcTarget;
  readonly remote: Pick<RemoteConfig, 'headers' | 'bearerTokenFile' | 'tls' | 'keepAliveMs'>;
  /** Time limit for name resolution, TCP, TLS and the first settings together; 0 means no limit. */
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  /** Log level for a connection that fails: `debug` if the caller that dials reports the failure itself. */
  readonly failureLevel: 'warn' | 'debug';
  /** Addresses at which this process itself listens. Absent if it does not listen. */
  readonly bound?: () => readonly BoundAddress[];
  /** Client name for trials of a server that could not be reached. Default: only clients try it. */
  readonly trialClient?: Implementation | undefined;
  readonly userAgent: string;
  readonly deps: Deps;
}

/**
 * Creates connections to a server that speaks JSON-RPC on streams of gRPC. To the server each is a separate client.
 * @throws BridgeError ERR_CONFIG_OPTION when a file for TLS cannot be used
 */
export function createGrpcConnector(options: GrpcConnectorOptions): Connector {
  return new GrpcConnector(options);
}

class GrpcConnector implements Connector {
  readonly name: string;
  readonly #options: GrpcConnectorOptions;
  readonly #secureContext: ReturnType<typeof readSecureContext>;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #token: BearerTokenFile | undefined;
  readonly #reachability: Reachability;
  readonly #idWarnings: IdWarnings;
  readonly #connections = new Map<DuplexConnection<GrpcCarrier>, Promise<void>>();
  #isClosed = false;

  constructor(options: GrpcConnectorOptions) {
    const { target, remote, userAgent, trialClient: clientInfo, deps } = options;
    this.name = showGrpcAddress(target);
    this.#options = options;
    this.#secureContext = readSecureContext(remote.tls);
    this.#headers = { 'user-agent': userAgent, ...pickHeaders(remote.headers, isMetadata) };
    this.#token = remote.bearerTokenFile === undefined ? undefined : new BearerTokenFile(remote.bearerTokenFile);
    const { clock } = deps;
    const attempt =
      clientInfo &&
      ((signal: AbortSignal) => tryConnection({ connect: () => this.connect(), clientInfo, clock, signal }));
    this.#reachability = new Reachability({ name: this.name, attempt, deps });
    this.#idWarnings = new IdWarnings(this.name, deps.log);
  }

  connect(): Connection {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and makes no more connections.');
    }
    const { remote, connectTimeoutMs, maxMessageBytes, failureLevel, deps } = this.#options;
    const { log, clock } = deps;
    let tellGone = (): void => {};
    const gone = new Promise<void>((resolve) => {
      tellGone = resolve;
    });
    const carried = {
      name: this.name,
      connect: () => this.#openSession(),
      metadataFor: (forwarded: Lane['headers']) => this.#metadataFor(forwarded),
      isOwn: (socket: Socket) => this.#isOwn(socket),
      connectTimeoutMs,
      keepAliveMs: remote.keepAliveMs,
      maxMessageBytes,
      failureLevel,
      reachable: (error: BridgeError | undefined) => this.#reachability.note(error),
      gone: tellGone,
      clock,
      log,
    };
    const connection = new DuplexConnection({
      idWarnings: this.#idWarnings,
      log: log.child({ address: this.name }),
      carry: (connected) => new GrpcCarrier(carried, connected),
    });
    this.#connections.set(connection, gone);
    void gone.then(() => this.#connections.delete(connection));
    return connection;
  }

  #openSession() {
    const { target } = this.#options;
    const { host, port, tls } = target;
    const authority = `${tls === 'on' ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
    return connectHttp2(authority, {
      createConnection: () => this.#openSocket(),
      settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
    });
  }

  #openSocket(): Socket {
    const { host, port, tls } = this.#options.target;
    const options = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS };
    if (tls === 'off') return connect(options);
    const secureContext = this.#secureContext === undefined ? {} : { secureContext: this.#secureContext };
    const servername = isIP(host) === 0 ? { servername: host } : {};
    return tlsConnect({ ...options, ...secureContext, ...servername, rejectUnauthorized: true, ALPNProtocols: ['h2'] });
  }

  /** Headers of the client are overruled by those that the user has configured. */
  #metadataFor(forwarded: Lane['headers']): Readonly<Record<string, string>> {
    const passed = forwarded === undefined ? {} : pickHeaders(Object.entries(forwarded), isForwardedMetadata);
    return { ...passed, ...this.#headers, ...this.#token?.show() };
  }

  #isOwn({ localAddress = '', remoteAddress = '', remotePort = 0 }: Socket): boolean {
    const reached = { kind: 'tcp', local: localAddress, remote: remoteAddress, port: remotePort } as const;
    return leadsBack(reached, this.#options.bound?.() ?? []);
  }

  readiness(): Readiness {
    return this.#reachability.readiness();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#reachability.close();
    const all = [...this.#connections];
    for (const [connection] of all) connection.close(SHUTTING_DOWN);
    await Promise.all(all.map(([, gone]) => gone));
  }

  killNow(): void {
    this.#isClosed = true;
    for (const [connection] of this.#connections) connection.carrier.destroy();
  }
}

/** Names that begin with `grpc-` are reserved. [gRPC over HTTP2, Custom-Metadata] */
function isMetadata(name: string): boolean {
  return isConfigurable(name) && !name.startsWith('grpc-');
}

function isForwardedMetadata(name: string): boolean {
  return isForwardTarget(name) && !name.startsWith('grpc-');
}
