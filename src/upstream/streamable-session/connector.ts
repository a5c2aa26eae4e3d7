import { SessionState } from '../../relay/sessions/session-state.ts';
import type { Connector } from '../connection.ts';
import { endSession } from '../remote/end-session.ts';
import { type RemoteClient, RemoteConnector, type RemoteLinkOptions } from '../remote/remote-connector.ts';
import type { RemoteConnectorOptions } from '../remote/remote-environment.ts';
import type { SessionKey } from '../remote/session-key.ts';
import { StreamableLink } from './link.ts';

/** Creates sessions with a server over Streamable HTTP, in all revisions that have sessions. */
export function createStreamableConnector(options: RemoteConnectorOptions): Connector {
  return new RemoteConnector(options, connect, { transport: 'streamable-http', era: 'legacy' });
}

function connect(shared: RemoteLinkOptions, client: RemoteClient): StreamableLink {
  const session = client.kind === 'session' ? client.session : new SessionState();
  const { http, url, cookies, caller, log } = shared.environment;
  const end = async ({ headers }: SessionKey): Promise<void> => {
    const status = await endSession({ http, url, cookies, forwarded: caller.latest }, headers);
    log.debug({ status }, 'told the server that the session is over');
  };
  return new StreamableLink({
    ...shared,
    session,
    left: (key) => shared.left(key.id === undefined || session.isHandedOver ? undefined : end(key)),
  });
}
