import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../src/cli/system-deps.ts';
import type { Clock } from '../../../src/deps.ts';
import { LoginLock, MAX_LOCK_WAIT_MS } from '../../../src/http/login/login-lock.ts';
import { STALE_LOCK_MS } from '../../../src/io/file-lock.ts';
import { thisProcess } from '../../../src/io/owning-process.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { temporaryFolder } from './logged-in.ts';

const SERVER = new URL('https://example.com/mcp');
const HERE = thisProcess();
/** No process has this number. */
const NOBODY = 2 ** 31 - 2;
const LOOK_MS = 250;

function placeOf(t: ExecutionContext): string {
  return join(temporaryFolder(t), 'logins', 'example.json.lock');
}

function openLock(path: string, clock: Clock = systemClock) {
  const { log, entries } = collectLog();
  let ids = 0;
  const lock = new LoginLock(path, SERVER, { clock, log, randomId: () => `${Math.random()}-${ids++}` });
  const leaving = new AbortController();
  return { run: <T>(work: () => Promise<T>) => lock.exclusively(work, leaving.signal), leaving, entries };
}

/** A lock that another process has left. */
function leaveLock(path: string, owner: object): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify({ ...owner, id: 'theirs' }));
}

test('one holder at a time works, whatever comes of it, and nothing stays behind', async (t) => {
  const path = placeOf(t);
  let working = 0;
  const work = async (): Promise<void> => {
    working += 1;
    t.is(working, 1);
    await new Promise((resolve) => setImmediate(resolve));
    working -= 1;
    throw new Error('it failed');
  };
  const clock = new FakeClock();
  const running = Promise.allSettled(Array.from({ length: 5 }, () => openLock(path, clock).run(work)));
  await clock.advanceInSteps(5 * LOOK_MS, LOOK_MS / 5);
  const outcomes = await running;
  for (const outcome of outcomes) t.like(outcome, { status: 'rejected', reason: { message: 'it failed' } });
  t.deepEqual(readdirSync(dirname(path)), []);
});

test('a lock names its owner, and nobody else can read it', async (t) => {
  const path = placeOf(t);
  await openLock(path).run(async () => {
    t.like(JSON.parse(readFileSync(path, 'utf8')), { host: HERE.host, pid: process.pid });
  });
});

test('of many that find a lock whose owner has ended, one at a time works, at once', async (t) => {
  const path = placeOf(t);
  leaveLock(path, { host: HERE.host, pid: NOBODY });
  let [working, most, done] = [0, 0, 0];
  const work = async (): Promise<void> => {
    working += 1;
    most = Math.max(most, working);
    await new Promise((resolve) => setImmediate(resolve));
    working -= 1;
    done += 1;
  };
  const clock = new FakeClock();
  const running = Promise.all(Array.from({ length: 20 }, () => openLock(path, clock).run(work)));
  while (done < 20 && clock.now() < STALE_LOCK_MS) await clock.advanceInSteps(LOOK_MS, LOOK_MS / 5);
  await running;
  t.deepEqual([most, done], [1, 20]);
});

for (const [title, owner] of [
  ['another machine', { host: '00000000', pid: 1 }],
  ['a process that runs', { host: HERE.host, pid: process.ppid }],
  ['an unknown owner', {}],
] as const) {
  test(`a lock of ${title} is broken when it has not been touched for long, and not before`, async (t) => {
    const path = placeOf(t);
    leaveLock(path, owner);
    const clock = new FakeClock();
    let hasRun = false;
    const running = openLock(path, clock).run(async () => {
      hasRun = true;
    });
    await clock.advanceInSteps(STALE_LOCK_MS - LOOK_MS, LOOK_MS);
    const now = new Date(1_000_000);
    utimesSync(path, now, now);
    await clock.advanceInSteps(STALE_LOCK_MS, LOOK_MS);
    t.false(hasRun);
    await clock.advanceInSteps(3 * LOOK_MS, LOOK_MS);
    await running;
    t.true(hasRun);
  });
}

test('an owner touches its lock, so that others wait for as long as it works', async (t) => {
  const path = placeOf(t);
  const clock = new FakeClock();
  let finish = (): void => {};
  const holding = openLock(path, clock).run(() => new Promise<void>((resolve) => (finish = resolve)));
  await waitFor(() => existsSync(path));
  let hasRun = false;
  const waiting = openLock(path, clock).run(async () => {
    hasRun = true;
  });
  await clock.advanceInSteps(3 * STALE_LOCK_MS, LOOK_MS);
  t.false(hasRun);
  finish();
  await holding;
  await clock.advanceInSteps(LOOK_MS, LOOK_MS);
  await waiting;
  t.true(hasRun);
});

test('an owner whose lock was broken meanwhile leaves that of the next one alone', async (t) => {
  const path = placeOf(t);
  await openLock(path).run(async () => leaveLock(path, { host: HERE.host, pid: process.ppid }));
  t.like(JSON.parse(readFileSync(path, 'utf8')), { id: 'theirs' });
});

test('those who wait long say so once, and give up when they have waited longer than a login takes', async (t) => {
  const path = placeOf(t);
  leaveLock(path, { host: HERE.host, pid: process.ppid });
  const clock = new FakeClock();
  const { run, entries } = openLock(path, clock);
  const waiting = run(async () => t.fail('it was not its turn'));
  const failing = t.throwsAsync(waiting, { code: 'ERR_UPSTREAM_AUTH', message: /Nothing was done here/ });
  for (let waitedMs = 0; waitedMs <= MAX_LOCK_WAIT_MS; waitedMs += LOOK_MS) {
    const now = new Date(waitedMs);
    utimesSync(path, now, now);
    await clock.advanceInSteps(LOOK_MS, LOOK_MS);
  }
  await failing;
  t.is(entries.length, 1);
  t.regex(
    entries[0]?.msg ?? '',
    /^another process \(\d+\) is logging in at https:\/\/example\.com\/mcp; waiting for it/,
  );
});

test('those who leave wait no longer', async (t) => {
  const path = placeOf(t);
  leaveLock(path, { host: HERE.host, pid: process.ppid });
  const clock = new FakeClock();
  const { run, leaving } = openLock(path, clock);
  const waiting = run(async () => t.fail('it was not its turn'));
  await waitFor(() => clock.pendingTimers === 1);
  leaving.abort(new Error('gone'));
  await t.throwsAsync(waiting, { message: 'gone' });
  t.is(clock.pendingTimers, 0);
});

test('where no file can be created, the work is done without a lock', async (t) => {
  const folder = join(temporaryFolder(t), 'logins');
  writeFileSync(folder, 'not a folder');
  for (const path of [join(folder, 'example.json.lock'), '/proc/nowhere/logins/example.json.lock']) {
    const { run, entries } = openLock(path);
    t.is(await run(async () => 'done'), 'done');
    t.like(entries[0], { level: 20, msg: `the login cannot be locked in ${dirname(path)}` });
  }
});
