import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Programs } from './programs.ts';
import type { SuiteCommand } from './suite-command.ts';
import type { Turns } from './turns.ts';

const SUITE_TIMEOUT_MS = 5 * 60_000;
const COMPILED = fileURLToPath(new URL('../../node_modules/.cache/mcp-portage/conformance', import.meta.url));

export type CheckStatus = 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED';

/** Whose requirements are checked. */
export type SuiteRevision = '2025-11-25' | '2026-07-28';

/** One role of the suite, without and with the bridge. */
export interface RoleRun {
  readonly suite: SuiteCommand;
  readonly programs: Programs;
  readonly revision: SuiteRevision;
  /** A folder for what the suite writes. */
  readonly results: string;
  /** Each run of the suite takes one. */
  readonly turns: Turns;
}

export interface CheckOutcome {
  readonly status: CheckStatus;
  /** False: of an extension, or of a scenario that is not part of the revision's requirements yet. */
  readonly isRequired: boolean;
  readonly explanation: string | undefined;
}

/** Outcomes by `scenario / check id`; a repeated id gets ` #2` and so on. */
export type Score = ReadonlyMap<string, CheckOutcome>;

/** As the suite lists what it has run but does not score. */
const OPTIONAL_SCENARIO = /^ {2}\S (\S+) \((?:extension|pending)\)$/gm;

interface CheckRecord {
  readonly id: string;
  readonly status: CheckStatus;
  readonly errorMessage?: string;
}

export interface ServerRun {
  readonly suite: SuiteCommand;
  readonly revision: SuiteRevision;
  readonly url: URL;
  readonly outputDir: string;
}

/** Runs the server role of the official suite against `url`. Rejects when the suite itself could not run. */
export async function scoreServer({ suite, revision, url, outputDir }: ServerRun): Promise<Score> {
  const output = await runSuite(suite, ['server', '--requirements', revision, '--url', url.href, '-o', outputDir]);
  return readScore(outputDir, output);
}

export interface ServerScenarioRun extends ServerRun {
  readonly scenario: string;
}

/** Runs one scenario of the server role, which may be of an extension. Rejects when the suite itself could not run. */
export async function scoreServerScenario(run: ServerScenarioRun): Promise<Score> {
  const { suite, revision, url, scenario, outputDir } = run;
  const chosen = ['--scenario', scenario, '--spec-version', revision, '--force'];
  return readScore(outputDir, await runSuite(suite, ['server', ...chosen, '--url', url.href, '-o', outputDir]));
}

export interface ClientRun {
  readonly suite: SuiteCommand;
  readonly revision: SuiteRevision;
  /** Gets the URL of the suite's server as its last argument. */
  readonly command: string;
  readonly scenario: string;
  readonly outputDir: string;
}

/** Runs one scenario of the client role. Rejects when the suite itself could not run. */
export async function scoreClient({ suite, revision, command, scenario, outputDir }: ClientRun): Promise<Score> {
  // Without --force a scenario of an extension is passed over: it belongs to no revision.
  const chosen = ['--scenario', scenario, '--spec-version', revision, '--force'];
  const output = await runSuite(suite, ['client', ...chosen, '--command', command, '-o', outputDir]);
  return readScore(outputDir, output);
}

/** Scenarios of the client role that apply to the revision. */
export async function listClientScenarios(suite: SuiteCommand, revision: SuiteRevision): Promise<readonly string[]> {
  const output = await runSuite(suite, ['list', '--client', '--spec-version', revision]);
  const scenarios = [...output.matchAll(/^ {2}- (\S+)/gm)].map(([, name = '']) => name);
  if (scenarios.length === 0) throw new Error(`the conformance suite listed no scenarios; it said:\n${output}`);
  return scenarios;
}

/** Resolves with what was printed, whatever the exit code: a failed check is a result, not a failure to run. */
async function runSuite([node, script]: SuiteCommand, args: readonly string[]): Promise<string> {
  const child = spawn(node, [script, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: SUITE_TIMEOUT_MS,
    // To compile the suite takes half of a short run of it.
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(child, 'close');
  return Buffer.concat(chunks).toString();
}

/** A file a scenario: `<scenario>-<time>/checks.json`, in the server role with `server-` before it. */
async function readScore(outputDir: string, output: string): Promise<Score> {
  const score = new Map<string, CheckOutcome>();
  const optional = new Set([...output.matchAll(OPTIONAL_SCENARIO)].map(([, name]) => name));
  const files = await readdir(outputDir, { recursive: true }).catch(() => []);
  const folders = files.filter((file) => basename(file) === 'checks.json').map((file) => dirname(file));
  for (const folder of folders.sort()) {
    const scenario = folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
    const checks: CheckRecord[] = JSON.parse(await readFile(join(outputDir, folder, 'checks.json'), 'utf8'));
    const seen = new Map<string, number>();
    for (const { id, status, errorMessage } of checks) {
      const count = (seen.get(id) ?? 0) + 1;
      seen.set(id, count);
      const key = `${scenario} / ${id}${count > 1 ? ` #${count}` : ''}`;
      score.set(key, { status, isRequired: !optional.has(scenario), explanation: errorMessage });
    }
  }
  if (score.size === 0) throw new Error(`the conformance suite reported nothing; it said:\n${output}`);
  return score;
}
