import { once } from 'node:events';
import test from 'ava';
import { WebSocket } from 'ws';
import { type HttpHarness, startHttpHarness } from '../support/http-harness.ts';
import { initialize, textOf } from '../support/legacy-clients.ts';
import { type ContractClient, testDownstreamContract } from './downstream-contract.ts';
import { Inbox } from './inbox.ts';

async function connect({ port, server }: HttpHarness): Promise<ContractClient> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, 'mcp', { perMessageDeflate: false });
  const inbox = new Inbox();
  socket.on('message', (data) => inbox.put(data.toString()));
  const over = once(socket, 'close');
  await once(socket, 'open');
  const send = (message: object | string): void => socket.send(textOf(message));
  send(initialize());
  await inbox.next();
  return {
    connection: server.latest,
    send,
    next: () => inbox.next(),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    leave: () => socket.close(),
    over,
  };
}

testDownstreamContract(test, {
  name: 'WebSocket',
  async start(t) {
    const harness = await startHttpHarness(t);
    return { clock: harness.clock, sessions: harness.sessions, connect: () => connect(harness) };
  },
});
