/**
 * The official conformance suite as a referee: the same server is scored directly over HTTP with the SDK's transport,
 * and over stdio behind the bridge in both isolation modes. Fails when the bridge costs a single check that is not
 * listed in expected-differences.json. Needs a build; the last line counts checks compared.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startBridge } from '../support/bridge.ts';
import { compareScores, type ExpectedDifference } from './compare.ts';
import { printDifferences, printTable } from './report.ts';
import { runSuite, type Score } from './suite.ts';

type Isolation = 'session' | 'shared';

const ISOLATIONS: readonly Isolation[] = ['session', 'shared'];
const SERVER = fileURLToPath(new URL('../fixtures/everything/server.js', import.meta.url));
const EXPECTED = new URL('./expected-differences.json', import.meta.url);

const results = await mkdtemp(join(tmpdir(), 'mcp-portage-conformance-'));
const allowed: Record<Isolation, ExpectedDifference[]> = JSON.parse(await readFile(EXPECTED, 'utf8'));

const direct = await scoreDirectly();
const bridged = {
  session: await scoreThroughBridge('session'),
  shared: await scoreThroughBridge('shared'),
};
printTable({ direct, ...bridged });

const unsound = [...direct].filter(([, { status }]) => status === 'FAILURE' || status === 'WARNING');
for (const [check, { status, explanation }] of unsound) {
  console.log(`\n${check} does not pass directly (${status}): the fixture server is at fault. ${explanation ?? ''}`);
}

let passed = 0;
let failed = unsound.length;
for (const isolation of ISOLATIONS) {
  const comparison = compareScores(direct, bridged[isolation], allowed[isolation]);
  printDifferences(isolation, comparison, allowed[isolation]);
  passed += comparison.passed;
  failed += comparison.lost.length + comparison.stale.length;
}

if (failed === 0) await rm(results, { recursive: true });
else console.log(`\nDetails of every check: ${results}`);
console.log(`\nconformance: ${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

async function scoreDirectly(): Promise<Score> {
  const server = spawn(process.execPath, [SERVER, '--http', '0'], { stdio: ['ignore', 'ignore', 'pipe'] });
  try {
    for await (const line of createInterface({ input: server.stderr })) {
      const url = /^listening on (\S+)$/.exec(line)?.[1];
      if (url !== undefined) return await runSuite(new URL(url), join(results, 'direct'));
    }
    throw new Error('the fixture server ended before it listened');
  } finally {
    server.kill('SIGKILL');
  }
}

async function scoreThroughBridge(isolation: Isolation): Promise<Score> {
  const bridge = await startBridge(['--isolation', isolation, '--', process.execPath, SERVER, '--stdio']);
  try {
    return await runSuite(bridge.url, join(results, isolation));
  } finally {
    await bridge.stop();
  }
}
