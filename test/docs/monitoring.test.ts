/** The alert rules and the dashboard of examples/monitoring name only what a bridge tells Prometheus, and are valid. */
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { parse, stringify } from 'yaml';
import { ERROR_CODES } from '../../src/errors.ts';
import { startBridge } from '../support/bridge.ts';
import { EVERYTHING, NODE } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { Scrape } from '../support/scrape.ts';
import { documentAt, ROOT } from './documents.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const RULES_FILE = 'examples/monitoring/alerts.yml';
const rulesText = await readFile(new URL(RULES_FILE, ROOT), 'utf8');
const rules: readonly Rule[] = parse(rulesText, { strict: true }).groups[0].rules;
const dashboard = JSON.parse(await readFile(new URL('examples/monitoring/grafana-dashboard.json', ROOT), 'utf8'));
const panels: readonly Panel[] = dashboard.panels;
const variables: readonly { readonly name: string; readonly definition?: string }[] = dashboard.templating.list;

const inPanels = panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }, index) => [`${title}, ${index + 1}`, expr] as const),
);
const expressions = [...rules.map(({ alert, expr }) => [alert, expr] as const), ...inPanels];

// ---- Reading PromQL.

interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

interface Uses {
  /** With the labels that a selector names. */
  readonly metrics: readonly { readonly name: string; readonly matchers: readonly Matcher[] }[];
  /** Labels by which an expression groups or joins. */
  readonly grouped: readonly string[];
}

const GROUPING = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right']);
const OPERATORS = new Set(['and', 'or', 'unless', 'bool', 'offset']);
const MATCHER = /([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g;

/** Finds the metrics and labels of an expression: what is left when functions, grouping and durations are taken out. */
function usesOf(expression: string): Uses {
  const metrics: { name: string; matchers: readonly Matcher[] }[] = [];
  const grouped: string[] = [];
  const token = /#.*$|\d[\w.]*|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|([a-zA-Z_:][\w:]*)\s*(\{[^}]*\}|\([^()]*\))?/gm;
  for (let found = token.exec(expression); found !== null; found = token.exec(expression)) {
    const [, name, after = ''] = found;
    if (name === undefined) continue;
    if (GROUPING.has(name)) {
      grouped.push(...(after.match(/[a-zA-Z_]\w*/g) ?? []));
      continue;
    }
    const isCall = /^\s*\(/.test(expression.slice(found.index + name.length));
    // What stands in parentheses after a name is read next.
    if (!after.startsWith('{')) token.lastIndex = found.index + name.length;
    const isAggregation = /^\s*(by|without)\b/.test(expression.slice(found.index + name.length));
    if (isCall || isAggregation || OPERATORS.has(name)) continue;
    const matchers = [...after.matchAll(MATCHER)].map(([, label = '', operator = '', value = '']) => ({
      label,
      operator,
      value,
    }));
    metrics.push({ name, matchers });
  }
  return { metrics, grouped };
}

test('metrics and labels are found in an expression', (t) => {
  const expression =
    'topk(3, sum by (a, le) (rate(m_bucket{b="x",c=~"y|z"}[5m])) / on (d) group_left (e) n) > 1e9 and sum(o) by (f)';
  t.deepEqual(usesOf(expression), {
    metrics: [
      {
        name: 'm_bucket',
        matchers: [
          { label: 'b', operator: '=', value: 'x' },
          { label: 'c', operator: '=~', value: 'y|z' },
        ],
      },
      { name: 'n', matchers: [] },
      { name: 'o', matchers: [] },
    ],
    grouped: ['a', 'le', 'd', 'e', 'f'],
  });
});

// ---- What there is to be named.

const TRAFFIC = ['server', 'transport', 'network_transport'];
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  '*traffic*': TRAFFIC,
  '*connection*': [...TRAFFIC, 'mcp_protocol_version'],
};
/** Prometheus adds these to everything that it collects. */
const ADDED = ['job', 'instance'];

/** The labels of our metrics, from a table that a test compares with what is written. */
const declared = new Map(
  [...documentAt('docs/reference/metrics.md').matchAll(/^\| `(mcp_\w+)` \| (\w+) \| (.*?) ?\| /gm)].map(
    ([, name = '', type, labels = '']) => {
      const words = labels.split(', ').flatMap((word) => GROUPS[word] ?? word.replaceAll('`', ''));
      return [name, [...words, ...ADDED, ...(type === 'histogram' ? ['le'] : [])]] as const;
    },
  ),
);

const familyOf = (name: string): string => name.replace(/_(bucket|sum|count)$/, '');

/** Where values are codes of ours: how they are called. `connections` is the only reason that is none. */
const CODES = new Set([...Object.keys(ERROR_CODES), 'connections']);
const WITH_CODES = new Set(['error_type', 'reason']);

function namesCode({ operator, value }: Matcher): boolean {
  if (!operator.endsWith('~')) return CODES.has(value);
  return value.split('|').every((part) => [...CODES].some((code) => new RegExp(`^(?:${part})$`).test(code)));
}

test('every metric of the alert rules and the dashboard is written by a bridge', async (t) => {
  const bridge = await startBridge(['--metrics', '--', NODE, EVERYTHING]);
  t.teardown(() => bridge.stop());
  const { types } = new Scrape(await (await fetch(new URL('/metrics', bridge.url))).text());
  t.true(declared.size > 20);
  for (const [where, expression] of expressions) {
    const { metrics } = usesOf(expression);
    t.true(metrics.length > 0, where);
    for (const { name } of metrics) t.true(name === 'up' || types.has(familyOf(name)), `${where}: ${name}`);
  }
});

test('every label of the alert rules and the dashboard is declared of its metric, and every code is one', (t) => {
  for (const [where, expression] of expressions) {
    const { metrics, grouped } = usesOf(expression);
    const known = metrics.map(({ name }) => declared.get(familyOf(name)) ?? ADDED);
    for (const [index, { name, matchers }] of metrics.entries()) {
      for (const matcher of matchers) {
        t.true(known[index]?.includes(matcher.label), `${where}: ${matcher.label} of ${name}`);
        if (WITH_CODES.has(matcher.label)) t.true(namesCode(matcher), `${where}: ${matcher.value}`);
      }
    }
    for (const label of grouped) t.true(known.flat().includes(label), `${where}: ${label}`);
  }
});

test('every alert leads to a section of the runbook, and says of which server or code by labels that it has', (t) => {
  const headings = [...documentAt('docs/guide/runbook.md').matchAll(/^## (.+)$/gm)].map(([, title = '']) =>
    title.toLowerCase().replaceAll(' ', '-'),
  );
  t.is(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, expr, annotations } of rules) {
    const [file, section = ''] = annotations.runbook.split('#');
    t.is(file, 'docs/guide/runbook.md');
    t.true(headings.includes(section), `${alert}: ${section}`);
    const { metrics, grouped } = usesOf(expr);
    // An aggregation keeps only the labels that it groups by.
    const kept = /\bby \(/.test(expr) ? grouped : metrics.flatMap(({ name }) => declared.get(familyOf(name)) ?? ADDED);
    for (const [, label = ''] of annotations.summary.matchAll(/\$labels\.(\w+)/g)) {
      t.true(kept.includes(label), `${alert}: ${label}`);
    }
  }
});

test('the runbook names every alert', (t) => {
  const page = documentAt('docs/guide/runbook.md');
  for (const { alert } of rules) t.true(page.includes(`\`${alert}\``), alert);
  const named = new Set([...page.matchAll(/`(McpPortage\w+)`/g)].map(([, name = '']) => name));
  t.deepEqual([...named].sort(), rules.map(({ alert }) => alert).sort());
});

// ---- The dashboard.

test('the panels of the dashboard have ids and places of their own, and legends with labels that are there', (t) => {
  t.is(new Set(panels.map(({ id }) => id)).size, panels.length);
  const taken = new Set<string>();
  for (const { title, gridPos, targets } of panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        t.true(x < 24 && !taken.has(`${x} ${y}`), title);
        taken.add(`${x} ${y}`);
      }
    }
    for (const { expr, legendFormat } of targets) {
      const { metrics, grouped } = usesOf(expr);
      const kept = / by \(/.test(expr) ? grouped : metrics.flatMap(({ name }) => declared.get(familyOf(name)) ?? ADDED);
      for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        t.true(kept.includes(label), `${title}: ${label}`);
      }
    }
  }
});

test('the dashboard uses the variables that it declares, which are filled from metrics of a bridge', (t) => {
  const names = variables.map(({ name }) => name);
  const used = [...JSON.stringify(dashboard).matchAll(/\$\{?([a-z]\w*)\}?/g)].map(([, name = '']) => name);
  t.deepEqual([...new Set(used)].sort(), [...names].sort());
  for (const { definition } of variables) {
    if (definition === undefined) continue;
    const [, metric = '', , label = ''] = /^label_values\((\w+)(\{.*\})?, (\w+)\)$/.exec(definition) ?? [];
    t.true(declared.get(metric)?.includes(label), definition);
  }
});

// ---- What Prometheus says of them.

const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
const testWithPromtool = hasPromtool ? test : test.skip;
const unless = hasPromtool ? '' : ' (skipped: promtool is not here)';

testWithPromtool(`promtool accepts the alert rules and every expression of the dashboard${unless}`, async (t) => {
  const folder = await createConfigFolder(t);
  const recorded = inPanels.map(([, expr], index) => ({
    record: `panel_${index}`,
    expr: expr.replaceAll('$__rate_interval', '5m'),
  }));
  const files = await Promise.all([
    folder.write('alerts.yml', rulesText),
    folder.write('panels.yml', stringify({ groups: [{ name: 'panels', rules: recorded }] })),
  ]);
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', ...files], { encoding: 'utf8' });
  t.is(status, 0, `${stdout}${stderr}`);
});

const OF = 'job="mcp-portage",instance="i"';
const CALLS = 'mcp_server_operation_duration_seconds';
const REFUSED = 'mcp_portage_refused_requests_total';
type Series = readonly (readonly [series: string, values: string])[];

/** For each alert what has it fire after an hour, by the minute, and what is like it and does not. */
const STORIES: Readonly<Record<string, { readonly fires: Series; readonly rests: Series }>> = {
  McpPortageDown: { fires: [[`up{${OF}}`, '0x60']], rests: [[`up{${OF}}`, '1x60']] },
  McpPortageRestarting: {
    fires: [[`mcp_portage_start_time_seconds{${OF}}`, '0+600x60']],
    rests: [[`mcp_portage_start_time_seconds{${OF}}`, '7x60']],
  },
  McpPortageServerDown: {
    fires: [[`mcp_portage_server_up{${OF},server="s"}`, '0x60']],
    rests: [[`mcp_portage_server_up{${OF},server="s"}`, '1x60']],
  },
  McpPortageServerRestarts: {
    fires: [[`mcp_portage_restarts_total{${OF},server="s"}`, '0+1x60']],
    rests: [[`mcp_portage_restarts_total{${OF},server="s"}`, '0x30 1x30']],
  },
  McpPortageCallsFail: {
    fires: [
      [`${CALLS}_count{${OF},server="s"}`, '0+90x60'],
      [`${CALLS}_count{${OF},server="s",error_type="ERR_UPSTREAM_TIMEOUT"}`, '0+10x60'],
    ],
    rests: [
      [`${CALLS}_count{${OF},server="s"}`, '0+50x60'],
      [`${CALLS}_count{${OF},server="s",error_type="-32602"}`, '0+50x60'],
    ],
  },
  McpPortageCallsSlow: {
    fires: slowCalls('10'),
    rests: slowCalls('1'),
  },
  McpPortageSessionsRefused: {
    fires: [[`mcp_portage_session_refusals_total{${OF},server="s",reason="ERR_SESSION_LIMIT"}`, '0+1x60']],
    rests: [[`mcp_portage_session_refusals_total{${OF},server="s",reason="ERR_UPSTREAM_EXITED"}`, '0+1x60']],
  },
  McpPortageCallsNearLimit: { fires: twoServers('open_calls', 450), rests: twoServers('open_calls', 350) },
  McpPortageProcessesNearLimit: { fires: twoServers('processes', 450), rests: twoServers('processes', 350) },
  McpPortageConnectionsRefused: {
    fires: [[`${REFUSED}{${OF},reason="connections"}`, '0+1x60']],
    rests: [[`${REFUSED}{${OF},reason="ERR_HTTP_PATH"}`, '0+1x60']],
  },
  McpPortageKeysUnavailable: {
    fires: [[`${REFUSED}{${OF},reason="ERR_AUTH_UNAVAILABLE"}`, '0+1x60']],
    rests: [[`${REFUSED}{${OF},reason="ERR_AUTH_REQUIRED"}`, '0+1x60']],
  },
  McpPortageCallersRefused: {
    fires: [[`${REFUSED}{${OF},reason="ERR_AUTH_TOKEN"}`, '0+120x60']],
    rests: [[`${REFUSED}{${OF},reason="ERR_AUTH_TOKEN"}`, '0+6x60']],
  },
  McpPortageAuditUnavailable: {
    fires: [[`${REFUSED}{${OF},reason="ERR_AUDIT_UNAVAILABLE"}`, '0+1x60']],
    rests: [[`${REFUSED}{${OF},reason="ERR_AUDIT_UNAVAILABLE"}`, '9x60']],
  },
  McpPortageStoreUnavailable: {
    fires: [[`${REFUSED}{${OF},reason="ERR_STORE_UNAVAILABLE"}`, '0+1x60']],
    rests: [[`${REFUSED}{${OF},reason="ERR_STORE_UNAVAILABLE"}`, '9x60']],
  },
  McpPortageMemory: {
    fires: [[`process_resident_memory_bytes{${OF}}`, '2000000000x60']],
    rests: [[`process_resident_memory_bytes{${OF}}`, '100000000x60']],
  },
  McpPortageBusy: {
    fires: [[`nodejs_eventloop_lag_p99_seconds{${OF}}`, '1x60']],
    rests: [[`nodejs_eventloop_lag_p99_seconds{${OF}}`, '0.02x60']],
  },
};

/** All calls take between half of this time, in seconds, and this time three times over. */
function slowCalls(bound: string): Series {
  const labels = `${OF},server="s",mcp_method_name="tools/call"`;
  return [
    [`${CALLS}_bucket{${labels},le="${bound}"}`, '0x60'],
    [`${CALLS}_bucket{${labels},le="${Number(bound) * 3}"}`, '0+10x60'],
    [`${CALLS}_bucket{${labels},le="+Inf"}`, '0+10x60'],
  ];
}

/** Neither server alone is near the limit. */
function twoServers(what: string, each: number): Series {
  return [
    [`mcp_portage_${what}{${OF},server="a"}`, `${each}x60`],
    [`mcp_portage_${what}{${OF},server="b"}`, `${each}x60`],
    [`mcp_portage_${what}_limit{${OF}}`, '1000x60'],
  ];
}

testWithPromtool(`each alert fires for what it is about, and for nothing like it${unless}`, async (t) => {
  t.deepEqual(Object.keys(STORIES).sort(), rules.map(({ alert }) => alert).sort());
  const folder = await createConfigFolder(t);
  await folder.write('alerts.yml', rulesText);
  const story = (series: Series, firing: readonly string[]) => ({
    interval: '1m',
    input_series: series.map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: '1h',
        exp_samples: firing.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      },
    ],
  });
  const tests = Object.entries(STORIES).flatMap(([alert, { fires, rests }]) => [
    story(fires, [alert]),
    story(rests, []),
  ]);
  const file = await folder.write(
    'stories.yml',
    stringify({ rule_files: ['alerts.yml'], evaluation_interval: '1m', tests }),
  );
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  t.is(status, 0, `${stdout}${stderr}`);
});
