/** Every figure in the guides and references is that of the source: an option's default, a constant, or a rule of somebody else. */
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { findFlag } from '../../src/cli/options/option-table.ts';
import { FOR_USERS, ROOT } from './documents.ts';

/** An option, or a file below `src/` with what is assigned there, or the reason why the figure is not ours to change. */
type Origin = `--${string}` | readonly [file: string, name: string] | { readonly of: string };

/** By page, as they are written there. */
const FIGURES: Readonly<Record<string, Readonly<Record<string, Origin>>>> = {
  'docs/guide/access.md': { 'ten seconds': ['downstream/listener/admitted-streams.ts', 'ADMISSION_CHECK_MS'] },
  'docs/guide/connect.md': { '500 ms': ['bridge/connect-stdio.ts', 'LAST_CHANCE_MS'] },
  'docs/guide/containers.md': { '4 seconds': '--shutdown-grace' },
  'docs/guide/deploy.md': {
    'five minutes': ['upstream/resilience/trials.ts', 'MAX_PAUSE_MS'],
    '8 seconds': { of: 'twice --shutdown-grace: for calls, and for server processes' },
    '10 seconds': { of: 'Docker, which waits that long by default' },
  },
  'docs/guide/faq.md': {
    '60 MiB': { of: 'the measurement of bench/results.md, with one idle session' },
    '10 MiB': ['downstream/stdio/endpoint.ts', 'MAX_LINE_BYTES'],
    '16 MiB': '--max-message-bytes',
    '15 seconds': ['downstream/http/event-stream-writer.ts', 'KEEP_ALIVE_MS'],
    '5 minutes': '--request-timeout',
    '60 seconds': { of: 'the official TypeScript SDK, whose requests time out after that by default' },
  },
  'docs/guide/library.md': { '4 s': '--shutdown-grace', '100 kB': { of: 'Express, as its parsers are documented' } },
  'docs/guide/log-in.md': {
    'a minute': { of: 'clients, many of which wait that long' },
    '45 s': ['http/login/patience.ts', 'PATIENCE_MS'],
  },
  'docs/guide/many-servers.md': { 'a minute': ['bridge/listed-server.ts', 'RETIREMENT_MS'] },
  'docs/guide/one-address.md': {
    '64 characters': ['aggregate/names.ts', 'MAX_NAME_LENGTH'],
    'ten seconds': ['aggregate/member-lists.ts', 'LIST_WAIT_MS'],
    'a second': { of: 'the example of a server that changes its list too often' },
  },
  'docs/guide/mqtt.md': {
    '40 ms': { of: 'the acknowledgment that Linux delays, for which the broker waits' },
    '5 seconds': ['upstream/mqtt/carrier.ts', 'ANSWER_MS'],
    '80 KiB': { of: 'the SDK for the ESP32, which reads messages into a buffer of that size' },
    'a second': ['bridge/hub-call.ts', 'FIRST_PAUSE_MS'],
    'a minute': ['bridge/hub-call.ts', 'MAX_PAUSE_MS'],
  },
  'docs/guide/observe.md': {
    'ten minutes': { of: 'the steps of the chart, which has a test of its own' },
    '200 calls': ['observe/status/activity.ts', 'MAX_RECENT_CALLS'],
    '1 MiB': ['io/patient-lines.ts', 'MAX_WAITING_BYTES'],
  },
  'docs/guide/probe.md': {
    '15 seconds': ['cli/parse/config.ts', 'URL_PROBE_MS'],
    '2 minutes': ['cli/parse/config.ts', 'COMMAND_PROBE_MS'],
  },
  'docs/guide/remote-servers.md': { '10 seconds': '--connect-timeout' },
  'docs/guide/retire-http-sse.md': { 'a day': ['observe/sunset-log.ts', 'DAY_MS'] },
  'docs/guide/runbook.md': {
    'a minute': ['observe/refusal-log.ts', 'PERIOD_MS'],
    'five minutes': ['upstream/resilience/trials.ts', 'MAX_PAUSE_MS'],
  },
  'docs/guide/scaling.md': {
    '15 s': ['downstream/http/event-stream-writer.ts', 'KEEP_ALIVE_MS'],
    '200 ms': { of: 'HAProxy, which waits that long for more data' },
  },
  'docs/guide/security.md': {
    'ten seconds': ['downstream/listener/admitted-streams.ts', 'ADMISSION_CHECK_MS'],
    '200 characters': ['process/shown-arguments.ts', 'MAX_ARGUMENT_LENGTH'],
    'a minute': ['pins/pin-guard.ts', 'TRUST_MS'],
  },
  'docs/guide/serve.md': {
    'five minutes': ['cli/parse/listener/sessions.ts', 'LEFT_MS'],
    '30 minutes': '--session-timeout',
    '100 ms': ['watch/settled-changes.ts', 'SETTLED_MS'],
    '2 s': ['watch/settled-changes.ts', 'MAX_UNSETTLED_MS'],
    '4 s': '--shutdown-grace',
    '1 MiB': ['cli/check-files.ts', 'MAX_TEXT_BYTES'],
    '10 s': ['relay/shared/legacy/attribution.ts', 'ABANDONED_MS'],
  },
  'docs/guide/sockets.md': { '107 bytes': ['http/server/socket-file.ts', 'MAX_PATH_BYTES'] },
  'docs/guide/traces.md': {
    '512 characters': { of: 'W3C Trace Context, the least that has to be passed on' },
    '8192 bytes': { of: 'W3C Baggage, the least that has to be passed on' },
    'a minute': ['observe/traces/complaints.ts', 'PERIOD_MS'],
    'a second': ['observe/traces/traces.ts', 'MAX_FLUSH_MS'],
  },
  'docs/guide/troubleshoot.md': { 'five minutes': '--request-timeout' },
  'docs/guide/websocket.md': {
    '25 seconds': ['http/websocket/connection.ts', 'PING_MS'],
    'a second': ['bridge/hub-call.ts', 'FIRST_PAUSE_MS'],
    'a minute': ['bridge/hub-call.ts', 'MAX_PAUSE_MS'],
  },
  'docs/guide/when-things-fail.md': {
    '10 s': ['upstream/resilience/trials.ts', 'FIRST_PAUSE_MS'],
    '5 minutes': ['cli/parse/listener/sessions.ts', 'LEFT_MS'],
    '30 minutes': '--session-timeout',
    '30 s': ['http/reading-watch.ts', 'STALL_MS'],
    'a minute': ['bridge/listed-server.ts', 'RETIREMENT_MS'],
    '16 MiB': ['observe/audit/append-only-file.ts', 'maxBytes'],
    '1 MiB': ['io/patient-lines.ts', 'MAX_WAITING_BYTES'],
  },
  'docs/reference/audit.md': {
    '256 characters': ['mcp/vocabulary/client-declarations.ts', 'MAX_NAME_LENGTH'],
    '16 MiB': ['observe/audit/append-only-file.ts', 'maxBytes'],
  },
  'docs/reference/config-file.md': {
    '4 MiB': ['cli/config-file/read-config-file.ts', 'MAX_FILE_BYTES'],
    '256 KiB': ['cli/config-file/yaml-tree.ts', 'MAX_YAML_BYTES'],
    '1000 servers': ['cli/config-file/read-config-file.ts', 'MAX_SERVERS'],
  },
  'docs/reference/errors.md': {
    '256 characters': ['relay/questions.ts', 'MAX_QUESTION_ID_LENGTH'],
    '16 MiB': '--max-message-bytes',
    '1 MiB': ['relay/call.ts', 'MAX_INITIALIZE_BYTES'],
    '10 MiB': ['downstream/stdio/endpoint.ts', 'MAX_LINE_BYTES'],
    '1024 characters': ['http/auth/callers.ts', 'MAX_VALUE_LENGTH'],
    '30 seconds': ['http/auth/key-source.ts', 'UNKNOWN_KEY_PAUSE_MS'],
    '30 s': ['pins/own-listing.ts', 'LIST_TIMEOUT_MS'],
    '10 s': ['relay/shared/legacy/attribution.ts', 'ABANDONED_MS'],
    '50 s': ['eras/modern-to-legacy/pool/session-queue.ts', 'LEASE_WAIT_MS'],
    '8 MiB': ['downstream/duplex/connection-peer.ts', 'MAX_AHEAD_BYTES'],
    '75 s': { of: 'three pings of a WebSocket connection (PING_MS): two that are missed, and the time after the last' },
    '16 KiB': { of: 'Node, which reads no longer head of a response' },
    'four minutes': ['http/login/patience.ts', 'LOGIN_TIMEOUT_MS'],
    'a minute': ['observe/audit/audit-file.ts', 'COMPLAINT_PERIOD_MS'],
    'six minutes': ['replicas/stored/exclusive-value.ts', 'MAX_WAIT_MS'],
  },
  'docs/reference/metrics.md': { '50 client': ['observe/metrics/bounded-labels.ts', 'MAX_CLIENTS'] },
  'docs/reference/status-page.md': {
    'five minutes': ['observe/status/activity.ts', 'CALLER_SHOWN_MS'],
    '5 s': ['observe/status/call-series.ts', 'STEP_MS'],
    'a second': ['observe/status/status-stream.ts', 'UPDATE_MS'],
    '300 characters': ['observe/status/server-records.ts', 'MAX_TEXT_LENGTH'],
    '4 MiB': ['recording/message-feed.ts', 'maxBytes'],
    '1 MiB': ['observe/status/page/messages.browser.js', 'MAX_GROUP_LENGTH'],
  },
  'docs/reference/usage-report.md': {
    'five seconds': ['observe/usage/usage-file.ts', 'WRITE_EVERY_MS'],
    '400 days': ['observe/usage/usage.ts', 'MAX_DAYS'],
  },
};

const NUMBERS = ['a', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];
const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  kB: 1000,
  MB: 1e6,
  GB: 1e9,
  byte: 1,
  character: 1,
  call: 1,
  client: 1,
  server: 1,
  session: 1,
  µs: 0.001,
  // These are figures of measurements, which only the benchmark writes into a page.
  times: Number.NaN,
  '%': Number.NaN,
  '×': Number.NaN,
};
/** A number as a word is a figure only of a time: "two servers" counts what the page itself shows. */
const FIGURE = new RegExp(
  `(?<![\\w.,-])(?:(?:\\d[\\d,.]*)\\s?(?:${Object.keys(UNITS).join('|')})s?|(?:${NUMBERS.join('|')})\\s(?:second|minute|hour|day)s?)(?!\\w)`,
  'g',
);

/** Written by a program, tested as tables of their own, or measured and dated where they stand. */
const ELSEWHERE = [
  'docs/reference/options.md',
  'docs/reference/limits.md',
  'docs/reference/hosts.md',
  'docs/reference/scaling.md',
];

const pages = FOR_USERS.filter(({ path }) => !ELSEWHERE.includes(path)).map(({ path, text }) => ({
  path,
  figures: [...new Set((proseOf(text).match(FIGURE) ?? []).map((figure) => figure.replace(/\s+/, ' ')))],
}));

test('every figure of the guides and references is declared here, with where it comes from', (t) => {
  const found = Object.fromEntries(
    pages.flatMap(({ path, figures }) => (figures.length === 0 ? [] : [[path, [...figures].sort()]])),
  );
  const declared = Object.entries(FIGURES).map(([path, figures]) => [path, Object.keys(figures).sort()]);
  t.deepEqual(found, Object.fromEntries(declared));
});

for (const [path, figures] of Object.entries(FIGURES)) {
  test(`the figures of ${path} are those of the program`, async (t) => {
    for (const [figure, origin] of Object.entries(figures)) {
      if (typeof origin === 'object' && 'of' in origin) {
        t.not(origin.of, '');
        continue;
      }
      const values = typeof origin === 'string' ? defaultOf(origin) : await valuesOf(origin);
      t.true(values.includes(amountOf(figure)), `${figure}, but ${String(origin)} is ${values.join(' or ')}`);
    }
  });
}

/** Without code, which shows what one may write, and without what a program writes. */
function proseOf(text: string): string {
  return text
    .replaceAll(/^( *)```.*?^\1```/gms, '')
    .replaceAll(/<!-- (\w[\w-]*): made.*?<!-- end of \1 -->/gs, '')
    .replaceAll(/`[^`]*`/g, '`…`');
}

function amountOf(figure: string): number {
  const [, number = '', unit = ''] = /^([\w,.]+?)\s?([^\d\s,.]+)$/.exec(figure) ?? [];
  const amount = NUMBERS.includes(number) ? NUMBERS.indexOf(number) + 1 : Number(number.replaceAll(',', ''));
  return amount * (UNITS[unit] ?? UNITS[unit.replace(/s$/, '')] ?? Number.NaN);
}

function defaultOf(option: string): readonly number[] {
  const found = findFlag(option);
  const [, number, unit = ''] = /^(\d+)([a-z]*)$/.exec(found?.default ?? '') ?? [];
  const sizes: Readonly<Record<string, number>> = option.endsWith('bytes')
    ? { '': 1, k: 2 ** 10, m: 2 ** 20 }
    : { '': 1, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  return [Number(number) * (sizes[unit] ?? Number.NaN)];
}

/** What is assigned to a name: a product or a sum of numbers and other such names, or one of several by platform. */
async function valuesOf([file, name]: readonly [string, string]): Promise<readonly number[]> {
  const source = await readFile(new URL(`src/${file}`, ROOT), 'utf8');
  const expressionOf = (wanted: string): string =>
    (new RegExp(`\\b${wanted}(?: =|:) ([^;,}]+)`).exec(source)?.[1] ?? '')
      .replaceAll(/(?<=\d)_(?=\d)/g, '')
      .replaceAll(/(\d+) \*\* (\d+)/g, (_, base, power) => String(Number(base) ** Number(power)))
      .replaceAll(/\b[A-Z][A-Z_]+\b/g, (other) => expressionOf(other));
  const expression = expressionOf(name);
  const unit = name.endsWith('_DAYS') ? 86_400_000 : 1;
  if (!/^[\d\s*+]+$/.test(expression)) return (expression.match(/\d+/g) ?? []).map(Number);
  const products = expression
    .split('+')
    .map((product) => product.split('*').reduce((so, factor) => so * Number(factor), 1));
  return [products.reduce((sum, product) => sum + product, 0) * unit];
}
