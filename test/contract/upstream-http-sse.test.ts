import test from 'ava';
import { startHttpSse } from '../support/sdk-servers.ts';
import { dialHttpSse } from '../upstream/remote-dialers.ts';
import { behind } from './behind-http.ts';
import { testUpstreamContract } from './upstream-contract.ts';

testUpstreamContract(test, {
  name: 'HTTP+SSE',
  start: () => behind(startHttpSse(), dialHttpSse),
  deathEndsSession: true,
});
