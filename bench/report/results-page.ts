/** bench/results.md: every figure of the last run. */
import { CASES } from '../cases.ts';
import type { LastRun } from './last-run.ts';
import { renderOrigin } from './page.ts';
import { renderStalls } from './stall-table.ts';
import { renderGaps, renderTables } from './tables.ts';
import { renderTargets } from './target-table.ts';

export function renderResults(run: LastRun): string {
  return `<!-- Made by \`npm run bench -- --write\` from bench/last-run.json. -->
# All results of the last run

${renderOrigin(run)}

CPU is that of the bridge's own process, without its children. The **floor** is the least that \`node:http\` and pipes
need to pass a call on; **direct** is a client without a bridge. Every figure is a median over the rounds, and every ratio
is the median of the rounds' ratios.

The tables "by who looks" compare the same bridge without any observation (\`--no-status --log-level warn\`), with the
defaults, and with status, metrics, usage and audit. \`npm run bench -- --case observed\` measures them alone.

## Figures

${renderTables(run)}

## Worst messages

How long one message of 16 MiB keeps the bridge from serving anybody else: the longest time in which its event loop stood
still, by what the message is filled with and where. The floor is a loop that looks at each of its bytes once. To check
that so many small values are JSON takes four or five such loops by itself. The worst of some hundreds that were tried:

${renderStalls(run)}

## Targets

${renderTargets(run)}

## Who can do what

${renderWhoCan()}

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
