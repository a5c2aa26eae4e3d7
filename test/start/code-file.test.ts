import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type CodeFileOptions, findCodeFile, MAX_FILES } from '../../src/start/code-file.ts';

const DIGEST = 'ab'.repeat(32);
const CODE = { code: Buffer.from('compiled'), generation: 2 };
/** Bits and owners say nothing on Windows. */
const testOnPosix = process.platform === 'win32' ? test.skip : test;

async function createHome(t: ExecutionContext): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(home, { recursive: true }));
  return home;
}

function find(home: string, options: Partial<CodeFileOptions> = {}) {
  const env = { HOME: home, LOCALAPPDATA: join(home, '.cache') };
  return findCodeFile({ file: 'cli.cjs', argv: ['--', 'server'], env, digest: DIGEST, ...options });
}

async function findPath(home: string): Promise<string> {
  const directory = join(home, '.cache', 'mcp-portage');
  const [name, ...more] = await readdir(directory);
  if (name === undefined || more.length > 0) throw new Error(`expected one file; got ${[name, ...more].join(' ')}`);
  return join(directory, name);
}

test('what was written is read at the next start', async (t) => {
  const home = await createHome(t);
  find(home)?.write(CODE);
  const read = find(home)?.read();
  t.deepEqual(read && { ...read, code: Buffer.from(read.code) }, CODE);
});

test('V8 need not copy the code: it begins at a multiple of eight', async (t) => {
  const home = await createHome(t);
  find(home)?.write(CODE);
  const bytes = await readFile(await findPath(home));
  t.is(bytes.indexOf('compiled') % 8, 0);
});

test('code of another build of the program is not read', async (t) => {
  const home = await createHome(t);
  find(home, { digest: 'cd'.repeat(32) })?.write(CODE);
  t.is(find(home)?.read(), undefined);
});

test('only the newest files stay', async (t) => {
  const home = await createHome(t);
  find(home)?.write(CODE);
  const oldest = await findPath(home);
  await utimes(oldest, 1, 1);
  for (let build = 0; build < MAX_FILES; build += 1) find(home, { digest: String(build) })?.write(CODE);
  t.is((await readdir(dirname(oldest))).length, MAX_FILES);
  t.is(find(home)?.read(), undefined);
  t.truthy(find(home, { digest: '0' })?.read());
});

test('a file that is cut off, or is none, is nothing', async (t) => {
  const home = await createHome(t);
  t.is(find(home)?.read(), undefined);
  find(home)?.write(CODE);
  await writeFile(await findPath(home), 'short');
  t.is(find(home)?.read(), undefined);
});

test('a file that is damaged anywhere is nothing, and is replaced by what is written next', async (t) => {
  const home = await createHome(t);
  find(home)?.write(CODE);
  const path = await findPath(home);
  const good = await readFile(path);
  for (let at = 0; at < good.length; at += 1) {
    const damaged = Buffer.from(good);
    damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
    await writeFile(path, damaged);
    t.is(find(home)?.read(), undefined, `a bit of byte ${at}`);
  }
  await writeFile(path, good.subarray(0, -1));
  t.is(find(home)?.read(), undefined, 'cut off');
  await writeFile(path, Buffer.alloc(good.length));
  t.is(find(home)?.read(), undefined, 'zeros, as a loss of power leaves them');
  find(home)?.write(CODE);
  t.is(find(home)?.read()?.generation, CODE.generation);
});

test('each file of the program has compiled code of its own', async (t) => {
  const home = await createHome(t);
  find(home)?.write(CODE);
  t.is(find(home, { file: 'bridge.cjs' })?.read(), undefined);
});

test('each verb and kind of server has a file of its own', async (t) => {
  const home = await createHome(t);
  find(home, { argv: ['connect', 'http://127.0.0.1/mcp'] })?.write(CODE);
  t.is(find(home, { argv: ['connect', '--', 'server'] })?.read(), undefined);
  t.is(find(home, { argv: ['http://127.0.0.1/mcp'] })?.read(), undefined);
  t.truthy(find(home, { argv: ['connect', '--verbose', 'http://127.0.0.1/other'] })?.read());
});

testOnPosix('others can read neither the file nor its folder', async (t) => {
  const home = await createHome(t);
  find(home)?.write(CODE);
  const path = await findPath(home);
  t.is((await lstat(path)).mode & 0o777, 0o600);
  t.is((await lstat(join(path, '..'))).mode & 0o777, 0o700);
});

testOnPosix('a file that others may write is not trusted', async (t) => {
  for (const mode of [0o620, 0o602]) {
    const home = await createHome(t);
    find(home)?.write(CODE);
    await chmod(await findPath(home), mode);
    t.is(find(home)?.read(), undefined, mode.toString(8));
  }
});

testOnPosix('a folder that others may write gets no file', async (t) => {
  const home = await createHome(t);
  const directory = join(home, '.cache', 'mcp-portage');
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o777);
  find(home)?.write(CODE);
  t.deepEqual(await readdir(directory), []);
});

testOnPosix('a link is not followed, to read or to write', async (t) => {
  const home = await createHome(t);
  find(home)?.write(CODE);
  const path = await findPath(home);
  const bytes = await readFile(path);
  const elsewhere = join(home, 'elsewhere');
  await writeFile(elsewhere, bytes, { mode: 0o600 });
  await rm(path);
  await symlink(elsewhere, path);
  t.is(find(home)?.read(), undefined);
  find(home)?.write({ code: Buffer.from('other'), generation: 1 });
  t.deepEqual(await readFile(elsewhere), bytes);
  t.is(find(home)?.read()?.generation, 1);
});

test('a home directory that does not exist is not made', async (t) => {
  const home = join(await createHome(t), 'missing');
  t.notThrows(() => find(home)?.write(CODE));
  await t.throwsAsync(lstat(home), { code: 'ENOENT' });
});

test('the cache folder is that of the environment', async (t) => {
  const home = await createHome(t);
  const env = { HOME: '/nowhere', XDG_CACHE_HOME: join(home, '.cache'), LOCALAPPDATA: join(home, '.cache') };
  find(home, { env })?.write(CODE);
  t.truthy(find(home)?.read());
});

test('nothing is kept without a place for it, or where Node is told to keep nothing', (t) => {
  t.is(find('', { env: {} }), undefined);
  t.is(find('', { env: { HOME: '', XDG_CACHE_HOME: 'relative', LOCALAPPDATA: 'relative' } }), undefined);
  const disabled = { HOME: '/root', LOCALAPPDATA: 'C:\\', NODE_DISABLE_COMPILE_CACHE: '1' };
  t.is(find('', { env: disabled }), undefined);
});
