import { toPrintable } from '../printable.ts';
import { formatMs, Painter, paintVerdict, type RenderOptions, renderReport, visibleLength } from './render-report.ts';
import { type Offer, type ProbeReport, TRANSPORT_NAMES } from './report.ts';
import type { NamedOutcome } from './run-probes.ts';

const HEADINGS = ['Server', 'Speaks', 'Transport', 'Tools', 'Time', 'Verdict', 'What to do'] as const;
const MAX_NAME_LENGTH = 24;
const GAP = 2;
/** If less width is left for the advice column, the advice is printed below its row. */
const MIN_ADVICE_WIDTH = 24;
const MAX_ADVICE_LENGTH = 300;

/**
 * Renders the report on several servers for people: a table, and the details of those that do not work. Ends with a
 * newline.
 */
export function renderProbes(outcomes: readonly NamedOutcome[], options: RenderOptions): string {
  const table = renderTable(outcomes, options);
  const details = outcomes.flatMap((outcome) =>
    outcome.kind === 'report' && needsDetails(outcome.report) ? [renderDetails(outcome, options)] : [],
  );
  return [table, ...details].join('\n');
}

function needsDetails({ verdict }: ProbeReport): boolean {
  return verdict === 'unusable' || verdict === 'unauthorized';
}

function renderDetails(
  { name, report }: Extract<NamedOutcome, { readonly kind: 'report' }>,
  options: RenderOptions,
): string {
  const painter = new Painter(options, options.width);
  painter.line(painter.bold(`── ${toPrintable(name, MAX_NAME_LENGTH)} ──`));
  return `${painter.text}${renderReport(report, options)}`;
}

function renderTable(outcomes: readonly NamedOutcome[], options: RenderOptions): string {
  const painter = new Painter(options, options.width);
  const rows = outcomes.map((outcome) => cellsOf(outcome, painter));
  const heads = HEADINGS.map((heading) => painter.bold(heading));
  const widths = HEADINGS.slice(0, -1).map((_, column) =>
    Math.max(...[heads, ...rows].map((row) => visibleLength(row[column] ?? ''))),
  );
  const start = widths.reduce((sum, width) => sum + width + GAP, 0);
  const fits = options.width - start >= MIN_ADVICE_WIDTH;
  for (const [index, row] of [heads, ...rows].entries()) {
    const fixed = widths.map((width, column) => padTo(row[column] ?? '', width + GAP)).join('');
    const advice = row.at(-1) ?? '';
    if (fits) painter.hanging(fixed, advice, start);
    else {
      painter.line(fixed.trimEnd());
      if (index > 0 && advice !== '') painter.item(painter.yellow('!'), advice);
    }
  }
  return painter.text;
}

function padTo(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - visibleLength(text)));
}

function cellsOf(outcome: NamedOutcome, painter: Painter): readonly string[] {
  const name = shorten(toPrintable(outcome.name, MAX_ADVICE_LENGTH), MAX_NAME_LENGTH);
  if (outcome.kind === 'error') {
    const advice = shorten(toPrintable(outcome.error.message, MAX_ADVICE_LENGTH), MAX_ADVICE_LENGTH);
    return [name, '–', '–', '–', '–', painter.red('not asked'), advice];
  }
  const { offers, tookMs } = outcome.report;
  const working = offers.filter(({ works }) => works);
  return [
    name,
    listOf(working.map(({ era }) => era)),
    listOf(working.map(({ transport }) => TRANSPORT_NAMES[transport])),
    countTools(working),
    formatMs(tookMs),
    paintVerdict(painter, outcome.report),
    shorten(adviceOf(outcome.report), MAX_ADVICE_LENGTH),
  ];
}

function listOf(names: readonly string[]): string {
  return [...new Set(names)].join(', ') || '–';
}

function countTools(offers: readonly Offer[]): string {
  for (const { tools } of offers) if (tools.state === 'counted') return `${tools.count}${tools.isComplete ? '' : '+'}`;
  return offers.some(({ tools }) => tools.state === 'failed') ? 'failed' : '–';
}

function adviceOf({ verdict, problems, authorization }: ProbeReport): string {
  if (verdict === 'unauthorized') {
    const login =
      (authorization?.authorizationServers.length ?? 0) > 0 ? 'a login ("portage": {"login": "on-demand"}) or ' : '';
    const which = authorization?.token === 'refused' ? 'another' : 'a';
    return `give it ${login}${which} token, by a header in its entry`;
  }
  return toPrintable(problems[0] ?? '', MAX_ADVICE_LENGTH);
}

function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
