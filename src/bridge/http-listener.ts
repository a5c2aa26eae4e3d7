import type { HttpListenerConfig } from '../config.ts';
import type { Deps } from '../deps.ts';
import { Admission } from '../downstream/listener/admission.ts';
import { type CertificateSource, HttpServer, SOCKET_LIMITS } from '../downstream/listener/http-server.ts';
import { LiveStreams } from '../downstream/stream/live-streams.ts';
import { AccessPolicy } from '../http/server/access-policy.ts';
import type { Authentication } from './create-authentication.ts';
import { ServerList, type ServerListParts } from './server-list.ts';

export interface HttpListenerOptions extends Pick<ServerListParts, 'dial' | 'looking' | 'membership'> {
  readonly listener: HttpListenerConfig;
  readonly authentication: Authentication;
  readonly certificate: CertificateSource | undefined;
  readonly socketLimits?: typeof SOCKET_LIMITS;
  readonly deps: Deps;
}

/** Clients of every era on one port: who may come in, what is served where, and how it all ends. */
export class HttpListener {
  readonly live: LiveStreams;
  readonly http: HttpServer;
  readonly servers: ServerList;

  constructor(options: HttpListenerOptions) {
    const { listener, authentication, certificate, socketLimits, dial, looking, membership, deps } = options;
    this.live = new LiveStreams(deps.clock);
    this.servers = new ServerList({ listener, authentication, dial, looking, membership, live: this.live, deps });
    const policy = new AccessPolicy({ host: listener.host, ...listener.access });
    this.http = new HttpServer({
      host: listener.host,
      port: listener.port,
      certificate,
      socketLimits: socketLimits ?? { ...SOCKET_LIMITS, maxHeaderBytes: listener.maxHeaderBytes },
      cors: policy,
      admission: new Admission(policy),
      router: this.servers,
      hops: membership?.hops,
      deps,
    });
  }

  /** Takes nothing new, and resolves when what is open has ended or the grace time is over. */
  async drain(graceMs: number): Promise<void> {
    this.http.stopAccepting();
    await this.servers.drain(graceMs);
  }

  /** Cuts the streams, which last until now for what the servers say at their end. */
  close(): void {
    this.live.close();
    this.http.close();
  }
}
