/** The chart of the README: what a user feels, beside other bridges and the floor, each panel on its own linear scale. */
import { escapeXml, FONT, THEMES, type ThemeName } from '../../scripts/picture-themes.ts';
import type { Contender } from '../cases.ts';
import type { Metric } from '../measure/records.ts';
import { findMedian, type LastRun } from './last-run.ts';
import { formatNumber } from './tables.ts';

interface Panel {
  readonly title: string;
  readonly case: string;
  readonly workload: string;
  readonly metric: Metric;
  readonly unit: string;
  /** From what was measured to the unit. */
  readonly factor: number;
  readonly bars: readonly Contender[];
}

/** Of both kinds: where mcp-portage does much better, and where it does not. */
const PANELS: readonly Panel[] = [
  {
    title: 'CPU per call, Streamable HTTP to stdio',
    ...{ case: 'streamable', workload: 'small-32', metric: 'cpu', unit: 'µs', factor: 1 },
    bars: ['floor', 'mcp-portage', 'supergateway', 'mcp-proxy'],
  },
  {
    title: 'Latency of a call, one at a time',
    ...{ case: 'streamable', workload: 'small-1', metric: 'p50Ms', unit: 'ms', factor: 1 },
    bars: ['floor', 'mcp-portage', 'supergateway', 'mcp-proxy'],
  },
  {
    title: 'CPU per call, stdio to Streamable HTTP',
    ...{ case: 'connect', workload: 'small-32', metric: 'cpu', unit: 'µs', factor: 1 },
    bars: ['floor', 'mcp-portage', 'supergateway', 'mcp-remote'],
  },
  {
    title: 'Start to first answer',
    ...{ case: 'start', workload: 'start', metric: 'p50Ms', unit: 'ms', factor: 1 },
    bars: ['floor', 'mcp-portage', 'supergateway', 'mcp-proxy'],
  },
  {
    title: 'Opening a session (mcp-proxy shares one process)',
    ...{ case: 'sessions', workload: 'open', metric: 'p50Ms', unit: 'ms', factor: 1 },
    bars: ['floor', 'mcp-portage', 'mcp-portage-shared', 'supergateway', 'mcp-proxy'],
  },
  {
    title: 'Memory with one idle session',
    ...{ case: 'memory', workload: 'idle', metric: 'rssMiB', unit: 'MiB', factor: 1 },
    bars: ['floor', 'mcp-portage', 'supergateway', 'mcp-proxy'],
  },
];

const LABELS: Partial<Record<Contender, string>> = { 'mcp-portage-shared': 'mcp-portage, shared' };

const COLUMNS = 2;
const PANEL = { width: 380, label: 138, bar: 150, gap: 22 } as const;
const ROW = 18;

export function renderChart(run: LastRun, name: ThemeName): string {
  const theme = THEMES[name];
  const heights = [0, 2, 4].map((first) => {
    const rows = PANELS.slice(first, first + COLUMNS).map(({ bars }) => bars.length);
    return 26 + Math.max(...rows) * ROW + PANEL.gap;
  });
  const tops = heights.map((_, index) => heights.slice(0, index).reduce((sum, height) => sum + height, 8));
  const height = heights.reduce((sum, each) => sum + each, 8);
  const width = COLUMNS * PANEL.width;
  const panels = PANELS.map((panel, index) => {
    const x = (index % COLUMNS) * PANEL.width;
    return renderPanel(run, panel, { x, y: tops[Math.floor(index / COLUMNS)] ?? 0, name });
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" ${FONT} font-size="12">
<title>mcp-portage beside other bridges and a bare pass-through in Node (floor), measured on ${run.date}; shorter is better</title>
<g fill="${theme.text}">
${panels.join('\n')}
</g>
</svg>
`;
}

interface Place {
  readonly x: number;
  readonly y: number;
  readonly name: ThemeName;
}

function renderPanel(run: LastRun, { title, bars, unit, factor, ...spot }: Panel, { x, y, name }: Place): string {
  const theme = THEMES[name];
  const values = bars.flatMap((contender) => {
    const value = findMedian(run, { ...spot, contender });
    return value === undefined ? [] : [{ contender, value: value * factor }];
  });
  const most = Math.max(...values.map(({ value }) => value));
  const rows = values.map(({ contender, value }, index) => {
    const top = y + 24 + index * ROW;
    const length = Math.max(1, (value / most) * PANEL.bar).toFixed(1);
    const isOurs = contender.startsWith('mcp-portage');
    const label = LABELS[contender] ?? contender;
    return (
      `<text x="${x + PANEL.label - 8}" y="${top + 11}" text-anchor="end"${isOurs ? ' font-weight="600"' : ''}>${escapeXml(label)}</text>` +
      `<rect x="${x + PANEL.label}" y="${top + 1}" width="${length}" height="12" rx="2" fill="${isOurs ? theme.accent : theme.bar}"/>` +
      `<text x="${(x + PANEL.label + Number(length) + 6).toFixed(1)}" y="${top + 11}" fill="${theme.faint}">${formatNumber(value)} ${unit}</text>`
    );
  });
  return [
    `<text x="${x + 16}" y="${y + 12}" font-weight="600" font-size="13">${escapeXml(title)}</text>`,
    ...rows,
  ].join('\n');
}
