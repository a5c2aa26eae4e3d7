import { appendFile, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { RecordingFile } from '../../src/recording/recording-file.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { waitFor } from '../support/wait-for.ts';

interface Opened {
  readonly file: RecordingFile;
  readonly clock: FakeClock;
  readonly logged: () => string;
}

async function pathIn(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-recording-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'record.jsonl');
}

async function open(t: ExecutionContext, path: string, maxFileBytes = 0): Promise<Opened> {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const clock = new FakeClock();
  const format = { secrets: 'hidden', maxMessageBytes: 65_536 } as const;
  const file = await RecordingFile.open({ path, format, maxFileBytes, clock, log });
  t.teardown(() => file.close());
  return { file, clock, logged: () => lines.join('') };
}

const linesIn = async (path: string): Promise<readonly string[]> =>
  (await readFile(path, 'utf8')).trimEnd().split('\n');

test('appends lines to what is there, for nobody else to read', async (t) => {
  const path = await pathIn(t);
  const first = await open(t, path);
  first.file.take(['{"a":1}', '{"a":2}']);
  await first.file.close();
  t.is((await stat(path)).mode & 0o777, 0o600);
  const second = await open(t, path);
  second.file.take(['{"a":3}']);
  await second.file.close();
  t.deepEqual(await linesIn(path), ['{"a":1}', '{"a":2}', '{"a":3}']);
});

test('a line that a crash has torn does not spoil the next one', async (t) => {
  const path = await pathIn(t);
  await writeFile(path, '{"a":1}\n{"a":');
  const { file } = await open(t, path);
  file.take(['{"a":2}']);
  await file.close();
  t.deepEqual(await linesIn(path), ['{"a":1}', '{"a":', '{"a":2}']);
});

test('a file that has reached its size is kept once under another name', async (t) => {
  const path = await pathIn(t);
  const { file } = await open(t, path, 100);
  const line = (n: number): string => JSON.stringify({ n, text: 'x'.repeat(30) });
  for (let n = 1; n <= 6; n += 1) {
    file.take([line(n)]);
    await waitFor(async () => (await readFile(path, 'utf8')).includes(`"n":${n},`) || undefined);
  }
  await file.close();
  t.deepEqual(await linesIn(`${path}.1`), [line(3), line(4)]);
  t.deepEqual(await linesIn(path), [line(5), line(6)]);
});

test('a file that was moved away is created again', async (t) => {
  const path = await pathIn(t);
  const { file } = await open(t, path);
  file.take(['{"a":1}']);
  await waitFor(async () => (await readFile(path, 'utf8')) !== '' || undefined);
  await rename(path, `${path}.old`);
  file.take(['{"a":2}']);
  await file.close();
  t.deepEqual(await linesIn(path), ['{"a":2}']);
});

test('two bridges append to one file without tearing lines', async (t) => {
  const path = await pathIn(t);
  const files = await Promise.all([open(t, path), open(t, path)]);
  const line = JSON.stringify({ text: 'x'.repeat(5000) });
  for (let batch = 0; batch < 50; batch += 1) for (const { file } of files) file.take([line, line]);
  await Promise.all(files.map(({ file }) => file.close()));
  const lines = await linesIn(path);
  t.is(lines.length, 200);
  t.true(lines.every((each) => each === line));
});

test('a full disk is told once, and what waits is limited', async (t) => {
  const { file, clock, logged } = await open(t, '/dev/full');
  file.take(['{"a":1}']);
  await waitFor(() => logged().includes('ENOSPC') || undefined);
  const large = 'x'.repeat(1024 * 1024);
  for (let n = 0; n < 40; n += 1) file.take([large]);
  clock.advance(1000);
  await file.close();
  t.is(logged().match(/cannot be written \(ENOSPC\)/g)?.length, 1);
  t.regex(logged(), /\d+ messages are missing/);
});

test('a file that can be written again goes on, and says so', async (t) => {
  const path = await pathIn(t);
  const { file, clock, logged } = await open(t, path);
  file.take(['{"a":1}']);
  await waitFor(async () => (await readFile(path, 'utf8')) !== '' || undefined);
  // A folder in the place of the file cannot be written.
  await rename(path, `${path}.old`);
  await writeFile(join(path, '..', 'keep'), '');
  await rm(path, { force: true });
  const { mkdir } = await import('node:fs/promises');
  await mkdir(path);
  file.take(['{"a":2}']);
  await waitFor(() => logged().includes('cannot be written') || undefined);
  await rm(path, { recursive: true });
  await appendFile(path, '');
  await waitFor(async () => {
    clock.advance(1000);
    return logged().includes('written again') || undefined;
  });
  await file.close();
  t.deepEqual(await linesIn(path), ['{"a":2}']);
});

test('a file that cannot be opened is a mistake of the configuration', async (t) => {
  const error = await t.throwsAsync(open(t, join(await pathIn(t), 'below', 'record.jsonl')));
  t.like(error, { code: 'ERR_CONFIG_OPTION' });
  t.regex(error?.message ?? '', /ENO/);
});
