import type { Connector } from '../connection.ts';
import { RemoteConnector } from '../remote/remote-connector.ts';
import type { RemoteConnectorOptions } from '../remote/remote-environment.ts';
import { HttpSseLink } from './link.ts';

/** Creates sessions with a server over HTTP+SSE, the transport of revision 2024-11-05. */
export function createHttpSseConnector(options: RemoteConnectorOptions): Connector {
  return new RemoteConnector(options, (shared) => new HttpSseLink(shared), { transport: 'http-sse', era: 'legacy' });
}
