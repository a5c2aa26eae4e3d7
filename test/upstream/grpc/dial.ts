import type { GrpcTarget } from '../../../src/config/server.ts';
import { createGrpcConnector, type GrpcConnectorOptions } from '../../../src/upstream/grpc/connector.ts';
import { createTestDeps } from '../../process/collected-log.ts';

export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const NO_FILES = { caFile: undefined, certFile: undefined, keyFile: undefined };

type Options = Partial<Omit<GrpcConnectorOptions, 'target' | 'remote'>> & {
  readonly remote?: Partial<GrpcConnectorOptions['remote']>;
  readonly tls?: GrpcTarget['tls'];
};

/** A dialer to a port, and what it says in the log. */
export function dialGrpc(port: number, { remote, tls = 'off', ...options }: Options = {}) {
  const { deps, entries } = createTestDeps();
  const dialer = createGrpcConnector({
    target: { kind: 'grpc', host: '127.0.0.1', port, tls },
    remote: { headers: new Map(), bearerTokenFile: undefined, tls: NO_FILES, keepAliveMs: 0, ...remote },
    connectTimeoutMs: 10_000,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    failureLevel: 'warn',
    userAgent: 'test',
    deps,
    ...options,
  });
  return { dialer, entries };
}
