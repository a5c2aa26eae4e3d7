import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { renderProbes } from '../../src/probe/render-probes.ts';
import type { Offer, ProbeReport } from '../../src/probe/report.ts';
import { exitCodeOfAll, type NamedOutcome } from '../../src/probe/run-probes.ts';

const WORKING: Offer = {
  transport: 'streamable-http',
  era: 'modern',
  works: true,
  saw: '',
  revision: '2026-07-28',
  supportedRevisions: undefined,
  session: 'stateless',
  serverStream: undefined,
  serverInfo: undefined,
  capabilities: [],
  tools: { state: 'counted', count: 7, isComplete: false },
  resources: { state: 'not-declared' },
  resourceTemplates: { state: 'not-declared' },
  prompts: { state: 'not-declared' },
};

function outcome(name: string, more: Partial<ProbeReport> = {}): NamedOutcome {
  const report: ProbeReport = {
    format: 1,
    target: { kind: 'url', name: 'https://a.example/mcp' },
    verdict: 'usable',
    offers: [WORKING, { ...WORKING, transport: 'http-sse', era: 'legacy' }],
    authorization: undefined,
    problems: [],
    clients: [],
    steps: [],
    tookMs: 120,
    ...more,
  };
  return { name, kind: 'report', report };
}

const UNAUTHORIZED: Partial<ProbeReport> = {
  verdict: 'unauthorized',
  offers: [],
  authorization: {
    status: 401,
    token: 'missing',
    scheme: 'Bearer',
    resourceMetadata: undefined,
    metadataSource: undefined,
    authorizationServers: ['https://auth.example'],
    scopes: [],
  },
};
const ERROR: NamedOutcome = {
  name: 'wrong',
  kind: 'error',
  error: new BridgeError('ERR_CONFIG_OPTION', 'No such proxy.'),
};

test('a row says what a server speaks, and what to do where something is wrong', (t) => {
  const text = renderProbes([outcome('good'), outcome('locked', UNAUTHORIZED), ERROR], { width: 120, color: false });
  const [heads = '', good = '', locked = '', ...rest] = text.split('\n');
  t.regex(heads, /^Server +Speaks +Transport +Tools +Time +Verdict +What to do$/);
  t.regex(good, /^good +modern, legacy +Streamable HTTP, HTTP\+SSE +7\+ +120 ms +usable$/);
  t.regex(locked, /^locked +– +– +– +120 ms +needs authorization +give it a login/);
  t.regex(rest.join('\n'), /^wrong +– +– +– +– +not asked +No such proxy\.$/m);
  t.regex(text, /── locked ──\n.*a\.example/);
});

test('where the terminal is narrow, what to do stands below its row', (t) => {
  const text = renderProbes([outcome('locked', UNAUTHORIZED)], { width: 80, color: false });
  t.regex(text, /^locked .*needs authorization\n {2}! give it a login/m);
});

test('names and problems come from others: they are cut, and have nothing that a terminal would do', (t) => {
  const problems = [`\u001b[2Jgone\nreally ${'x'.repeat(1000)}`];
  const bad = outcome('n'.repeat(60), { verdict: 'unusable', offers: [], problems });
  const text = renderProbes([bad], { width: 100, color: false });
  t.regex(text, /^n{23}… /m);
  t.false(text.includes('\u001b'));
});

test('the exit code is that of the worst', (t) => {
  const unusable = outcome('x', { verdict: 'unusable' });
  const locked = outcome('x', { verdict: 'unauthorized' });
  t.is(exitCodeOfAll([]), 0);
  t.is(exitCodeOfAll([outcome('x'), outcome('x', { verdict: 'partly-usable' })]), 0);
  t.is(exitCodeOfAll([outcome('x'), locked]), 77);
  t.is(exitCodeOfAll([unusable, locked]), 69);
  t.is(exitCodeOfAll([unusable, ERROR, locked]), 2);
});
