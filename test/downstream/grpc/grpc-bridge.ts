import type { ExecutionContext } from 'ava';
import { createGrpcListener } from '../../../src/bridge/grpc-listener.ts';
import type { HttpListenerConfig } from '../../../src/config/listener.ts';
import type { OnRefused } from '../../../src/downstream/listener/http-server.ts';
import { type GrpcClientOptions, GrpcSession } from '../../support/grpc-peers.ts';
import { type HttpHarness, type HttpHarnessOptions, startHttpHarness } from '../../support/http-harness.ts';

export interface GrpcBridgeOptions extends HttpHarnessOptions {
  readonly tls?: HttpListenerConfig['tls'];
  readonly onRefused?: OnRefused;
}

/** A listener for gRPC as the bridge composes it, on fake time, with a scripted server behind it. */
export async function openGrpcBridge(t: ExecutionContext, options: GrpcBridgeOptions = {}) {
  const harness: HttpHarness = await startHttpHarness(t, options);
  const { servers, deps, config } = harness;
  const listener = createGrpcListener({
    listener: {
      ...config,
      tls: options.tls,
      grpc: [{ address: { kind: 'tcp', host: '127.0.0.1', port: 0 }, segment: undefined }],
    },
    servers,
    ownMarks: () => ['mark'],
    onRefused: options.onRefused,
    deps,
  });
  const [bound] = await listener.listen();
  t.teardown(() => listener.close());
  const port = bound?.port ?? 0;
  const address = `127.0.0.1:${port}`;
  const open = (client: GrpcClientOptions = {}, at = address): GrpcSession => {
    const session = GrpcSession.open(at, client);
    t.teardown(() => session.close());
    return session;
  };
  return { ...harness, listener, port, address, open };
}
