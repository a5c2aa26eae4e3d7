/**
 * `npm run protections [-- --only text]`: takes out each protection in turn, in a copy of the project, and runs the test
 * that is there to notice. Exits with 1 if one does not fail, or fails with the protection in place.
 */
import { parseArgs } from 'node:util';
import { PROTECTIONS } from './list.ts';
import type { Protection } from './protection.ts';
import { Workspace } from './workspace.ts';

/** Why it does not count; undefined when a test noticed. */
type Complaint = string | undefined;

const { values } = parseArgs({ options: { only: { type: 'string' } } });
const chosen = PROTECTIONS.filter(({ promise, file }) => `${promise} ${file}`.includes(values.only ?? ''));
if (chosen.length === 0) throw new Error(`--only ${values.only} chooses none of ${PROTECTIONS.length} protections`);

async function tryWithout(workspace: Workspace, protection: Protection): Promise<Complaint> {
  let complaint: Complaint;
  try {
    await workspace.without(protection, async () => {
      if (protection.needsBuild) await workspace.build();
      const { failed, passed, output } = await workspace.test(protection.tests);
      // Where nothing passes, the file may just not run any more.
      if (failed === 0) complaint = passed === 0 ? `no test ran:\n${output}` : 'no test noticed';
    });
  } catch (error) {
    complaint = error instanceof Error ? error.message : String(error);
  }
  return complaint;
}

const workspace = await Workspace.create();
let missed = 0;
try {
  await workspace.build();
  const whole = await workspace.test([...new Set(chosen.flatMap(({ tests }) => tests))]);
  if (whole.failed > 0 || whole.passed === 0) throw new Error(`with everything in place:\n${whole.output}`);
  for (const protection of chosen) {
    const complaint = await tryWithout(workspace, protection);
    console.log(`${complaint === undefined ? 'noticed' : 'MISSED '}  ${protection.promise} (${protection.file})`);
    if (complaint === undefined) continue;
    missed += 1;
    console.log(complaint);
  }
} finally {
  await workspace.remove();
}
console.log(`${chosen.length - missed} protections noticed when missing, ${missed} not`);
process.exitCode = missed === 0 ? 0 : 1;
