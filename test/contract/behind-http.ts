import type { SessionDialer } from '../../src/relay/ports.ts';
import type { SdkHttpServer } from '../support/sdk-servers.ts';
import type { ContractServer } from './upstream-contract.ts';

/** The contract server over HTTP, and a dialer to it. */
export async function behind(
  started: Promise<SdkHttpServer>,
  dial: (url: URL) => SessionDialer,
): Promise<ContractServer> {
  const server = await started;
  const dialer = dial(server.url);
  return {
    dialer,
    kill: () => server.stop(),
    close: async () => {
      await dialer.close();
      await server.close();
    },
  };
}
