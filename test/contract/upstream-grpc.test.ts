import test from 'ava';
import { asSessionDialer } from '../../src/upstream/connection.ts';
import { startGrpcServer } from '../support/grpc-peers.ts';
import { dialGrpc } from '../upstream/grpc/dial.ts';
import { testUpstreamContract } from './upstream-contract.ts';

testUpstreamContract(test, {
  name: 'gRPC',
  start: async () => {
    const server = await startGrpcServer();
    const dialer = asSessionDialer(dialGrpc(server.port).dialer);
    return {
      dialer,
      kill: () => server.stop(),
      close: async () => {
        await dialer.close();
        server.stop();
      },
    };
  },
  deathEndsSession: true,
});
