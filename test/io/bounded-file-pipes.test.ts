import { execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { ChangingFile } from '../../src/http/changing-file.ts';
import { readFileOnDisk, readSmallFile } from '../../src/io/bounded-file.ts';

/** Windows has no pipes among its files. */
const test = (process.platform === 'win32' ? anyTest.skip : anyTest) as TestFn;

async function createPipe(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'pipes-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  return pipe;
}

test('a pipe that nobody writes into is read without waiting', async (t) => {
  const pipe = await createPipe(t);
  t.throws(() => readFileOnDisk(pipe, 10), { code: 'EAGAIN' });
  t.throws(() => readFileOnDisk(pipe, 10, 30), { code: 'EAGAIN' });
});

test('at the start whoever writes into a pipe has some time for it', async (t) => {
  const pipe = await createPipe(t);
  const writer = spawn('sh', ['-c', `sleep 0.1; { printf one; sleep 0.1; printf ' two'; } > '${pipe}'`], {
    stdio: 'ignore',
  });
  t.teardown(() => writer.kill());
  t.is(Buffer.from(readFileOnDisk(pipe, 100, 30_000).bytes).toString(), 'one two');
});

test('what has to be a file is refused as a pipe, a folder, or too large', async (t) => {
  const pipe = await createPipe(t);
  t.throws(() => readSmallFile(pipe), { code: 'ERR_NOT_A_FILE' });
  t.throws(() => readSmallFile(tmpdir()), { code: 'ERR_NOT_A_FILE' });
  writeFileSync(`${pipe}.file`, 'x'.repeat(11));
  t.throws(() => readSmallFile(`${pipe}.file`, 10), { code: 'EFBIG' });
});

test('a file that becomes a pipe has no content anymore, and stops nobody', async (t) => {
  const pipe = await createPipe(t);
  const path = `${pipe}.file`;
  writeFileSync(path, 'token');
  const file = new ChangingFile(path, (text) => text);
  t.is(file.current(), 'token');
  execFileSync('mv', ['-f', pipe, path]);
  t.throws(() => file.current(), { code: 'ERR_NOT_A_FILE' });
});
