/**
 * The official conformance suite as a referee, in both its roles: a server is scored directly and behind the bridge, a
 * client directly and before it; one that needs a token, and tasks, with it only. Fails when the bridge costs a single check that is not listed in
 * expected-differences.json. Needs a build; the last line counts checks compared.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { scoreAuthorizationRole } from './authorization-role.ts';
import { scoreClientRole } from './client-role.ts';
import { compareScores, type ExpectedDifference, type RoleScores } from './compare.ts';
import { bundlePrograms, bundleSuite } from './programs.ts';
import { printDifferences, printTable } from './report.ts';
import { scoreServerRole } from './server-role.ts';
import type { SuiteRevision } from './suite.ts';
import { findSuite } from './suite-command.ts';
import { scoreTasksRole } from './tasks-role.ts';
import { Turns } from './turns.ts';

/** Each run waits for processes to start and for the time limits of others: as many as keep the processors busy. */
const AT_A_TIME = availableParallelism() + 1;
const EXPECTED = new URL('./expected-differences.json', import.meta.url);

const installed = await findSuite();
// Nothing is fetched from now on. Node decodes these certificates and all its own at each start, which takes longer than the
// rest of a start.
delete process.env.NODE_EXTRA_CA_CERTS;
const results = await mkdtemp(join(tmpdir(), 'mcp-portage-conformance-'));
const suite = await bundleSuite(installed, join(results, 'suite'));
const programs = await bundlePrograms(join(results, 'programs'));
/** By role and by what was compared with the direct score. */
const allowed: Readonly<Record<string, Readonly<Record<string, readonly ExpectedDifference[]>>>> = JSON.parse(
  await readFile(EXPECTED, 'utf8'),
);

let passed = 0;
/** A line for each check that failed, said at the end, where a reader of a long log looks. */
const failures: string[] = [];
const turns = new Turns(AT_A_TIME);
const roles = (['2025-11-25', '2026-07-28'] satisfies SuiteRevision[]).flatMap((revision) =>
  [scoreServerRole, scoreClientRole, scoreAuthorizationRole].map((score) =>
    score({ suite, programs, revision, results, turns }),
  ),
);
roles.push(scoreTasksRole({ suite, programs, revision: '2026-07-28', results, turns }));
for (const role of roles) judge(await role);

for (const failure of failures) console.log(`\n${failure}`);
if (failures.length === 0) await rm(results, { recursive: true });
else console.log(`\nDetails of every check: ${results}`);
console.log(`\nconformance: ${passed} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 ? 0 : 1;

function judge({ title, baseline, direct, bridged }: RoleScores): void {
  console.log(`\n${title}`);
  printTable({ [baseline]: direct, ...bridged });
  const unsound = [...direct].filter(
    ([, { status, isRequired }]) => isRequired && (status === 'FAILURE' || status === 'WARNING'),
  );
  for (const [check, { status, explanation }] of unsound) {
    failures.push(
      `${title}: ${check} does not pass directly (${status}): the fixture is at fault. ${explanation ?? ''}`,
    );
  }
  for (const [target, score] of Object.entries(bridged)) {
    const expected = allowed[title]?.[target] ?? [];
    const comparison = compareScores(direct, score, expected);
    failures.push(...printDifferences(`${title}, ${target}`, comparison, expected));
    passed += comparison.passed;
  }
}
