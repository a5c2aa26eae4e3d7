import { SHUTTING_DOWN } from '../../errors.ts';
import type { Call } from '../../relay/call.ts';
import { CallsOverLinks } from '../../relay/call-over-link.ts';
import type { UpstreamDialer } from '../../relay/ports.ts';
import { asSessionDialer } from '../connection.ts';
import { type ConnectRemote, RemoteConnector } from '../remote/remote-connector.ts';
import type { RemoteConnectorOptions } from '../remote/remote-environment.ts';
import { StatelessLink } from './link.ts';
import { StatelessServer } from './server-state.ts';
import { SoleCalls } from './sole-call.ts';

export interface StatelessDialerOptions extends RemoteConnectorOptions {
  /**
   * Called when the server rejects a request in a way that no modern server does, which may mean that the server has
   * been replaced. Called before the rejection is passed on.
   */
  readonly doubted: (call: Call | undefined) => void;
}

/** Creates the dialer of a modern server over Streamable HTTP, which has no sessions. */
export function createStatelessDialer({ doubted, ...options }: StatelessDialerOptions): UpstreamDialer {
  const connect: ConnectRemote = (link, client) => {
    // The requests of a session are translated between the eras, and their callers are not known.
    const context = client.kind === 'calls' ? client.context : undefined;
    return new StatelessLink({
      ...link,
      forwarded: context?.headers,
      tools: server.toolsOf(context?.principal),
      server,
    });
  };
  const connections = new RemoteConnector(options, connect, { transport: 'streamable-http', era: 'modern' });
  const { environment } = connections;
  const server = new StatelessServer({ environment, reachable: (error) => connections.noteReachable(error), doubted });
  const calls = new SoleCalls(server);
  const isWatched = options.createGuard !== undefined || options.taps !== undefined;
  // Only connections are guarded and recorded, so each request gets one.
  const watchedCalls = new CallsOverLinks((owner, call) =>
    connectCalls(owner, { principal: call.principal, headers: call.lane.headers }),
  );
  const sessions = asSessionDialer(connections);
  const connectCalls: UpstreamDialer['dialCalls'] = (listener, context) => {
    const connection = connections.connectCalls(context);
    connection.listener = listener;
    return connection;
  };
  return {
    ...sessions,
    dialCalls: connectCalls,
    callServer() {
      connections.checkOpen();
      return isWatched ? watchedCalls : calls;
    },
    close() {
      calls.close(SHUTTING_DOWN);
      return sessions.close();
    },
  };
}
