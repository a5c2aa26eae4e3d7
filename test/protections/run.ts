/**
 * `npm run protections [-- --only text]`: takes out each protection in turn, in a copy of the project, and runs the test
 * that is there to notice. Exits with 1 if one does not fail, or fails with the protection in place.
 */
import { parseArgs } from 'node:util';
import { PROTECTIONS } from './list.ts';
import type { Protection } from './protection.ts';
import { type TestRun, Workspace } from './workspace.ts';

type Verdict =
  | { readonly kind: 'noticed'; readonly by: string }
  /** Why it does not count. */
  | { readonly kind: 'missed'; readonly complaint: string };

/** A test that fails for one of these says nothing about the promise: what was left is no program. */
const NO_PROGRAM = /^.*(?:Build failed|ReferenceError|ERR_MODULE_NOT_FOUND).*$/m;

const { values } = parseArgs({ options: { only: { type: 'string' } } });
const chosen = PROTECTIONS.filter(({ promise, file }) => `${promise} ${file}`.includes(values.only ?? ''));
if (chosen.length === 0) throw new Error(`--only ${values.only} chooses none of ${PROTECTIONS.length} protections`);

async function tryWithout(workspace: Workspace, protection: Protection): Promise<Verdict> {
  let verdict: Verdict = missed('it was not tried');
  try {
    await workspace.without(protection, async () => {
      if (protection.needsBuild) await workspace.build();
      verdict = judge(await workspace.test(protection));
    });
  } catch (error) {
    verdict = missed(error instanceof Error ? error.message : String(error));
  }
  return verdict;
}

function judge({ failed: [first], output }: TestRun): Verdict {
  if (first === undefined) return missed('no test noticed');
  const broken = NO_PROGRAM.exec(output)?.[0];
  return broken === undefined ? { kind: 'noticed', by: first } : missed(`what was left does not run:\n${broken}`);
}

function missed(complaint: string): Verdict {
  return { kind: 'missed', complaint };
}

const startedMs = Date.now();
const workspace = await Workspace.create();
let noticed = 0;
try {
  await workspace.build();
  const whole = await workspace.test({ tests: [...new Set(chosen.flatMap(({ tests }) => tests))] });
  if (whole.failed.length > 0 || whole.passed === 0) throw new Error(`with everything in place:\n${whole.output}`);
  for (const protection of chosen) {
    const verdict = await tryWithout(workspace, protection);
    const isNoticed = verdict.kind === 'noticed';
    console.log(`${isNoticed ? 'noticed' : 'MISSED '}  ${protection.promise} (${protection.file})`);
    console.log(`         ${isNoticed ? `✘ ${verdict.by}` : verdict.complaint}`);
    if (isNoticed) noticed += 1;
  }
} finally {
  await workspace.remove();
}
const minutes = ((Date.now() - startedMs) / 60_000).toFixed(1);
console.log(`${noticed} of ${chosen.length} protections were noticed when missing, in ${minutes} minutes`);
process.exitCode = noticed === chosen.length ? 0 : 1;
