import test from 'ava';
import fc from 'fast-check';
import type { SessionDialer } from '../../src/relay/ports.ts';
import { resultFrame } from '../../src/wire/write-message.ts';
import { FakeLink } from '../support/fake-peers.ts';
import { startHttpHarness } from '../support/http-harness.ts';
import { POST_HEADERS } from '../support/legacy-clients.ts';
import { ENVELOPE, META, postBody, REVISION } from './streamable-stateless/modern-posts.ts';

/** Answers every request at once, within `send`. */
const answering: SessionDialer = {
  name: 'answering',
  dial(listener) {
    const link = new FakeLink();
    link.onSend = ({ frame }) => {
      if (frame.kind === 'request') listener.fromServer(resultFrame(frame.id ?? 0, {}));
    };
    return link;
  },
  readiness: () => ({ state: 'ready' }),
  close: async () => {},
  killNow() {},
};

const odd = fc.constantFrom<unknown>(null, 0, '', [], {}, '2026-07-28', 'v999', true);
const meta = fc.oneof(
  { weight: 4, arbitrary: fc.constant(ENVELOPE) },
  odd,
  fc.record(
    {
      [`${META}protocolVersion`]: fc.oneof(fc.constant(REVISION), odd),
      [`${META}clientCapabilities`]: fc.oneof(fc.constant({}), odd),
      [`${META}clientInfo`]: odd,
      [`${META}logLevel`]: odd,
      progressToken: odd,
    },
    { requiredKeys: [] },
  ),
);
const params = fc.oneof(
  odd,
  fc.record({ name: fc.oneof(fc.constant('x'), odd), uri: odd, _meta: meta }, { requiredKeys: [] }),
);
const method = fc.constantFrom<unknown>(
  ...['tools/call', 'tools/list', 'server/discover', 'subscriptions/listen', 'initialize', 'ping', 'vendor/x', 'x', 7],
);
const message = fc.record(
  {
    jsonrpc: fc.constantFrom('2.0', '2.0', '1.0'),
    id: fc.oneof(fc.nat(), odd),
    method,
    params,
    result: odd,
    error: odd,
  },
  { requiredKeys: ['jsonrpc'] },
);
/** A request, or a notification. */
const modernMessage = fc.record(
  {
    jsonrpc: fc.constant('2.0'),
    id: fc.nat(),
    method,
    params: fc.record({ name: fc.constant('x'), _meta: meta }),
  },
  { requiredKeys: ['jsonrpc', 'method', 'params'] },
);
const body = fc.oneof(
  { weight: 8, arbitrary: message },
  { weight: 4, arbitrary: modernMessage },
  { weight: 1, arbitrary: fc.array(message, { maxLength: 3 }) },
  { weight: 1, arbitrary: odd },
);
const headers = fc.record(
  {
    'MCP-Protocol-Version': fc.constantFrom(REVISION, '2025-11-25', '2025-03-26', 'v999', ''),
    'Mcp-Method': fc.constantFrom('tools/call', 'tools/list', 'server/discover', 'vendor/x', ''),
    'Mcp-Name': fc.constantFrom('x', '=?base64?eA==?=', '=?base64?', ''),
    'Mcp-Session-Id': fc.constantFrom('', 'unknown'),
    Accept: fc.constantFrom(POST_HEADERS.Accept, 'text/event-stream, application/json', '*/*'),
  },
  { requiredKeys: [] },
);

/** What the body says, said again. */
function repeat(posted: unknown): Readonly<Record<string, string>> {
  const { method } = (posted ?? {}) as { method?: unknown };
  return { 'MCP-Protocol-Version': REVISION, 'Mcp-Method': String(method), 'Mcp-Name': 'x' };
}

test('whatever is posted gets an answer, and never one of a bridge that failed', async (t) => {
  const harness = await startHttpHarness(t, { modernDialer: answering, maxSessions: 1000 });
  harness.server.scripts.set('initialize', (request, connection) => connection.refuse(request, -32602, 'not now'));
  const seen = new Set<number>();
  await fc.assert(
    fc.asyncProperty(body, headers, fc.boolean(), async (posted, odds, isHonest) => {
      const given = isHonest ? repeat(posted) : odds;
      const answer = await postBody(harness, JSON.stringify(posted), given);
      await answer.text();
      seen.add(answer.status);
      return answer.status < 500;
    }),
    { numRuns: 500 },
  );
  t.is(harness.modernCalls.size, 0);
  t.false(harness.logLines.some((line) => line.includes('failed internally')));
  for (const status of [200, 202, 400, 404]) t.true(seen.has(status), String(status));
});
