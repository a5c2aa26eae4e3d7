import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const PACKAGE = '@modelcontextprotocol/conformance@0.2.0-alpha.12';
const REQUIREMENTS = '2025-11-25';
/** The suite needs Node 22; on an older one, a newer comes along as a package. */
const SUITE_NODE = 'node@24';
const SUITE_NODE_MAJOR = 22;
const SUITE_TIMEOUT_MS = 5 * 60_000;

export type CheckStatus = 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED';

export interface CheckOutcome {
  readonly status: CheckStatus;
  readonly explanation: string | undefined;
}

/** Outcomes by `scenario / check id`; a repeated id gets ` #2` and so on. */
export type Score = ReadonlyMap<string, CheckOutcome>;

interface CheckRecord {
  readonly id: string;
  readonly status: CheckStatus;
  readonly errorMessage?: string;
}

/** Runs the server role of the official suite against `url`. Rejects when the suite itself could not run. */
export async function runSuite(url: URL, outputDir: string): Promise<Score> {
  const ownNode = Number.parseInt(process.versions.node, 10) >= SUITE_NODE_MAJOR;
  const packages = ['-p', PACKAGE, ...(ownNode ? [] : ['-p', SUITE_NODE])];
  const suite = ['conformance', 'server', '--requirements', REQUIREMENTS, '--url', url.href, '-o', outputDir];
  const output = await runNpx(['-y', ...packages, '--', ...suite]);
  const score = await readScore(outputDir);
  if (score.size === 0) throw new Error(`the conformance suite reported nothing; it said:\n${output}`);
  return score;
}

/** Resolves with what was printed, whatever the exit code: a failed check is a result, not a failure to run. */
async function runNpx(args: readonly string[]): Promise<string> {
  const child = spawn('npx', args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
    timeout: SUITE_TIMEOUT_MS,
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(child, 'close');
  return Buffer.concat(chunks).toString();
}

/** One folder a scenario: `server-<scenario>-<time>/checks.json`. */
async function readScore(outputDir: string): Promise<Score> {
  const score = new Map<string, CheckOutcome>();
  const folders = await readdir(outputDir).catch(() => []);
  for (const folder of folders.sort()) {
    const scenario = folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
    const checks: CheckRecord[] = JSON.parse(await readFile(join(outputDir, folder, 'checks.json'), 'utf8'));
    const seen = new Map<string, number>();
    for (const { id, status, errorMessage } of checks) {
      const count = (seen.get(id) ?? 0) + 1;
      seen.set(id, count);
      const key = `${scenario} / ${id}${count > 1 ? ` #${count}` : ''}`;
      score.set(key, { status, explanation: errorMessage });
    }
  }
  return score;
}
