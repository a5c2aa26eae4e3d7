/** Processor time of a call, by bridge and case, as an SVG: one panel a workload, one bar a bridge, logarithmic. */
import type { Contender } from '../cases.ts';
import { findMedian, type LastRun } from './last-run.ts';
import { formatNumber, TABLES, type Table } from './tables.ts';

const BRIDGES: readonly { readonly name: Contender; readonly color: string }[] = [
  { name: 'floor', color: '#8a8f98' },
  { name: 'mcp-portage', color: '#1f6feb' },
  { name: 'mcp-portage-shared', color: '#6ea8fe' },
  { name: 'supergateway', color: '#d1495b' },
  { name: 'mcp-proxy', color: '#edae49' },
  { name: 'mcp-remote', color: '#8f5fbf' },
];

const LEFT = 150;
const BAR = 14;
const GAP = 3;
const PANEL_GAP = 30;
const PLOT_WIDTH = 520;
const RIGHT = 80;
const LINE_HEIGHT = 15;
const TITLE_GAP = 5;
/** Fits into the width in bold letters of every common font; the widest take 0.7 em each on average. */
const MAX_TITLE_LENGTH = 84;
const TOP = 44;

export function renderPlot(run: LastRun): string {
  const panels = TABLES.filter(
    (table) => table.columns.some(({ metric }) => metric === 'cpu') && table.case !== 'memory',
  )
    .map((table) => ({ table, bars: readBars(run, table) }))
    .filter(({ bars }) => bars.length > 1);
  const values = panels.flatMap(({ bars }) => bars.map(({ value }) => value));
  const least = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const most = 10 ** Math.ceil(Math.log10(Math.max(...values)));
  const widthOf = (value: number): number => (PLOT_WIDTH * Math.log10(value / least)) / Math.log10(most / least);

  let y = TOP;
  const parts: string[] = [];
  for (const { table, bars } of panels) {
    for (const line of wrapTitle(table.title)) {
      parts.push(`<text x="8" y="${y + 12}" class="title">${escapeXml(line)}</text>`);
      y += LINE_HEIGHT;
    }
    y += TITLE_GAP;
    for (const { name, color, value } of bars) {
      const width = Math.max(1, widthOf(value)).toFixed(1);
      parts.push(
        `<text x="${LEFT - 6}" y="${y + 11}" text-anchor="end">${name}</text>` +
          `<rect x="${LEFT}" y="${y}" width="${width}" height="${BAR}" fill="${color}"/>` +
          `<text x="${(LEFT + Number(width) + 5).toFixed(1)}" y="${y + 11}">${formatMicros(value)}</text>`,
      );
      y += BAR + GAP;
    }
    y += PANEL_GAP - GAP;
  }
  const width = LEFT + PLOT_WIDTH + RIGHT;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" role="img">
<title>Processor time of the bridge's own process by bridge and case</title>
<style>text{font:11px sans-serif;fill:#24292f}.title{font-weight:bold;font-size:12px}</style>
<rect width="100%" height="100%" fill="#fff"/>
<text x="8" y="18" class="title">Processor time of the bridge's own process for one call, or one start; logarithmic</text>
${renderAxis(least, most, y, widthOf)}
${parts.join('\n')}
</svg>
`;
}

/** SVG breaks no lines. */
function wrapTitle(title: string): readonly string[] {
  const lines: string[] = [];
  for (const word of title.split(' ')) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > MAX_TITLE_LENGTH) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}

/** A line at each power of ten. */
function renderAxis(least: number, most: number, height: number, widthOf: (value: number) => number): string {
  const lines: string[] = [];
  for (let value = least; value <= most * 1.01; value *= 10) {
    const x = (LEFT + widthOf(value)).toFixed(1);
    lines.push(
      `<line x1="${x}" x2="${x}" y1="${TOP - 6}" y2="${height}" stroke="#d0d7de"/>` +
        `<text x="${x}" y="${TOP - 10}" text-anchor="middle">${formatMicros(value)}</text>`,
    );
  }
  return lines.join('\n');
}

function readBars(run: LastRun, { case: name, workload }: Table) {
  return BRIDGES.flatMap((bridge) => {
    const value = findMedian(run, { case: name, workload, contender: bridge.name, metric: 'cpu' });
    return value === undefined || value <= 0 ? [] : [{ ...bridge, value }];
  });
}

function formatMicros(micros: number): string {
  if (micros >= 1e6) return `${formatNumber(micros / 1e6)} s`;
  return micros >= 1000 ? `${formatNumber(micros / 1000)} ms` : `${formatNumber(micros)} µs`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
