/** docs/internals/performance.md, from the last run: what somebody reads who chooses a bridge, or operates one. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootPath } from '../bridges/programs.ts';
import { renderComparison } from './comparison.ts';
import { renderGrowth } from './growth.ts';
import type { LastRun } from './last-run.ts';
import { countTargets } from './target-table.ts';

/** What no figure says: written by hand. */
const ACCOUNT = join(rootPath, 'bench/above-the-floor.md');

export function renderPage(run: LastRun): string {
  const { met, missed, belowFloor } = countTargets(run);
  return `<!-- Made by \`npm run bench -- --write\` from bench/last-run.json and bench/above-the-floor.md. -->
# Performance

${renderOrigin(run)} \`npm run bench\` measures everything anew;
[bench/README.md](../../bench/README.md) says how. All tables of the last run are in
[bench/results.md](../../bench/results.md), and what was tried to make the bridge faster is in
[bench/what-was-tried.md](../../bench/what-was-tried.md).

Other figures hold on other machines; the ratios differ less. Every bridge of a case ran side by side with the others, and
every answer was checked.

## Beside other bridges

The second column is what mcp-portage takes. The others say how many times as much another bridge takes of the same:
15× means fifteen times as much. **cannot** stands where a bridge does not offer it, and **failed** where it gave a wrong
answer or none. CPU is that of the bridge's own process. mcp-proxy has one server process for all its clients, which
mcp-portage has with \`--isolation shared\`; by default each client gets one, as with supergateway.

${renderComparison(run)}

![Processor time by bridge and case](performance.svg)

## Beside the least that is possible

The **floor** is a program that passes bytes on with \`node:http\` and pipes, and does nothing else. Nobody should run it, but
no bridge on Node can be cheaper. mcp-portage has set itself targets against the floor and against other bridges. Of the
${met + missed} that were measured, the last run met ${met} and missed ${missed}. Of those that it missed, ${belowFloor} ask for less than the floor
itself takes.

## How cost grows

${renderGrowth(run)}

The longest time for which one message can keep the bridge from serving anybody else is [in the
results](../../bench/results.md#worst-messages). Such a message has 16 MiB and is built for that purpose.

${readFileSync(ACCOUNT, 'utf8').trim()}
`;
}

/** When, where and with which versions a run was made. */
export function renderOrigin({ date, machine, versions, rounds, seconds }: LastRun): string {
  const listed = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `Measured on ${date} on ${machine.cores} cores of ${machine.cpu} with ${machine.memoryGiB} GiB, ${machine.os}:
${listed.join(', ')}.
${rounds} rounds, ${Math.round(seconds / 60)} minutes.`;
}
