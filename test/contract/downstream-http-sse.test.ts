import test from 'ava';
import { type HttpFace, startHttpFace } from '../support/http-face.ts';
import { openInitializedSse } from '../support/legacy-clients.ts';
import { type ContractClient, testDownstreamContract } from './downstream-contract.ts';

async function connect(face: HttpFace): Promise<ContractClient> {
  const { connection, stream, post } = await openInitializedSse(face);
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
    const face = await startHttpFace(t);
    return { clock: face.clock, sessions: face.sessions, connect: () => connect(face) };
  },
});
