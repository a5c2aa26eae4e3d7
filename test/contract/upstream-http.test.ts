import test from 'ava';
import type { UpstreamDialer } from '../../src/relay/ports.ts';
import type { SdkHttpServer } from '../support/sdk-servers.ts';
import { startHttpSse, startStreamable } from '../support/sdk-servers.ts';
import { dialHttpSse, dialStreamable } from '../upstream/remote-dialers.ts';
import { type ContractServer, testUpstreamContract } from './upstream-contract.ts';

async function behind(started: Promise<SdkHttpServer>, dial: (url: URL) => UpstreamDialer): Promise<ContractServer> {
  const server = await started;
  const dialer = dial(server.url);
  return {
    dialer,
    kill: () => server.stop(),
    close: async () => {
      await dialer.close();
      await server.close();
    },
  };
}

testUpstreamContract(test, {
  name: 'Streamable HTTP with sessions',
  start: () => behind(startStreamable(), dialStreamable),
  deathEndsSession: false,
});

testUpstreamContract(test, {
  name: 'Streamable HTTP with sessions and resumable streams',
  start: () => behind(startStreamable({ hasEventStore: true }), dialStreamable),
  deathEndsSession: false,
});

testUpstreamContract(test, {
  name: 'Streamable HTTP with sessions and JSON answers',
  start: () => behind(startStreamable({ isJson: true }), dialStreamable),
  // In JSON nothing fits but the answer.
  lacks: new Set(['progress', 'requests-to-client']),
  deathEndsSession: false,
});

testUpstreamContract(test, {
  name: 'Streamable HTTP without sessions',
  start: () => behind(startStreamable({ hasSessions: false }), dialStreamable),
  // Each POST meets a new server instance.
  lacks: new Set(['unsolicited-messages', 'requests-to-client', 'state']),
  deathEndsSession: false,
});

testUpstreamContract(test, {
  name: 'HTTP+SSE',
  start: () => behind(startHttpSse(), dialHttpSse),
  deathEndsSession: true,
});
