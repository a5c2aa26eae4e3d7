import test from 'ava';
import { startWebSocketServer } from '../support/websocket-server.ts';
import { dialWebSocket } from '../upstream/remote-dialers.ts';
import { testUpstreamContract } from './upstream-contract.ts';

testUpstreamContract(test, {
  name: 'WebSocket',
  start: async () => {
    const server = await startWebSocketServer();
    const dialer = dialWebSocket(server.url);
    return {
      dialer,
      kill: () => server.stop(),
      close: async () => {
        await dialer.close();
        if (server.open.size > 0) await server.stop();
      },
    };
  },
  deathEndsSession: true,
});
