/** Real reports of `mcp-portage probe` for its guide, by the built program. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const REPOSITORY = fileURLToPath(new URL('..', import.meta.url));
const SERVER = '@modelcontextprotocol/server-everything';
/** What a busy machine does not reach is no part of a report. */
const PROBE_TIMEOUT = '1m';

/** By the name of their place in the guide. */
export const PROBES: Readonly<Record<string, () => Promise<string>>> = {
  'probe of a command': () => probe('--', 'npx', '-y', SERVER),
};

/** As a block of Markdown. */
export function asBlock(report: string): string {
  return `\`\`\`\n${report.trimEnd()}\n\`\`\``;
}

/**
 * Two reports are the same when they differ in times only. Whether a server that is still being started answers its first
 * question before it is asked the next one is a matter of time as well.
 */
export function withoutTimes(report: string): string {
  return report
    .replace(/(server\/discover +)(?:error -32601 "Method not found"|no answer within \d+ ms)/, '$1no method')
    .replaceAll(/ *\d+(\.\d+)? m?s\b/g, ' … ms');
}

async function probe(...argv: string[]): Promise<string> {
  const args = ['bin/mcp-portage.js', 'probe', '--timeout', PROBE_TIMEOUT, ...argv];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: REPOSITORY });
  return stdout;
}
