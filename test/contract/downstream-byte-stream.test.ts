import test from 'ava';
import { openStreamBridge } from '../downstream/byte-stream/stream-bridge.ts';
import { initialize, textOf } from '../support/legacy-clients.ts';
import { testDownstreamContract } from './downstream-contract.ts';

testDownstreamContract(test, {
  name: 'a byte stream',
  async start(t) {
    const { clock, server, sessions, open } = await openStreamBridge(t, { maxMessageBytes: 16 * 1024 * 1024 });
    return {
      clock,
      sessions,
      async connect() {
        const client = await open();
        const send = (message: object | string): void => client.write(`${textOf(message)}\n`);
        send(initialize());
        await client.next();
        return {
          connection: server.latest,
          send,
          next: () => client.next(),
          pause: () => void client.socket.pause(),
          resume: () => void client.socket.resume(),
          leave: () => client.end(),
          over: client.ended,
        };
      },
    };
  },
});
