import type { ExecutionContext } from 'ava';
import type { BoundAddress } from '../../../src/config/listener.ts';
import type { Deps } from '../../../src/deps.ts';
import { ByteStreamClients } from '../../../src/downstream/byte-stream/clients.ts';
import { StreamListener, type StreamListenerOptions } from '../../../src/downstream/byte-stream/listener.ts';
import { SHUTTING_DOWN } from '../../../src/errors.ts';
import { wordsOfStreams } from '../../../src/http/server/listen.ts';
import { BodyCapacity } from '../../../src/http/server/read-body.ts';
import { forEveryCaller } from '../../../src/relay/dialer-adapters.ts';
import { SessionRegistry } from '../../../src/relay/sessions/session-registry.ts';
import { collectLog } from '../../process/collected-log.ts';
import { createCalls } from '../../support/calls.ts';
import { createFakeDeps } from '../../support/fake-peers.ts';
import { FakeServer } from '../../support/fake-server.ts';
import { LineClient } from '../../support/line-client.ts';

export interface StreamBridgeOptions extends Partial<Pick<StreamListenerOptions, 'certificate'>> {
  readonly address?: BoundAddress;
  readonly maxMessageBytes?: number;
  readonly maxSessions?: number;
}

/** A listener for byte streams on fake time, with a scripted server behind it; gone when the test ends. */
export async function openStreamBridge(t: ExecutionContext, options: StreamBridgeOptions = {}) {
  const {
    address = { kind: 'tcp', host: '127.0.0.1', port: 0 },
    maxMessageBytes = 1024 * 1024,
    maxSessions = 1000,
    certificate,
  } = options;
  const { log, entries } = collectLog();
  const fake = createFakeDeps();
  const deps: Deps = { ...fake, log };
  const server = new FakeServer();
  const sessions = new SessionRegistry({
    dialers: forEveryCaller(server),
    deps,
    maxSessions,
    sessionTimeoutMs: 24 * 3_600_000,
    calls: createCalls(deps.clock),
    requestTimeoutMs: 0,
  });
  const clients = new ByteStreamClients({
    sessions,
    maxMessageBytes,
    maxJsonDepth: 1000,
    untakenTimeoutMs: 4000,
    bodies: new BodyCapacity(maxMessageBytes).share(undefined),
    deps,
  });
  const listener = new StreamListener({
    places: [{ address, accept: (socket, reach) => clients.add(socket, reach) }],
    certificate,
    deps,
    words: wordsOfStreams('flags'),
  });
  const [bound] = await listener.listen();
  t.teardown(() => {
    clients.close(SHUTTING_DOWN);
    sessions.close(SHUTTING_DOWN);
    listener.close();
  });
  const port = bound?.kind === 'tcp' ? bound.port : 0;
  const open = async (): Promise<LineClient> => {
    const client = await LineClient.connect(bound?.kind === 'socket' ? { path: bound.path } : { port });
    t.teardown(() => client.socket.destroy());
    return client;
  };
  return { clock: fake.clock, entries, server, sessions, clients, listener, port, open };
}
