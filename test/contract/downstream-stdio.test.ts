import { PassThrough } from 'node:stream';
import test from 'ava';
import type { Deps } from '../../src/deps.ts';
import { StdioEndpoint } from '../../src/downstream/stdio/endpoint.ts';
import { BridgeError } from '../../src/errors.ts';
import { forEveryCaller } from '../../src/relay/dialer-adapters.ts';
import { SessionRegistry } from '../../src/relay/sessions/session-registry.ts';
import { createCalls } from '../support/calls.ts';
import { createFakeDeps } from '../support/fake-peers.ts';
import { FakeServer } from '../support/fake-server.ts';
import { initialize, textOf } from '../support/legacy-clients.ts';
import { type ContractClient, testDownstreamContract } from './downstream-contract.ts';
import { Inbox } from './inbox.ts';

async function connect(deps: Deps, server: FakeServer, sessions: SessionRegistry): Promise<ContractClient> {
  const [input, output, inbox] = [new PassThrough(), new PassThrough(), new Inbox()];
  const endpoint = new StdioEndpoint({
    input,
    output,
    sessions,
    deps,
    maxMessageBytes: 16 * 1024 * 1024,
    maxJsonDepth: 1000,
  });
  let rest: string[] = [];
  output.setEncoding('utf8');
  output.on('data', (text: string) => {
    const [end = '', ...lines] = text.split('\n').reverse();
    if (lines.length === 0) return rest.push(end);
    const [first = '', ...others] = lines.reverse();
    inbox.put([...rest, first].join(''));
    for (const line of others) inbox.put(line);
    rest = [end];
  });
  // The command line ends the session of a client that has gone.
  void endpoint.ended.then((end) => {
    if (end.kind === 'input') sessions.close(new BridgeError('ERR_SESSION_CLOSED', 'The client ended its input.'));
  });
  const send = (message: object | string): void => void input.write(`${textOf(message)}\n`);
  send(initialize());
  await inbox.next();
  return {
    connection: server.latest,
    send,
    next: () => inbox.next(),
    pause: () => void output.pause(),
    resume: () => void output.resume(),
    leave: () => void input.end(),
    over: endpoint.ended,
  };
}

testDownstreamContract(test, {
  name: 'stdio',
  async start() {
    const deps = createFakeDeps();
    const server = new FakeServer();
    const limits = {
      maxSessions: 10,
      sessionTimeoutMs: 60_000,
      calls: createCalls(deps.clock),
      requestTimeoutMs: 0,
    };
    const sessions = new SessionRegistry({ dialers: forEveryCaller(server), deps, ...limits });
    return { clock: deps.clock, sessions, connect: () => connect(deps, server, sessions) };
  },
});
