import type { ExecutionContext } from 'ava';
import type { SessionDialer } from '../../src/relay/ports.ts';
import { RelayedClient, type RelayedClientOptions } from '../contract/relayed-client.ts';

/** A client before `dialer`; everything is closed when the test is over. */
export function joinClient(
  t: ExecutionContext,
  server: { close(): Promise<void> },
  dialer: SessionDialer,
  options: RelayedClientOptions = {},
): RelayedClient {
  const client = new RelayedClient(dialer, options);
  t.teardown(async () => {
    client.close();
    await dialer.close();
    await server.close();
  });
  return client;
}

/** The same, after the handshake. */
export async function connectClient(...args: Parameters<typeof joinClient>): Promise<RelayedClient> {
  const client = joinClient(...args);
  await client.initialize();
  return client;
}
