/** npm run bench: measures, prints, and keeps the figures. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ownPort } from '../test/support/own-port.ts';
import { parseArguments, USAGE } from './arguments.ts';
import { httpServer, rootPath } from './bridges/programs.ts';
import { STEPS } from './measure/everything.ts';
import { startService, stop, waitForPlace } from './measure/processes.ts';
import { Records } from './measure/records.ts';
import { describeRun, type LastRun } from './report/last-run.ts';
import { renderPage } from './report/page.ts';
import { renderPlot } from './report/plot.ts';
import { renderResults } from './report/results-page.ts';
import { renderRun } from './report/run-text.ts';
import { renderStalls } from './report/stall-table.ts';
import { renderGaps, renderTables } from './report/tables.ts';
import { renderTargets } from './report/target-table.ts';

const LAST_RUN = join(rootPath, 'bench/last-run.json');
const PAGE = join(rootPath, 'docs/internals/performance.md');
const RESULTS = join(rootPath, 'bench/results.md');
const PLOT = join(rootPath, 'docs/internals/performance.svg');

const given = parseArguments(process.argv.slice(2));
const unknown = given?.only.filter((name) => !STEPS.some((step) => step.name === name)) ?? [];
if (given === undefined || unknown.length > 0) {
  const names = STEPS.map(({ name }) => name).join(', ');
  console.error(`${unknown.length > 0 ? `No case ${unknown.join(', ')}.\n` : ''}${USAGE}\n\nCases: ${names}`);
  process.exit(2);
}

if (given.isWriting) {
  const run = JSON.parse(readFileSync(LAST_RUN, 'utf8')) as LastRun;
  writeFileSync(PAGE, renderPage(run));
  writeFileSync(RESULTS, renderResults(run));
  writeFileSync(PLOT, renderPlot(run));
  process.exit(0);
}

const steps = STEPS.filter(
  ({ name, kind }) =>
    (given.only.length === 0 || given.only.includes(name)) && (given.mode === 'full' || kind === 'checks'),
);
const port = await ownPort();
const server = { port, started: startService(httpServer(port)) };
await waitForPlace(port, server.started);
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));

const records = new Records();
const startedAt = performance.now();
for (const step of steps) {
  const stepStartedAt = performance.now();
  process.stderr.write(`${step.name} …`);
  await step.run(server, given.effort, records);
  process.stderr.write(` ${((performance.now() - stepStartedAt) / 1000).toFixed(1)} s\n`);
}
await stop(server.started);

const run = describeRun(given, records, (performance.now() - startedAt) / 1000);
if (given.mode === 'full') {
  writeFileSync(LAST_RUN, renderRun(run));
  console.log(renderTables(run));
  console.log(renderTargets(run));
  console.log(renderStalls(run));
}
if (given.jsonPath !== undefined) writeFileSync(given.jsonPath, renderRun(run));
console.log(renderGaps(run));

// What a peer gets wrong is a finding; what we or the floor get wrong is a mistake.
const mistakes = run.gaps.filter(
  ({ kind, contender }) => kind === 'failed' && /^(mcp-portage|floor|direct)/.test(contender),
);
const checked = new Set(run.figures.map((figure) => `${figure.case} ${figure.workload} ${figure.contender}`)).size;
console.log(`${checked} passed, ${mistakes.length} failed`);
process.exit(mistakes.length === 0 ? 0 : 1);
