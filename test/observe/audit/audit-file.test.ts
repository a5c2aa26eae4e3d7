import { execFileSync } from 'node:child_process';
import { constants, existsSync } from 'node:fs';
import { appendFile, chmod, mkdtemp, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { identifyCaller, mapCaller, principalOf } from '../../../src/http/auth/callers.ts';
import { AppendOnlyFile, type DiskSpace } from '../../../src/observe/audit/append-only-file.ts';
import { type AuditFile, openAuditFile } from '../../../src/observe/audit/audit-file.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { call, client, ending, MODERN, runCall } from '../../support/observed.ts';
import { waitFor } from '../../support/wait-for.ts';

type Line = Readonly<Record<string, unknown>>;

async function folder(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'audit-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function openAudit(t: ExecutionContext, path: string) {
  const logs: Line[] = [];
  const log = pino({}, { write: (line: string) => void logs.push(JSON.parse(line)) });
  const clock = new FakeClock();
  const audit = await openAuditFile({ path, clock, log });
  t.teardown(() => audit.close());
  return { audit, logs, clock };
}

async function textOf(path: string): Promise<string> {
  return existsSync(path) ? await readFile(path, 'utf8') : '';
}

async function linesOf(path: string): Promise<readonly Line[]> {
  return (await textOf(path))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

async function toolsIn(path: string): Promise<readonly unknown[]> {
  return (await linesOf(path)).map(({ tool }) => tool);
}

/** Resolves when that many lines are there. */
async function written(path: string, count: number): Promise<readonly unknown[]> {
  return await waitFor(async () => (await linesOf(path)).length >= count && (await toolsIn(path)), {
    message: `${count} lines in ${path}`,
  });
}

// ---- What is in a line.

test('a call is one line of JSON, written without being asked for', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit } = await openAudit(t, path);
  const before = Date.now();
  runCall(audit, { traceId: '0af7651916cd43dd8448eb211c80319c' }, { durationMs: 15.123456 });
  await written(path, 1);
  const [line, ...more] = await linesOf(path);
  t.deepEqual(more, []);
  const { time, ...rest } = line as Line;
  t.deepEqual(rest, {
    caller: 'someone',
    client: 'cursor',
    clientVersion: '0.42',
    server: 'everything',
    method: 'tools/call',
    tool: 'echo',
    outcome: 'answered',
    code: null,
    durationMs: 15.123,
    requestBytes: 100,
    responseBytes: 200,
    traceId: '0af7651916cd43dd8448eb211c80319c',
  });
  t.regex(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.true(Date.parse(String(time)) >= before && Date.parse(String(time)) <= Date.now());
});

test('what is not known is null', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit } = await openAudit(t, path);
  const nobody = client({ ...MODERN, transport: 'stdio', principal: undefined, name: undefined, version: undefined });
  runCall(audit, { client: nobody, method: 'ping', tool: undefined });
  await written(path, 1);
  t.like((await linesOf(path))[0], { caller: null, client: null, clientVersion: null, tool: null, traceId: null });
});

for (const [outcome, code] of [
  [{ kind: 'error', code: -32602 }, -32602],
  [{ kind: 'error', code: undefined }, null],
  [{ kind: 'cancelled' }, null],
  [{ kind: 'failed', code: 'ERR_UPSTREAM_TIMEOUT' }, 'ERR_UPSTREAM_TIMEOUT'],
] as const) {
  test(`the line of a call tells how it ended: ${JSON.stringify(outcome)}`, async (t) => {
    const path = join(await folder(t), 'audit.log');
    const { audit } = await openAudit(t, path);
    runCall(audit, {}, { outcome });
    await written(path, 1);
    t.like((await linesOf(path))[0], { outcome: outcome.kind, code });
  });
}

test('names that a peer chose stay one line, are kept as they were, and hide nothing', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit } = await openAudit(t, path);
  const name = 'a\n{"caller":"admin"}\u001b[31m\u202e\u200b\ud800';
  runCall(audit, {
    tool: name,
    method: 'x'.repeat(1_000_000),
    client: client({ name, principal: 'y'.repeat(10_000) }),
  });
  await written(path, 1);
  const text = await textOf(path);
  t.is(text.split('\n').length, 2);
  t.regex(text, /^[\x20-\x7e]*\n$/);
  t.true(text.length < 4000);
  t.like((await linesOf(path))[0], { client: name, tool: name });
});

test('what headers set for the process of a caller is not part of its name', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit } = await openAudit(t, path);
  const request = { headersDistinct: { 'x-token': ['hunter2'] } } as unknown as IncomingMessage;
  identifyCaller(request, 'https://issuer#alice');
  t.is(mapCaller(request, [{ header: 'x-token', variable: 'TOKEN' }]), undefined);
  const principals = [principalOf(request), 'https://issuer#alice', undefined];
  for (const principal of principals) runCall(audit, { client: client({ principal }) });
  await written(path, 3);
  t.deepEqual(
    (await linesOf(path)).map(({ caller }) => caller),
    ['https://issuer#alice', 'https://issuer#alice', null],
  );
  t.false((await textOf(path)).includes('hunter2'));
});

// ---- The file.

test('only its owner may read the file', async (t) => {
  if (process.platform === 'win32') return t.pass('Windows has no such modes');
  const path = join(await folder(t), 'audit.log');
  await openAudit(t, path);
  t.is((await stat(path)).mode & 0o777, 0o600);
});

test('lines are added to those that are there, of others as well', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const first = await openAudit(t, path);
  const second = await openAudit(t, path);
  runCall(first.audit, { tool: 'a' });
  await written(path, 1);
  runCall(second.audit, { tool: 'b' });
  await written(path, 2);
  runCall(first.audit, { tool: 'c' });
  t.deepEqual(await written(path, 3), ['a', 'b', 'c']);
});

test('a line that was torn when a process was killed does not spoil the next', async (t) => {
  const path = join(await folder(t), 'audit.log');
  await writeFile(path, '{"tool":"to');
  const { audit } = await openAudit(t, path);
  runCall(audit);
  await audit.close();
  const [torn, next, ...rest] = (await textOf(path)).split('\n');
  t.is(torn, '{"tool":"to');
  t.like(JSON.parse(next ?? ''), { tool: 'echo' });
  t.deepEqual(rest, ['']);
});

test('a file that was moved away is left alone, and a new one is made by itself', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit, logs } = await openAudit(t, path);
  runCall(audit, { tool: 'before' });
  await written(path, 1);
  await rename(path, `${path}.1`);
  runCall(audit, { tool: 'after' });
  t.deepEqual(await written(path, 1), ['after']);
  t.deepEqual(await toolsIn(`${path}.1`), ['before']);
  await rm(path);
  runCall(audit, { tool: 'removed' });
  t.deepEqual(await written(path, 1), ['removed']);
  t.deepEqual(logs, []);
});

test('a new file is there as soon as it was asked for', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit } = await openAudit(t, path);
  runCall(audit, { tool: 'before' });
  await written(path, 1);
  await rename(path, `${path}.1`);
  await audit.reopen();
  t.is(await textOf(path), '');
  runCall(audit, { tool: 'after' });
  t.deepEqual(await written(path, 1), ['after']);
});

test('no line is lost or doubled while the file is moved away again and again', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit } = await openAudit(t, path);
  const tools = Array.from({ length: 2000 }, (_, index) => `tool-${index}`);
  for (const [index, tool] of tools.entries()) {
    runCall(audit, { tool });
    if (index % 100 !== 99) continue;
    await new Promise((resolve) => setImmediate(resolve));
    if (existsSync(path)) await rename(path, `${path}.${index}`);
    if (index % 200 === 199) await audit.reopen();
  }
  await audit.close();
  const all = await Promise.all([path, ...tools.map((_, index) => `${path}.${index}`)].map(toolsIn));
  t.deepEqual(all.flat().sort(), tools.toSorted());
});

test('what is not written yet is written at the end, and nothing after it', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit, clock, logs } = await openAudit(t, path);
  for (let index = 0; index < 1000; index += 1) runCall(audit);
  await audit.close();
  t.is((await linesOf(path)).length, 1000);
  t.is(clock.pendingTimers, 0);
  t.deepEqual(logs, []);
});

// ---- When it cannot be written.

const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('a full disk is told at once and once a minute with what is lost, and no call need pass', async (t) => {
  const { audit, logs, clock } = await openAudit(t, '/dev/full');
  t.like(audit.refusal(), { code: 'ERR_AUDIT_UNAVAILABLE', retryAfterMs: 1000 });
  runCall(audit);
  t.is(logs.length, 1);
  t.like(logs[0], { level: 50, path: '/dev/full', lost: 0, waiting: 0, code: 'ERR_AUDIT_UNAVAILABLE' });
  t.regex(String(logs[0]?.msg), /ENOSPC/);
  for (let passed = 0; passed < 59; passed += 1) {
    await clock.advanceInSteps(1000, 1000);
    await waitForTry(audit);
  }
  t.is(logs.length, 1, 'not each time that it is tried');
  clock.advance(1000);
  t.is(logs.length, 2);
  await audit.close();
  t.like(logs.at(-1), { lost: 1 });
});

/** Time that is faked passes faster than a file is written. */
async function waitForTry(audit: AuditFile): Promise<void> {
  await audit.reopen();
}

for (const [title, space, isFull] of [
  ['without a free block', { blocks: 9, bavail: 0, bfree: 0 }, true],
  ['with a free block', { blocks: 9, bavail: 1, bfree: 1 }, false],
  ['that does not count its blocks', { blocks: 0, bavail: 0, bfree: 0 }, false],
] as const) {
  test(`a file on a disk ${title} ${isFull ? 'fails before its first line' : 'takes lines'}`, async (t) => {
    const path = join(await folder(t), 'audit.log');
    const clock = new FakeClock();
    const failures: unknown[] = [];
    let found: DiskSpace = space;
    const onFailed = ({ code }: NodeJS.ErrnoException) => void failures.push(code);
    const file = new AppendOnlyFile({ path, clock, onFailed, spaceAt: async () => found });
    t.teardown(() => file.close());
    await file.reopen();
    t.deepEqual([file.isFailing, failures], [isFull, isFull ? ['ENOSPC'] : []]);
    file.write('line');
    if (isFull) t.is(await textOf(path), '');
    found = { blocks: 9, bavail: 1, bfree: 1 };
    clock.advance(1000);
    await waitFor(async () => (await textOf(path)) === 'line\n', { message: 'the line' });
    await waitFor(() => !file.isFailing);
  });
}

test('a file that cannot be made is told at the start, and written as soon as it can be', async (t) => {
  const place = await folder(t);
  const path = join(place, 'missing', 'audit.log');
  const { audit, logs, clock } = await openAudit(t, path);
  t.false(audit.isWritable);
  t.regex(String(logs[0]?.msg), /ENOENT/);
  runCall(audit);
  execFileSync('mkdir', [join(place, 'missing')]);
  clock.advance(1000);
  t.deepEqual(await written(path, 1), ['echo']);
  await waitFor(() => audit.isWritable);
  t.is(audit.refusal(), undefined);
  t.is(logs.length, 1);
});

test('a file that may not be written is told', async (t) => {
  if (process.getuid?.() === 0 || process.platform === 'win32') return t.pass('root may write everything');
  const path = join(await folder(t), 'audit.log');
  await writeFile(path, '');
  await chmod(path, 0o400);
  const { audit, logs } = await openAudit(t, path);
  t.false(audit.isWritable);
  t.regex(String(logs[0]?.msg), /EACCES/);
});

onLinux('a pipe that nobody reads blocks nothing; a reader gets every line once it is there', async (t) => {
  const path = join(await folder(t), 'pipe');
  execFileSync('mkfifo', [path]);
  const { audit, clock, logs } = await openAudit(t, path);
  t.false(audit.isWritable);
  t.regex(String(logs[0]?.msg), /ENXIO/);
  const reader = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  t.teardown(() => reader.close());
  const count = 2000;
  for (let index = 0; index < count; index += 1) runCall(audit, { tool: `tool-${index}` });
  let text = '';
  const buffer = Buffer.alloc(64 * 1024);
  const lines = await waitFor(async () => {
    clock.advance(1000);
    const { bytesRead } = await reader.read(buffer, 0, buffer.length, null).catch(() => ({ bytesRead: 0 }));
    text += buffer.toString('latin1', 0, bytesRead);
    const found = text.split('\n');
    return found.at(-2)?.includes(`tool-${count - 1}"`) === true && found.slice(0, -1);
  });
  // What the pipe took only in part stands on a line of its own, and is there again as a whole.
  const tools = lines.flatMap((line) => (line.endsWith('}') ? [JSON.parse(line).tool] : []));
  t.deepEqual(
    tools,
    Array.from({ length: count }, (_, index) => `tool-${index}`),
  );
  t.is(logs.length, 1, 'a pipe that is full for a moment is no failure');
  await waitFor(() => audit.isWritable);
});

onLinux('a burst of calls takes bounded memory; what exceeds it is counted, and no call waits', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit, logs } = await openAudit(t, path);
  const count = 100_000;
  const opened = call({ client: client({ name: 'x'.repeat(200) }) });
  const started = performance.now();
  for (let index = 0; index < count; index += 1) audit.opened(opened)(ending());
  const tookMs = performance.now() - started;
  t.true(tookMs < 20_000, `${tookMs} ms`);
  t.false(audit.isWritable, 'it was full before the first line was lost');
  await audit.close();
  const lost = logs.reduce((sum, line) => sum + Number(line.lost), 0);
  t.true(lost > 0 && lost < count, `${lost}`);
  t.is((await linesOf(path)).length + lost, count);
  t.true((await stat(path)).size <= 16 * 1024 * 1024);
  t.regex(String(logs[0]?.msg), /as fast as calls end/);
  t.true(logs.length <= 2, 'it is said when it begins, and at the end');
});

test('a buffer that is half full refuses new calls, so that those that are open can be recorded', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit, logs } = await openAudit(t, path);
  const opened = call();
  while (audit.isWritable) audit.opened(opened)(ending());
  for (let index = 0; index < 10_000; index += 1) audit.opened(opened)(ending());
  t.deepEqual(logs, []);
  await waitFor(() => audit.isWritable);
});

test('another process may write to the file meanwhile', async (t) => {
  const path = join(await folder(t), 'audit.log');
  const { audit } = await openAudit(t, path);
  runCall(audit, { tool: 'a' });
  await written(path, 1);
  await appendFile(path, '{"tool":"b"}\n');
  runCall(audit, { tool: 'c' });
  t.deepEqual(await written(path, 3), ['a', 'b', 'c']);
});
