import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import { REPOSITORY } from '../support/bridge.ts';
import { TYPESCRIPT } from '../support/typescript.ts';

const runTrace = (name: string) =>
  promisify(execFile)(process.execPath, [TYPESCRIPT, 'scripts/trace/run.ts', name], { cwd: REPOSITORY });

test('the trace of a path prints its steps in order, then its files and new objects, and counts them', async (t) => {
  const { stdout } = await runTrace('streamable');
  const [title = '', counts = '', ...rest] = stdout.split('\n');
  t.is(title, 'Streamable HTTP → stdio');
  const found = /^(\d+) files, (\d+) functions, (\d+) new objects; goal: ≤ 45 files, ≤ 10 objects$/.exec(counts);
  const [files = 0, functions = 0, objects = 0] = (found ?? []).slice(1).map(Number);
  t.truthy(found, counts);

  const filesAt = rest.indexOf('Files, with how many of their functions are entered:');
  const objectsAt = rest.indexOf('New objects:');
  const steps = rest.slice(0, filesAt).filter((line) => /\S {2}\S+\.ts:\d+$/.test(line));
  const listed = rest.slice(filesAt + 1, objectsAt).filter((line) => line !== '');
  const made = rest.slice(objectsAt + 1).filter((line) => line !== '');

  const way = ['downstream/', 'relay/', 'upstream/', 'process/'];
  const places = way.map((folder) => steps.findIndex((line) => line.includes(`  ${folder}`)));
  t.false(places.includes(-1), stdout);
  t.deepEqual(
    places.toSorted((one, other) => one - other),
    places,
    'the request comes to the server before the relay, then to the link; then the child answers',
  );
  t.regex(steps[places[0] ?? 0] ?? '', /^\S/, 'Node calls the first function');
  t.regex(steps[places[1] ?? 0] ?? '', /^ {2}/, 'a function stands below the one that calls it');
  t.true(
    steps.some((line) => /^ +new Call {2}relay\/\S+:\d+$/.test(line)),
    'a new object is a step',
  );

  t.is(listed.length, files);
  t.is(
    listed.reduce((sum, line) => sum + Number.parseInt(line, 10), 0),
    functions,
  );
  t.is(made.length, objects);
});

test('the trace of a path that is not there names those that are', async (t) => {
  const failed = await t.throwsAsync<Error & { code: number; stderr: string }>(runTrace('carrier-pigeon'));
  t.is(failed?.code, 2);
  t.regex(failed?.stderr ?? '', /no path is called carrier-pigeon; there are: streamable, .*modern-to-legacy/);
});
