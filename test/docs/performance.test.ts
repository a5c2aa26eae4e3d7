import { readFile } from 'node:fs/promises';
import test from 'ava';
import type { LastRun } from '../../bench/report/last-run.ts';
import { renderPage } from '../../bench/report/page.ts';
import { renderPlot } from '../../bench/report/plot.ts';
import { renderResults } from '../../bench/report/results-page.ts';

const root = new URL('../../', import.meta.url);
const svg = await readFile(new URL('docs/internals/performance.svg', root), 'utf8');

const run: LastRun = JSON.parse(await readFile(new URL('bench/last-run.json', root), 'utf8'));

test('the picture is drawn from the last run', (t) => {
  t.is(svg, renderPlot(run));
});

test('the figures of the pages are those of the last run (npm run bench -- --write)', async (t) => {
  t.is(await readFile(new URL('docs/internals/performance.md', root), 'utf8'), renderPage(run));
  t.is(await readFile(new URL('bench/results.md', root), 'utf8'), renderResults(run));
});

test('no text of the picture is clipped, whatever the font', (t) => {
  const width = Number(/ width="(\d+)"/.exec(svg)?.[1]);
  const texts = [...svg.matchAll(/<text x="([\d.]+)"([^>]*)>([^<]*)</g)];
  t.true(texts.length > 100);
  for (const [, x = '', attributes = '', text = ''] of texts) {
    // Of bold Verdana, the widest of the common ones.
    const length = text.length * 0.72 * (attributes.includes('title') ? 12 : 11);
    if (attributes.includes('end')) t.true(Number(x) - length > 0, text);
    else if (!attributes.includes('middle')) t.true(Number(x) + length < width, text);
  }
});
