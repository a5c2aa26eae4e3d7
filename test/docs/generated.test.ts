import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { renderCapacity, renderClusterResults } from '../../bench/report/capacity.ts';
import { renderChart } from '../../bench/report/chart.ts';
import type { ClusterRun } from '../../bench/report/cluster-run.ts';
import type { LastRun } from '../../bench/report/last-run.ts';
import { renderDiagram } from '../../scripts/diagram.ts';
import { renderFolders } from '../../scripts/folders-picture.ts';
import { generatedPart } from '../../scripts/generated-part.ts';
import { renderHostTable } from '../../scripts/host-table.ts';
import { renderOptionsTable } from '../../scripts/options-table.ts';
import { THEME_NAMES } from '../../scripts/picture-themes.ts';
import { asBlock, PROBES, withoutTimes } from '../../scripts/probe-reports.ts';
import { documentAt, ROOT } from './documents.ts';

const textOf = (path: string): Promise<string> => readFile(new URL(path, ROOT), 'utf8');

test('the table of options is up to date (npm run docs)', (t) => {
  t.is(generatedPart(documentAt('docs/reference/options.md'), 'options'), renderOptionsTable());
});

test('what the README tells to paste into hosts is what mcp-portage snippet says (npm run docs)', (t) => {
  t.is(generatedPart(documentAt('README.md'), 'hosts'), renderHostTable());
});

test('the reference and the results have the figures of the last run of several replicas (npm run docs)', async (t) => {
  const run: ClusterRun = JSON.parse(await textOf('bench/last-cluster-run.json'));
  t.is(generatedPart(documentAt('docs/reference/scaling.md'), 'capacity'), renderCapacity(run));
  t.is(documentAt('bench/cluster-results.md'), renderClusterResults(run));
});

for (const [name, probe] of Object.entries(PROBES)) {
  test(`the guide shows what comes out, but for the times: ${name} (npm run docs)`, async (t) => {
    const guide = documentAt('docs/guide/probe.md');
    t.is(withoutTimes(generatedPart(guide, name)), withoutTimes(asBlock(await probe())));
  });
}

for (const theme of THEME_NAMES) {
  test(`the ${theme} pictures of the README are up to date (npm run docs)`, async (t) => {
    const run: LastRun = JSON.parse(await textOf('bench/last-run.json'));
    t.is(await textOf(`docs/pictures/comparison-${theme}.svg`), renderChart(run, theme));
    t.is(await textOf(`docs/pictures/who-talks-to-whom-${theme}.svg`), renderDiagram(theme));
  });

  test(`the ${theme} picture of the architecture shows the folders as they are (npm run docs)`, async (t) => {
    const source = fileURLToPath(new URL('src', ROOT));
    t.is(await textOf(`docs/pictures/folders-${theme}.svg`), renderFolders(theme, source));
  });
}
