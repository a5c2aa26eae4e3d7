import { chmod, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { type ThisProcess, thisProcess } from '../../../src/io/owning-process.ts';
import type { Usage } from '../../../src/observe/usage/usage.ts';
import { ADOPT_EVERY_MS, WATCH_EVERY_MS, WRITE_EVERY_MS } from '../../../src/observe/usage/usage-file.ts';
import { composeFile, parseFileName, readUsage, STALE_MS } from '../../../src/observe/usage/usage-folder.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { CURSOR, call, createStateDirectory, createTable, EDITOR, HOUR_MS, NOON_MS, openFile } from './usage-world.ts';

/** No process has this number. */
const GONE: ThisProcess = { ...thisProcess(), pid: 2 ** 31 - 2 };
const IS_ROOT = process.getuid?.() === 0;
const HAS_MODES = process.platform !== 'win32';

function callsIn({ rows }: Usage): number {
  return rows.flatMap(({ days }) => days).reduce((sum, { calls }) => sum + calls, 0);
}

async function namesIn(stateDirectory: string): Promise<readonly string[]> {
  return (await readdir(join(stateDirectory, 'usage'))).toSorted();
}

async function readCalls(stateDirectory: string): Promise<number> {
  const { usage, problems } = await readUsage(stateDirectory, NOON_MS);
  if (problems.length > 0) throw new Error(problems.join());
  return callsIn(usage);
}

test('what is counted is written every few seconds, and when the bridge ends', async (t) => {
  const [stateDirectory, clock] = [await createStateDirectory(t), new FakeClock()];
  const { file, table, lines } = openFile(stateDirectory, clock);
  await file.flush();
  t.is(await readCalls(stateDirectory), 0);
  call(table, CURSOR);
  clock.advance(WRITE_EVERY_MS);
  await waitFor(async () => (await readCalls(stateDirectory)) === 1);
  call(table, CURSOR);
  await file.close();
  t.is(await readCalls(stateDirectory), 2);
  t.is(clock.pendingTimers, 0);
  t.deepEqual(lines, []);
  t.is((await namesIn(stateDirectory)).length, 1);
});

test('where nothing was counted nothing is written again', async (t) => {
  const [stateDirectory, clock] = [await createStateDirectory(t), new FakeClock()];
  const { file } = openFile(stateDirectory, clock);
  await file.flush();
  const path = join(stateDirectory, 'usage', (await namesIn(stateDirectory))[0] as string);
  await utimes(path, 1000, 1000);
  await file.flush();
  t.is((await stat(path)).mtimeMs, 1_000_000);
  clock.advance(WATCH_EVERY_MS);
  await file.flush();
  t.true((await stat(path)).mtimeMs > 1_000_000, 'but it tells that it still runs');
  await file.close();
});

(HAS_MODES ? test : test.skip)('nobody else can read the files', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const { file } = openFile(stateDirectory, new FakeClock());
  await file.close();
  const folder = join(stateDirectory, 'usage');
  t.is((await stat(folder)).mode & 0o777, 0o700);
  for (const name of await readdir(folder)) t.is((await stat(join(folder, name))).mode & 0o777, 0o600);
});

test('the files of processes that are gone are taken over, so their number stays', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  for (let index = 0; index < 20; index += 1) {
    const { file, table } = openFile(stateDirectory, new FakeClock(), { ...GONE, pid: GONE.pid - index });
    call(table, index % 2 === 0 ? CURSOR : EDITOR);
    await file.close();
    t.is((await namesIn(stateDirectory)).length, 1);
  }
  const { file, table } = openFile(stateDirectory, new FakeClock());
  await file.flush();
  t.is(callsIn(table.usage()), 20);
  t.is(await readCalls(stateDirectory), 20);
  await file.close();
});

test('a bridge that runs on takes over what others leave meanwhile', async (t) => {
  const [stateDirectory, clock] = [await createStateDirectory(t), new FakeClock()];
  const long = openFile(stateDirectory, clock);
  await long.file.flush();
  for (let index = 0; index < 5; index += 1) {
    const { file, table } = openFile(stateDirectory, new FakeClock(), { ...GONE, pid: GONE.pid - index });
    call(table, CURSOR);
    await file.close();
  }
  clock.advance(ADOPT_EVERY_MS);
  await long.file.flush();
  t.is((await namesIn(stateDirectory)).length, 1);
  t.is(callsIn(long.table.usage()), 5);
  await long.file.close();
});

test('many that start at once take over each file once', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const foreign: ThisProcess = { host: '00000000', pid: 1, startedAtMs: 0 };
  for (let index = 0; index < 30; index += 1) {
    const { file, table } = openFile(stateDirectory, new FakeClock(), { ...foreign, pid: index + 1 });
    call(table, CURSOR);
    await file.close();
  }
  const folder = join(stateDirectory, 'usage');
  for (const name of await readdir(folder)) await utimes(join(folder, name), 1000, 1000);
  const files = Array.from({ length: 8 }, () => openFile(stateDirectory, new FakeClock()));
  await Promise.all(files.map(({ file }) => file.flush()));
  t.is(await readCalls(stateDirectory), 30);
  t.is(
    files.reduce((sum, { table }) => sum + callsIn(table.usage()), 0),
    30,
  );
  t.true((await namesIn(stateDirectory)).length <= 8);
  await Promise.all(files.map(({ file }) => file.close()));
});

test('what runs in another container counts as gone when it has not written for long', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const other = openFile(stateDirectory, new FakeClock(), { host: '00000000', pid: process.pid, startedAtMs: 0 });
  call(other.table, CURSOR);
  await other.file.close();
  const one = openFile(stateDirectory, new FakeClock());
  await one.file.flush();
  t.is((await namesIn(stateDirectory)).length, 2);
  const name = (await namesIn(stateDirectory)).find((known) => parseFileName(known)?.host === '00000000') as string;
  const staleS = (Date.now() - STALE_MS - 1000) / 1000;
  await utimes(join(stateDirectory, 'usage', name), staleS, staleS);
  const two = openFile(stateDirectory, new FakeClock());
  await two.file.flush();
  t.is(callsIn(two.table.usage()), 1);
  t.is((await namesIn(stateDirectory)).length, 2);
  await Promise.all([one, two].map(({ file }) => file.close()));
});

test('a container that starts again, with the same process number, takes over what it left', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const { file, table } = openFile(stateDirectory, new FakeClock());
  call(table, CURSOR);
  await file.close();
  const again = openFile(stateDirectory, new FakeClock(), { ...thisProcess(), startedAtMs: Date.now() + HOUR_MS });
  await again.file.flush();
  t.is(callsIn(again.table.usage()), 1);
  t.is((await namesIn(stateDirectory)).length, 1);
  await again.file.close();
});

test('two bridges in one process keep a file each', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const [one, other] = [openFile(stateDirectory, new FakeClock()), openFile(stateDirectory, new FakeClock())];
  call(one.table, CURSOR);
  call(other.table, CURSOR);
  await Promise.all([one.file.close(), other.file.close()]);
  t.is((await namesIn(stateDirectory)).length, 2);
  t.is(await readCalls(stateDirectory), 2);
});

test('a process that was taken for gone begins anew, so that nothing is counted twice', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const slept = openFile(stateDirectory, new FakeClock(), GONE);
  call(slept.table, CURSOR);
  await slept.file.flush();
  const other = openFile(stateDirectory, new FakeClock());
  await other.file.flush();
  t.is(callsIn(other.table.usage()), 1);
  call(slept.table, CURSOR);
  await slept.file.flush();
  call(slept.table, CURSOR);
  await slept.file.close();
  t.is(await readCalls(stateDirectory), 2, 'of what it counted since it last wrote, nothing is known');
  await other.file.close();
});

test('who is killed between taking over and deleting makes nothing count twice', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const folder = join(stateDirectory, 'usage');
  const first = openFile(stateDirectory, new FakeClock(), GONE);
  call(first.table, CURSOR);
  await first.file.close();
  const [left = ''] = await namesIn(stateDirectory);
  const content = await readFile(join(folder, left));
  // It has taken over the file, and has written that it did, but the file is still there.
  const id = parseFileName(left)?.id ?? '';
  const killer = { ...GONE, pid: GONE.pid - 1 };
  await writeFile(join(folder, `killed.${killer.host}.${killer.pid}.json`), composeFile(first.table.toJson(), [id]));
  t.is(await readCalls(stateDirectory), 1);
  await writeFile(join(folder, left), content);
  const next = openFile(stateDirectory, new FakeClock());
  await next.file.flush();
  t.is(callsIn(next.table.usage()), 1);
  t.is(await readCalls(stateDirectory), 1);
  t.is((await namesIn(stateDirectory)).length, 1);
  await next.file.close();
});

for (const [name, content] of [
  ['is empty', ''],
  ['was cut off', '{"includes":[],"usage":{"format":1,"serv'],
  ['is no usage', '{"includes":[],"usage":{"format":1,"served":[],"rows":[{"secret":1}]}}'],
  ['has no list of files', '{"usage":{"format":1,"served":[],"rows":[]}}'],
  ['is null', 'null'],
  ['is not UTF-8', Buffer.from([0xff, 0xfe, 0x00])],
] as const) {
  test(`a file that ${name} is set aside with a warning`, async (t) => {
    const stateDirectory = await createStateDirectory(t);
    const before = openFile(stateDirectory, new FakeClock(), GONE);
    call(before.table, CURSOR);
    await before.file.close();
    const folder = join(stateDirectory, 'usage');
    await writeFile(join(folder, `spoiled.${GONE.host}.${GONE.pid}.json`), content);
    const { problems, usage } = await readUsage(stateDirectory, NOON_MS);
    t.is(problems.length, 1);
    t.is(callsIn(usage), 1);
    const { file, table, lines } = openFile(stateDirectory, new FakeClock());
    await file.flush();
    t.is(callsIn(table.usage()), 1);
    t.is(lines.length, 1);
    t.true(lines[0]?.includes('spoiled.corrupt') && lines[0].includes('"level":40') && !lines[0].includes('secret'));
    t.true((await namesIn(stateDirectory)).includes('spoiled.corrupt'));
    const later = await readUsage(stateDirectory, NOON_MS);
    t.is(later.problems.length, 1, 'nobody knows what was in it');
    await file.close();
  });
}

test('of the files that were set aside only the newest are kept', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  await openFile(stateDirectory, new FakeClock(), GONE).file.close();
  const folder = join(stateDirectory, 'usage');
  for (let index = 0; index < 20; index += 1)
    await writeFile(join(folder, `spoiled${index}.${GONE.host}.${GONE.pid}.json`), '');
  const { file } = openFile(stateDirectory, new FakeClock());
  await file.flush();
  t.is((await namesIn(stateDirectory)).filter((name) => name.endsWith('.corrupt')).length, 5);
  await file.close();
});

test('drafts of killed processes are deleted, and other files are left alone', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  await openFile(stateDirectory, new FakeClock(), GONE).file.close();
  const folder = join(stateDirectory, 'usage');
  await writeFile(join(folder, `draft.${GONE.host}.${GONE.pid}.tmp`), '{');
  await writeFile(join(folder, 'notes.json'), '{}');
  const { file, lines } = openFile(stateDirectory, new FakeClock());
  await file.flush();
  const names = await namesIn(stateDirectory);
  t.is(names.length, 2);
  t.true(names.includes('notes.json'));
  t.deepEqual(lines, []);
  await file.close();
});

test('a folder that cannot be written is told once, and counting goes on', async (t) => {
  const [stateDirectory, clock] = [await createStateDirectory(t), new FakeClock()];
  // A file where the folder should be is in the way of everybody, root included.
  await writeFile(join(stateDirectory, 'usage'), '');
  const { file, table, lines } = openFile(stateDirectory, clock);
  for (let index = 0; index < 3; index += 1) {
    call(table, CURSOR);
    await file.flush();
  }
  t.is(lines.length, 1);
  t.regex(lines[0] ?? '', /the usage cannot be kept in .* \((?:EEXIST|ENOTDIR)\)/);
  await rm(join(stateDirectory, 'usage'));
  await file.close();
  t.is(await readCalls(stateDirectory), 3);
});

(HAS_MODES && !IS_ROOT ? test : test.skip)('a disk that recovers is written to again', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const { file, table, lines } = openFile(stateDirectory, new FakeClock());
  await file.flush();
  await chmod(join(stateDirectory, 'usage'), 0o500);
  call(table, CURSOR);
  await file.flush();
  t.is(lines.length, 1);
  await chmod(join(stateDirectory, 'usage'), 0o700);
  await file.close();
  t.is(await readCalls(stateDirectory), 1);
});

test('where nobody has counted yet there is no usage and no problem', async (t) => {
  const found = await readUsage(join(await createStateDirectory(t), 'none'), NOON_MS);
  t.deepEqual(found, { usage: { format: 1, served: [], rows: [] }, problems: [] });
});

test('files of several processes are added without changing them', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const files = Array.from({ length: 3 }, () => openFile(stateDirectory, new FakeClock()));
  for (const { table } of files) call(table, CURSOR);
  await Promise.all(files.map(({ file }) => file.flush()));
  const names = await namesIn(stateDirectory);
  const { usage } = await readUsage(stateDirectory, NOON_MS);
  t.is(usage.rows.length, 1);
  t.is(callsIn(usage), 3);
  t.deepEqual(usage.served, createTable().table.usage().served);
  t.deepEqual(await namesIn(stateDirectory), names);
  await Promise.all(files.map(({ file }) => file.close()));
});
