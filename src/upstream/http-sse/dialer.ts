import type { Connector } from '../connection.ts';
import { RemoteDialer } from '../remote/remote-dialer.ts';
import type { RemoteDialerOptions } from '../remote/remote-environment.ts';
import { HttpSseLink } from './link.ts';

/** Creates sessions with a server over HTTP+SSE, the transport of revision 2024-11-05. */
export function createHttpSseDialer(options: RemoteDialerOptions): Connector {
  return new RemoteDialer(options, (shared) => new HttpSseLink(shared));
}
