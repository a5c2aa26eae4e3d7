import type { HttpListenerConfig } from '../config/listener.ts';
import type { Deps } from '../deps.ts';
import { GrpcListener, type GrpcListenerOptions } from '../downstream/grpc/listener.ts';
import { Admission } from '../http/auth/callers.ts';
import { AccessPolicy } from '../http/server/access-policy.ts';
import { CertificateFiles } from '../http/server/certificate-files.ts';
import { wordsOfGrpc } from '../http/server/listen.ts';
import type { ServerList } from './server-list.ts';

export interface GrpcListenerParts extends Pick<GrpcListenerOptions, 'onRefused'> {
  readonly listener: HttpListenerConfig;
  readonly servers: ServerList;
  /** See AccessOptions. */
  readonly ownMarks: () => readonly string[];
  readonly deps: Deps;
}

/** Creates the listener for clients over gRPC, which pass the same checks as requests over HTTP. */
export function createGrpcListener({ listener, servers, ownMarks, onRefused, deps }: GrpcListenerParts): GrpcListener {
  const { grpc, tls, access, maxHeaderBytes, spelling } = listener;
  const hosts = grpc.map(({ address }) => address.host);
  return new GrpcListener({
    places: grpc.map(({ address, segment }) => ({ address, route: servers.grpcRoute(segment) })),
    // A renewed certificate is reported only once, so each listener needs its own source.
    certificate: tls && new CertificateFiles({ ...tls, log: deps.log, clock: deps.clock }),
    admission: new Admission(new AccessPolicy({ addresses: hosts, ownMarks, ...access })),
    maxHeaderBytes,
    onRefused,
    deps,
    words: wordsOfGrpc(spelling),
  });
}
