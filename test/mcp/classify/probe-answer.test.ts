import test from 'ava';
import {
  classifyInitialize,
  classifyProbe,
  type HttpStatus,
  type InitializeVerdict,
  isForeignRefusal,
  type ProbeContext,
  type ProbeOutcome,
  type ProbeVerdict,
} from '../../../src/mcp/classify/probe-answer.ts';
import { createDiscoverRequest, modernHeaders, parseDiscovery } from '../../../src/mcp/vocabulary/discover.ts';
import { eraOf, findCommonModern } from '../../../src/mcp/vocabulary/revisions.ts';

const MODERN = '2026-07-28';
const FUTURE = '2027-03-01';

const firm: ProbeVerdict = { kind: 'legacy', confidence: 'firm', respawn: false };
const weak: ProbeVerdict = { kind: 'legacy', confidence: 'weak', respawn: false };
const modern: ProbeVerdict = { kind: 'modern', revision: MODERN, isDraft: false };
const draft: ProbeVerdict = { kind: 'modern', revision: MODERN, isDraft: true };

const http = (status: number, retryAfterMs?: number): HttpStatus => ({ status, retryAfterMs });
const result = (value: unknown): ProbeOutcome => ({ kind: 'result', result: value });
const discovered = (...supportedVersions: string[]) => result({ supportedVersions, capabilities: {} });
const status = (code: number, retryAfterMs?: number): ProbeOutcome => ({
  kind: 'status',
  http: http(code, retryAfterMs),
});

interface ErrorParts {
  readonly data?: unknown;
  readonly http?: HttpStatus;
}

const error = (code: number, parts: ErrorParts = {}): ProbeOutcome => ({
  kind: 'error',
  error: { code, message: 'no', ...(parts.data === undefined ? {} : { data: parts.data }) },
  http: parts.http,
});

interface Row {
  readonly saw: string;
  readonly outcome: ProbeOutcome;
  readonly verdict: ProbeVerdict;
  /** Where a row holds for one of them only. */
  readonly carrier?: 'pipe' | 'http';
  readonly isRetry?: true;
}

const rows: readonly Row[] = [
  // PROTOCOL B1, top to bottom
  { saw: 'a DiscoverResult with a common modern revision', outcome: discovered(MODERN), verdict: modern },
  { saw: 'one among others', outcome: discovered('2025-11-25', FUTURE, MODERN), verdict: modern },
  {
    saw: 'one with cache hints and resultType',
    outcome: result({ supportedVersions: [MODERN], resultType: 'complete', ttlMs: 5, cacheScope: 'public' }),
    verdict: modern,
  },
  { saw: 'a DiscoverResult with legacy revisions only', outcome: discovered('2025-06-18'), verdict: firm },
  { saw: 'one with a legacy and a future revision', outcome: discovered('2025-11-25', FUTURE), verdict: firm },
  {
    saw: 'a DiscoverResult with future revisions only',
    outcome: discovered(FUTURE),
    verdict: { kind: 'no-common-revision', supported: [FUTURE] },
  },
  { saw: 'a DiscoverResult that lists nothing', outcome: discovered(), verdict: firm },
  { saw: 'a result that is no DiscoverResult', outcome: result({}), verdict: firm },
  { saw: 'a result that is no object', outcome: result(null), verdict: firm },
  { saw: 'a list of things that are no strings', outcome: result({ supportedVersions: [20260728] }), verdict: firm },
  {
    saw: '-32022 with a common modern revision',
    outcome: error(-32022, { data: { supported: [MODERN], requested: FUTURE }, http: http(400) }),
    verdict: { kind: 'modern-retry', revision: MODERN },
  },
  {
    saw: '-32022 once more after the corrected attempt',
    outcome: error(-32022, { data: { supported: [MODERN] }, http: http(400) }),
    isRetry: true,
    verdict: { kind: 'no-common-revision', supported: [MODERN] },
  },
  {
    saw: '-32022 with legacy revisions only',
    outcome: error(-32022, { data: { supported: ['2025-11-25', '2024-11-05'] }, http: http(400) }),
    verdict: firm,
  },
  {
    saw: '-32022 with other modern revisions only',
    outcome: error(-32022, { data: { supported: [FUTURE] }, http: http(400) }),
    verdict: { kind: 'no-common-revision', supported: [FUTURE] },
  },
  { saw: '-32022 without a list', outcome: error(-32022, { http: http(400) }), verdict: firm },
  { saw: '-32022 with an empty list', outcome: error(-32022, { data: { supported: [] } }), verdict: firm },
  { saw: '-32022 with a list of numbers', outcome: error(-32022, { data: { supported: [1] } }), verdict: firm },
  {
    saw: '-32020 on 400',
    carrier: 'http',
    outcome: error(-32020, { http: http(400) }),
    verdict: { kind: 'headers-lost' },
  },
  {
    saw: '-32020 on 400 twice',
    carrier: 'http',
    outcome: error(-32020, { http: http(400) }),
    isRetry: true,
    verdict: weak,
  },
  { saw: '-32020 on 200', carrier: 'http', outcome: error(-32020, { http: http(200) }), verdict: firm },
  { saw: '-32020 where there are no headers', carrier: 'pipe', outcome: error(-32020), verdict: firm },
  {
    saw: '-32021 on 400 with the capabilities it wants',
    outcome: error(-32021, { data: { requiredCapabilities: { elicitation: {} } }, http: http(400) }),
    verdict: modern,
  },
  {
    saw: '-32021 over stdio with the capabilities it wants',
    carrier: 'pipe',
    outcome: error(-32021, { data: { requiredCapabilities: {} } }),
    verdict: modern,
  },
  {
    saw: '-32021 on 200',
    carrier: 'http',
    outcome: error(-32021, { data: { requiredCapabilities: {} }, http: http(200) }),
    verdict: firm,
  },
  {
    saw: '-32021 with a list instead of an object',
    outcome: error(-32021, { data: { requiredCapabilities: ['elicitation'] }, http: http(400) }),
    verdict: firm,
  },
  { saw: '-32601 on 404', carrier: 'http', outcome: error(-32601, { http: http(404) }), verdict: firm },
  ...[-32001, -32003, -32004].flatMap((code): Row[] => [
    {
      saw: `the draft code ${code} with a common modern revision`,
      outcome: error(code, { data: { supported: ['2025-11-25', MODERN] }, http: http(400) }),
      verdict: draft,
    },
    {
      saw: `the draft code ${code} with a future revision`,
      outcome: error(code, { data: { supported: [FUTURE] }, http: http(400) }),
      verdict: { kind: 'no-common-revision', supported: [FUTURE] },
    },
    {
      saw: `${code} with legacy revisions`,
      outcome: error(code, { data: { supported: ['2025-11-25'] }, http: http(400) }),
      verdict: firm,
    },
    { saw: `a plain ${code} (session not found)`, outcome: error(code, { http: http(404) }), verdict: firm },
  ]),
  ...[-32600, -32601, -32602, -32603, -32000, -32002, 0, 1].map(
    (code): Row => ({ saw: `the error ${code}`, outcome: error(code), verdict: firm }),
  ),
  // PROTOCOL B2
  { saw: 'silence of a process', carrier: 'pipe', outcome: { kind: 'silence' }, verdict: firm },
  {
    saw: 'the end of the process',
    carrier: 'pipe',
    outcome: { kind: 'exited' },
    verdict: { kind: 'legacy', confidence: 'firm', respawn: true },
  },
  // PROTOCOL B3
  ...[400, 404, 405, 406, 415, 422, 410, 302, 501].map(
    (code): Row => ({ saw: `a bare ${code}`, carrier: 'http', outcome: status(code), verdict: firm }),
  ),
  { saw: 'a page of HTML', carrier: 'http', outcome: status(200), verdict: firm },
  ...[401, 403, 407].flatMap((code): Row[] => [
    { saw: `a bare ${code}`, carrier: 'http', outcome: status(code), verdict: { kind: 'unauthorized', status: code } },
    {
      saw: `${code} with a message`,
      carrier: 'http',
      outcome: error(-32022, { data: { supported: [MODERN] }, http: http(code) }),
      verdict: { kind: 'unauthorized', status: code },
    },
  ]),
  { saw: '408', carrier: 'http', outcome: status(408), verdict: { kind: 'busy', retryAfterMs: undefined } },
  {
    saw: '429 with Retry-After',
    carrier: 'http',
    outcome: status(429, 2000),
    verdict: { kind: 'busy', retryAfterMs: 2000 },
  },
  {
    saw: '503 with Retry-After and a message',
    carrier: 'http',
    outcome: error(-32000, { http: http(503, 1000) }),
    verdict: { kind: 'busy', retryAfterMs: 1000 },
  },
  ...[500, 502, 503, 504].map(
    (code): Row => ({ saw: `a bare ${code}`, carrier: 'http', outcome: status(code), verdict: { kind: 'failing' } }),
  ),
  { saw: 'silence', carrier: 'http', outcome: { kind: 'silence' }, verdict: { kind: 'failing' } },
  { saw: 'a broken connection', carrier: 'http', outcome: { kind: 'lost' }, verdict: { kind: 'failing' } },
  {
    saw: 'a connection that ends',
    carrier: 'pipe',
    outcome: { kind: 'lost' },
    verdict: { kind: 'legacy', confidence: 'firm', respawn: true },
  },
  { saw: 'no connection', carrier: 'http', outcome: { kind: 'unreachable' }, verdict: { kind: 'unreachable' } },
  ...[202, 204].map(
    (code): Row => ({
      saw: `${code} without an answer`,
      carrier: 'http',
      outcome: status(code),
      verdict: { kind: 'not-answering' },
    }),
  ),
];

for (const row of rows) {
  for (const carrier of row.carrier === undefined ? (['pipe', 'http'] as const) : [row.carrier]) {
    const title = `discover over ${carrier}: ${row.saw} means ${describe(row.verdict)}`;
    test(title, (t) => {
      const context: ProbeContext = { carrier, requested: MODERN, isRetry: row.isRetry ?? false };
      // Statuses belong to HTTP; the same error on a pipe comes without.
      const outcome: ProbeOutcome =
        carrier === 'pipe' && row.outcome.kind === 'error' ? { ...row.outcome, http: undefined } : row.outcome;
      t.deepEqual(classifyProbe(outcome, context), row.verdict);
    });
  }
}

test('a capability error to a future revision means the newest revision spoken here', (t) => {
  const outcome = error(-32021, { data: { requiredCapabilities: {} } });
  t.deepEqual(classifyProbe(outcome, { carrier: 'pipe', requested: FUTURE, isRetry: false }), modern);
});

const initializeRows: readonly [saw: string, outcome: ProbeOutcome, verdict: InitializeVerdict][] = [
  [
    'a result that names a revision',
    result({ protocolVersion: '2025-06-18' }),
    { kind: 'accepted', revision: '2025-06-18' },
  ],
  ['a result that names none', result({}), { kind: 'accepted', revision: undefined }],
  [
    '-32022 with modern revisions only',
    error(-32022, { data: { supported: [MODERN] }, http: http(400) }),
    { kind: 'modern', supported: [MODERN] },
  ],
  [
    '-32022 with a legacy revision among them',
    error(-32022, { data: { supported: [MODERN, '2024-11-05'] }, http: http(200) }),
    { kind: 'refused' },
  ],
  ['an error on 200', error(-32602, { http: http(200) }), { kind: 'refused' }],
  ['an error over stdio', error(-32601), { kind: 'refused' }],
  ['an error on 400', error(-32000, { http: http(400) }), { kind: 'elsewhere' }],
  ['an error on 404', error(-32601, { http: http(404) }), { kind: 'elsewhere' }],
  ['a bare 405', status(405), { kind: 'elsewhere' }],
  ['a bare 501', status(501), { kind: 'elsewhere' }],
  ['202 without an answer', status(202), { kind: 'elsewhere' }],
  ['a page of HTML', status(200), { kind: 'elsewhere' }],
  ['401', status(401), { kind: 'unauthorized', status: 401 }],
  ['403 with a message', error(-32000, { http: http(403) }), { kind: 'unauthorized', status: 403 }],
  ['429 with Retry-After', status(429, 500), { kind: 'busy', retryAfterMs: 500 }],
  ['500', status(500), { kind: 'failing' }],
  ['silence', { kind: 'silence' }, { kind: 'failing' }],
  ['a broken connection', { kind: 'lost' }, { kind: 'failing' }],
  ['the end of the process', { kind: 'exited' }, { kind: 'failing' }],
  ['no connection', { kind: 'unreachable' }, { kind: 'unreachable' }],
];

for (const [saw, outcome, verdict] of initializeRows) {
  test(`initialize: ${saw} means ${describe(verdict)}`, (t) => {
    t.deepEqual(classifyInitialize(outcome), verdict);
  });
}

function describe(verdict: ProbeVerdict | InitializeVerdict): string {
  return JSON.stringify(verdict);
}

test('a discover request carries the whole envelope and nothing else', (t) => {
  const frame = createDiscoverRequest({ id: 1, revision: MODERN, clientInfo: { name: 'me', version: '1.2' } });
  t.deepEqual(frame.json(), {
    jsonrpc: '2.0',
    id: 1,
    method: 'server/discover',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': MODERN,
        'io.modelcontextprotocol/clientInfo': { name: 'me', version: '1.2' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  });
  t.deepEqual(modernHeaders('server/discover', MODERN), {
    'MCP-Protocol-Version': MODERN,
    'Mcp-Method': 'server/discover',
  });
});

test('a DiscoverResult is read with its server info in _meta, or beside it as drafts had it', (t) => {
  const serverInfo = { name: 'S', version: '1' };
  const parsed = {
    supportedVersions: [MODERN],
    capabilities: { tools: {} },
    serverInfo,
    instructions: undefined,
  };
  const base = { supportedVersions: [MODERN], capabilities: { tools: {} } };
  t.deepEqual(parseDiscovery({ ...base, _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo } }), parsed);
  t.deepEqual(parseDiscovery({ ...base, serverInfo }), parsed);
  t.is(parseDiscovery({ ...base, supportedVersions: 'all' }), undefined);
});

test('a revision to come belongs to the modern era, an unknown early date to the legacy one', (t) => {
  t.is(eraOf('2024-11-05'), 'legacy');
  t.is(eraOf('2025-11-25'), 'legacy');
  t.is(eraOf(MODERN), 'modern');
  t.is(eraOf(FUTURE), 'modern');
  t.is(eraOf('2024-10-07'), 'legacy');
  t.is(eraOf('v999'), undefined);
  t.is(findCommonModern([FUTURE, MODERN]), MODERN);
  t.is(findCommonModern([FUTURE]), undefined);
});

for (const [what, refusal, isForeign] of [
  ['404 without a message', { status: 404 }, true],
  ['405 without a message', { status: 405 }, true],
  ['400 and -32000, as sessions want it', { status: 400, code: -32000 }, true],
  ['404 and -32001, as for a lost session', { status: 404, code: -32001 }, true],
  ['200 and -32601 for discover', { status: 200, code: -32601, method: 'server/discover' }, true],
  ['404 and -32601', { status: 404, code: -32601 }, false],
  ['400 and -32602', { status: 400, code: -32602 }, false],
  ['400 and -32022', { status: 400, code: -32022 }, false],
  ['200 and -32000', { status: 200, code: -32000 }, false],
  ['401', { status: 401 }, false],
  ['429', { status: 429 }, false],
  ['503', { status: 503 }, false],
] as const) {
  test(`a request refused with ${what} ${isForeign ? 'is not' : 'may be'} refused by a modern server`, (t) => {
    t.is(isForeignRefusal({ method: 'tools/call', code: undefined, ...refusal }), isForeign);
  });
}
