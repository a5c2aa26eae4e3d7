import test from 'ava';
import { renderLine, renderPage, renderSummary } from '../../../scripts/hosts/report.ts';
import type { Outcome, Result } from '../../../scripts/hosts/results.ts';

const client = { name: 'host-client', version: '1.1', revision: '2025-11-25', transport: 'http-sse' };

function result(outcome: Outcome, parts: Partial<Result> = {}): Result {
  return { host: 'Host', hostVersion: '1.0', carrier: 'http-sse', configuredBy: '`snippet`', outcome, ...parts };
}

const RESULTS = [
  result({ kind: 'connected', words: '✔ Connected', client }),
  result({ kind: 'connected', words: '3 tools', client }, { carrier: 'streamable-http' }),
  result({ kind: 'failed', words: 'a | b' }),
  result({ kind: 'skipped', reason: 'no registry' }, { hostVersion: '', configuredBy: '' }),
];

test('a line says which host, how, and what came of it', (t) => {
  t.deepEqual(RESULTS.map(renderLine), [
    'Host 1.0 over HTTP+SSE, by snippet: connected as host-client 1.1, 2025-11-25',
    'Host 1.0 over Streamable HTTP, by snippet: connected: 3 tools as host-client 1.1, 2025-11-25',
    'Host 1.0 over HTTP+SSE, by snippet: failed: a | b',
    'Host over HTTP+SSE: skipped: no registry',
  ]);
  t.is(renderSummary(RESULTS), '2 connected, 1 failed, 1 skipped');
});

test('the page has a row for each result, the date and what was asked', (t) => {
  const page = renderPage(RESULTS, new Map([['Host', '`host mcp list`']]), { date: '2026-11-24', version: '0.1.0' });
  t.true(page.includes('| Host 1.0 | HTTP+SSE | `snippet` | connected | host-client 1.1 | 2025-11-25 |\n'));
  t.true(page.includes('| Host 1.0 | HTTP+SSE | `snippet` | failed: a \\| b | – | – |\n'));
  t.true(page.includes('| Host | HTTP+SSE | – | skipped: no registry | – | – |\n'));
  t.regex(page, /on 2026-11-24 with mcp-portage 0\.1\.0/);
  t.true(page.includes('- Host: `host mcp list`\n'));
});
