import { CallsOverLinks } from '../../relay/call-over-link.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { CallContext, ServerListener, UpstreamDialer } from '../../relay/ports.ts';
import { asSessionDialer, type Connection } from '../connection.ts';
import { RemoteConnector } from '../remote/remote-connector.ts';
import type { RemoteConnectorOptions } from '../remote/remote-environment.ts';
import { StatelessLink } from './link.ts';
import { StatelessServer } from './server-state.ts';

export interface StatelessDialerOptions extends RemoteConnectorOptions {
  /**
   * Called when the server rejects a request in a way that no modern server does, which may mean that the server has
   * been replaced. Called before the rejection is passed on.
   */
  readonly doubted: (exchange: Exchange | undefined) => void;
}

/** Creates links to a modern server over Streamable HTTP, which has no sessions. */
export function createStatelessDialer({ doubted, ...options }: StatelessDialerOptions): UpstreamDialer {
  const server = new StatelessServer(options.deps, doubted);
  const connections = new RemoteConnector(options, (shared, client) => {
    // The requests of a session are translated between the eras, and their callers are not known.
    const context = client.kind === 'calls' ? client.context : undefined;
    const environment = { ...shared.environment, forwarded: context?.headers };
    return new StatelessLink({ ...shared, environment, tools: server.toolsOf(context?.principal), server });
  });
  const dialCalls = (listener: ServerListener, context: CallContext): Connection => {
    const connection = connections.connectCalls(context);
    connection.listener = listener;
    return connection;
  };
  const calls = new CallsOverLinks((listener, { principal, lane }) =>
    dialCalls(listener, { principal, headers: lane.headers }),
  );
  return { ...asSessionDialer(connections), dialCalls, callServer: () => calls };
}
