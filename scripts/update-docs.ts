/** Brings the generated parts of the documents up to date; tests fail when they are not. Needs a current build. */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { renderCapacity, renderClusterResults } from '../bench/report/capacity.ts';
import { renderChart } from '../bench/report/chart.ts';
import type { ClusterRun } from '../bench/report/cluster-run.ts';
import type { LastRun } from '../bench/report/last-run.ts';
import { renderPage } from '../bench/report/page.ts';
import { renderPlot } from '../bench/report/plot.ts';
import { renderResults } from '../bench/report/results-page.ts';
import { COMPATIBILITY_PARTS } from './compatibility-tables.ts';
import { renderConfigSchema } from './config-schema.ts';
import { renderDiagram } from './diagram.ts';
import { renderFolders } from './folders-picture.ts';
import { generatedPart, withGeneratedPart } from './generated-part.ts';
import { renderHostTable } from './host-table.ts';
import { renderLibraryOptions } from './library-options.ts';
import { renderManPage } from './man-page.ts';
import { renderOptionsTable } from './options-table.ts';
import { THEME_NAMES } from './picture-themes.ts';
import { asBlock, PROBES, withoutTimes } from './probe-reports.ts';
import { record } from './recording/record.ts';
import { keepTime, renderRecording } from './recording/render.ts';

const ROOT = new URL('../', import.meta.url);

await writeFile(new URL('docs/reference/config.schema.json', ROOT), renderConfigSchema());
await writeFile(new URL('src/library/option-types.ts', ROOT), renderLibraryOptions());
await writeFile(new URL('man/mcp-portage.1', ROOT), renderManPage());

const lastRun: LastRun = JSON.parse(await readFile(new URL('bench/last-run.json', ROOT), 'utf8'));
await writeFile(new URL('docs/internals/performance.md', ROOT), renderPage(lastRun));
await writeFile(new URL('bench/results.md', ROOT), renderResults(lastRun));
await writeFile(new URL('docs/internals/performance.svg', ROOT), renderPlot(lastRun));
for (const theme of THEME_NAMES) {
  await writeFile(new URL(`docs/pictures/who-talks-to-whom-${theme}.svg`, ROOT), renderDiagram(theme));
  const folders = renderFolders(theme, fileURLToPath(new URL('src', ROOT)));
  await writeFile(new URL(`docs/pictures/folders-${theme}.svg`, ROOT), folders);
  await writeFile(new URL(`docs/pictures/comparison-${theme}.svg`, ROOT), renderChart(lastRun, theme));
}

const recording = new URL('docs/pictures/quick-start.svg', ROOT);
await writeFile(recording, renderRecording(keepTime(await record(), await readFile(recording, 'utf8'))));

const clusterRun: ClusterRun = JSON.parse(await readFile(new URL('bench/last-cluster-run.json', ROOT), 'utf8'));
await writeFile(new URL('bench/cluster-results.md', ROOT), renderClusterResults(clusterRun));
await updateParts('docs/reference/scaling.md', { capacity: () => renderCapacity(clusterRun) });
await updateParts('README.md', { hosts: renderHostTable });
await updateParts('docs/reference/options.md', { options: renderOptionsTable });
await updateParts('docs/reference/compatibility.md', COMPATIBILITY_PARTS);

const guide = new URL('docs/guide/probe.md', ROOT);
let text = await readFile(guide, 'utf8');
for (const [name, probe] of Object.entries(PROBES)) {
  const block = asBlock(await probe());
  // Other times alone are no reason for a change.
  if (withoutTimes(block) !== withoutTimes(generatedPart(text, name))) text = withGeneratedPart(text, name, block);
}
await writeFile(guide, text);

async function updateParts(path: string, parts: Readonly<Record<string, () => string>>): Promise<void> {
  const file = new URL(path, ROOT);
  let document = await readFile(file, 'utf8');
  for (const [name, render] of Object.entries(parts)) document = withGeneratedPart(document, name, render());
  await writeFile(file, document);
}
