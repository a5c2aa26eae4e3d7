import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { REPOSITORY } from '../support/bridge.ts';

const lint = (...files: string[]) =>
  promisify(execFile)(process.execPath, ['scripts/lint-workflows.js', ...files], { cwd: REPOSITORY });

test('the workflows are as GitHub expects them', async (t) => {
  await t.notThrowsAsync(lint());
});

const MISTAKES = `on: push
permissions:
  atestations: write
jobs:
  build:
    runs-on: ubuntu-latest
    needs: check
    steps:
      - run: echo \${{ steps.tag.outputs.name }}
      - run: echo \${{ startWith('a', 'b') }}
`;

test('a permission, a job, a step or a function that does not exist is named with its line', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'workflows-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'mistakes.yml');
  await writeFile(file, MISTAKES);
  const { stderr, code } = await t.throwsAsync<Error & { stderr: string; code: number }>(lint(file));
  t.is(code, 1);
  for (const [line, words] of [
    [3, "Unexpected value 'atestations'"],
    [7, "Value 'check' is not valid"],
    [9, 'Context access might be invalid: tag'],
    [10, "Unrecognized function: 'startWith'"],
  ]) {
    t.true(
      stderr.split('\n').some((each) => each.includes(`:${line}: `) && each.includes(String(words))),
      `${line}: ${stderr}`,
    );
  }
});
