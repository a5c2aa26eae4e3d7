import test from 'ava';
import { openGrpcBridge } from '../downstream/grpc/grpc-bridge.ts';
import { initialize } from '../support/legacy-clients.ts';
import { testDownstreamContract } from './downstream-contract.ts';

testDownstreamContract(test, {
  name: 'gRPC',
  async start(t) {
    const { clock, sessions, server, open } = await openGrpcBridge(t);
    return {
      clock,
      sessions,
      async connect() {
        const session = open();
        session.send(initialize());
        await session.next();
        return {
          connection: server.latest,
          send: (message) => session.send(message),
          next: () => session.next(),
          pause: () => void session.stream.pause(),
          resume: () => void session.stream.resume(),
          leave: () => void session.stream.end(),
          over: session.ended,
        };
      },
    };
  },
});
