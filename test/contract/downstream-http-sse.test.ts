import test from 'ava';
import { type HttpHarness, startHttpHarness } from '../support/http-harness.ts';
import { openInitializedSse } from '../support/legacy-clients.ts';
import { type ContractClient, testDownstreamContract } from './downstream-contract.ts';

async function connect(harness: HttpHarness): Promise<ContractClient> {
  const { connection, stream, post } = await openInitializedSse(harness);
  return {
    connection,
    // A connection may end with the session before its 202 has been read.
    send: (message) =>
      void post(message)
        .then((answer) => answer.text())
        .catch(() => undefined),
    next: async () => (await stream.next()).data,
    pause: () => stream.pause(),
    resume: () => stream.resume(),
    leave: () => stream.leave(),
    over: stream.closed,
  };
}

testDownstreamContract(test, {
  name: 'HTTP+SSE',
  async start(t) {
    const harness = await startHttpHarness(t);
    return { clock: harness.clock, sessions: harness.sessions, connect: () => connect(harness) };
  },
});
