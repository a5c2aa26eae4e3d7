/** docs/internals/performance.md, from the last run. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootPath } from '../bridges/programs.ts';
import { CASES } from '../cases.ts';
import { renderGrowth } from './growth.ts';
import type { LastRun } from './last-run.ts';
import { renderStalls } from './stall-table.ts';
import { renderGaps, renderTables } from './tables.ts';
import { renderTargets } from './target-table.ts';

/** What no figure says: written by hand. */
const ACCOUNT = join(rootPath, 'bench/above-the-floor.md');

export function renderPage(run: LastRun): string {
  const { machine, versions } = run;
  const listed = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `<!-- Made by \`npm run bench -- --write\` from bench/last-run.json and bench/above-the-floor.md. -->
# Performance

Measured on ${run.date} on ${machine.cores} cores of ${machine.cpu} with ${machine.memoryGiB} GiB, ${machine.os}:
${listed.join(', ')}.
${run.rounds} rounds, ${Math.round(run.seconds / 60)} minutes. \`npm run bench\` does it again; [bench/README.md](../../bench/README.md) says how.

CPU is that of the bridge's own process, without its children. The **floor** is the least that \`node:http\` and pipes
need to pass a call on; **direct** is a client without a bridge. Every figure is a median over the rounds, every ratio
the median of the rounds' ratios, and every answer was checked.

![Processor time by bridge and case](performance.svg)

## Targets

${renderTargets(run)}

${readFileSync(ACCOUNT, 'utf8').trim()}

## How cost grows

${renderGrowth(run)}

## Worst messages

How long one message of 16 MiB keeps the bridge from serving anybody else: the longest time in which its event loop stood
still, by what the message is filled with and where. The floor is a loop that looks at each of its bytes once. To check
that so many small values are JSON takes four or five such loops by itself. The worst of some hundreds that were tried:

${renderStalls(run)}

## Who can do what

${renderWhoCan()}

## Figures

${renderTables(run)}

## Not measured

${renderGaps(run)}
`;
}

function renderWhoCan(): string {
  const names = ['mcp-portage', 'supergateway', 'mcp-proxy', 'mcp-remote'] as const;
  const rows = CASES.map(({ title, entrants, absent }) => {
    const cells = names.map((name) =>
      entrants.some((entrant) => entrant.name === name)
        ? 'yes'
        : `no: ${absent.find((one) => one.name === name)?.reason ?? ''}`,
    );
    return `| ${title} | ${cells.join(' | ')} |`;
  });
  return [`| | ${names.join(' | ')} |`, '|---|---|---|---|---|', ...rows].join('\n');
}
