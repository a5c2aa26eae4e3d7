import test from 'ava';
import { startStreamable } from '../support/sdk-servers.ts';
import { dialStreamable } from '../upstream/remote-dialers.ts';
import { behind } from './behind-http.ts';
import { testUpstreamContract } from './upstream-contract.ts';

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
