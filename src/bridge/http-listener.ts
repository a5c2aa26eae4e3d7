import type { HttpListenerConfig } from '../config/listener.ts';
import type { Deps } from '../deps.ts';
import { LiveStreams } from '../downstream/http/response-writer.ts';
import {
  type CertificateSource,
  HttpServer,
  type OnRefused,
  SOCKET_LIMITS,
} from '../downstream/listener/http-server.ts';
import { Admission } from '../http/auth/callers.ts';
import { AccessPolicy } from '../http/server/access-policy.ts';
import { wordsOfHttp } from '../http/server/listen.ts';
import { boundAddress } from '../http/server/listen-addresses.ts';
import type { Authentication } from './create-authentication.ts';
import { ServerList, type ServerListParts } from './server-list.ts';

export interface HttpListenerOptions extends Pick<ServerListParts, 'dial' | 'looking' | 'replica'> {
  readonly listener: HttpListenerConfig;
  /** See AccessOptions. */
  readonly ownMarks: () => readonly string[];
  readonly authentication: Authentication;
  readonly certificate: CertificateSource | undefined;
  readonly onRefused: OnRefused | undefined;
  readonly socketLimits?: typeof SOCKET_LIMITS;
  readonly deps: Deps;
}

/** Serves clients of every era over HTTP: admission, routes and shutdown. */
export class HttpListener {
  readonly live: LiveStreams;
  readonly http: HttpServer;
  readonly servers: ServerList;

  constructor(options: HttpListenerOptions) {
    const { listener, ownMarks, authentication, certificate, onRefused, socketLimits, dial, looking, replica, deps } =
      options;
    this.live = new LiveStreams(deps.clock);
    this.servers = new ServerList({ listener, authentication, dial, looking, replica, live: this.live, deps });
    const bound = listener.addresses.map(boundAddress);
    const hosts = bound.flatMap((address) => (address.kind === 'tcp' ? [address.host] : []));
    const policy = new AccessPolicy({ addresses: hosts, ownMarks, ...listener.access });
    this.http = new HttpServer({
      addresses: listener.addresses,
      certificate,
      socketLimits: socketLimits ?? { ...SOCKET_LIMITS, maxHeaderBytes: listener.maxHeaderBytes },
      cors: policy,
      admission: new Admission(policy),
      // No web page can make a host name resolve to a socket, so the Host header is not checked there. Other signs of a
      // web page still count.
      socketAdmission: new Admission(new AccessPolicy({ addresses: 'any', ownMarks, ...listener.access })),
      router: this.servers,
      links: replica?.links,
      onRefused,
      deps,
      words: wordsOfHttp(listener.spelling),
    });
  }

  /** Tells clients and load balancers that the bridge is about to end. New requests are still served. */
  announceEnd(): void {
    this.servers.beginEnding();
    this.http.announceEnd();
  }

  /** Takes no new requests. Resolves when open calls have ended or the grace time is over. */
  async drain(graceMs: number): Promise<void> {
    this.http.stopAccepting();
    await this.servers.drain(graceMs);
  }

  /** Closes the streams, which stayed open for the last messages of the servers. */
  close(): void {
    this.live.close();
    this.http.close();
  }
}
