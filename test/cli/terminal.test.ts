import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import test, { type ExecutionContext } from 'ava';
import { allowsColor, allowsLiveLine, LiveLine, type LiveSurroundings } from '../../src/cli/terminal.ts';
import type { OpenPty } from '../../src/process/pty-child.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { openPty, ptyTest } from '../support/pseudo-terminal.ts';
import { waitFor } from '../support/wait-for.ts';
import { EXECUTABLE, stub } from './stdio-program.ts';

const ERASE = '\r\u001b[2K';

function createLine(columns?: number) {
  const clock = new FakeClock();
  let written = '';
  const output = { write: (text: string) => (written += text), ...(columns === undefined ? {} : { columns }) };
  const line = new LiveLine(output, clock);
  const take = () => {
    const text = written;
    written = '';
    return text;
  };
  return { line, clock, take };
}

test('says what is waited for each second, and nothing in the first', (t) => {
  const { line, clock, take } = createLine();
  line.show('a');
  clock.advance(999);
  t.is(take(), '');
  clock.advance(1);
  t.is(take(), `${ERASE}waiting for a (1 s)`);
  line.show('b');
  t.is(take(), `${ERASE}waiting for b (1 s)`, 'at once');
  clock.advance(1000);
  t.is(take(), `${ERASE}waiting for b (2 s)`);
});

test('of what has a limit of its own the time is counted from its beginning', (t) => {
  const { line, clock, take } = createLine();
  line.show('a');
  clock.advance(5000);
  take();
  line.show('you to log in', 4 * 60_000);
  t.is(take(), `${ERASE}waiting for you to log in (0 s of 4 min)`);
  clock.advance(29_000);
  t.is(take().split(ERASE).at(-1), 'waiting for you to log in (29 s of 4 min)');
  line.show('a code', 45_000);
  t.is(take(), `${ERASE}waiting for a code (0 s of 45 s)`);
  line.show('a');
  t.is(take(), `${ERASE}waiting for a (34 s)`);
});

test('clears the line for other lines and comes back after them', (t) => {
  const { line, clock, take } = createLine();
  line.show('a');
  clock.advance(1000);
  take();
  line.erase();
  line.erase();
  t.is(take(), ERASE);
  clock.advance(1000);
  t.is(take(), `${ERASE}waiting for a (2 s)`);
});

test('is gone at the end, with its timer', (t) => {
  const { line, clock, take } = createLine();
  line.show('a');
  clock.advance(1000);
  take();
  line.close();
  t.is(take(), ERASE);
  line.close();
  line.show('b');
  clock.advance(5000);
  t.is(take(), '');
  t.is(clock.pendingTimers, 0);
});

test('fits into the terminal, the time included', (t) => {
  const { line, clock, take } = createLine(30);
  line.show('something with a long name');
  clock.advance(10_000);
  const last = take().split(ERASE).at(-1) ?? '';
  t.is(last.length, 29);
  t.regex(last, /^waiting for someth.*… \(10 s\)$/);
});

const TERMINAL: LiveSurroundings = {
  stderrIsTerminal: true,
  env: { TERM: 'xterm' },
  log: { level: 'warn', format: 'pretty' },
};

test('is for terminals alone, and not for those who want plain output', (t) => {
  t.true(allowsLiveLine(TERMINAL));
  for (const other of [
    { stderrIsTerminal: false },
    { env: { TERM: 'dumb' } },
    { env: { CI: 'true' } },
    { env: { NO_COLOR: '1' } },
    { log: { level: 'silent', format: 'pretty' } },
    { log: { level: 'warn', format: 'json' } },
  ] as const) {
    t.false(allowsLiveLine({ ...TERMINAL, ...other }), JSON.stringify(other));
  }
});

/** The built program with its stderr on a terminal; resolves with the process and what the terminal has got. */
function probeOnTerminal(t: ExecutionContext, argv: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const { master, slave } = (openPty as OpenPty)(80, 24);
  const { PATH, HOME } = process.env;
  const child: ChildProcess = spawn(process.execPath, [EXECUTABLE, 'probe', ...argv], {
    env: { PATH, HOME, TERM: 'xterm', ...more },
    stdio: ['ignore', 'ignore', slave],
  });
  closeSync(slave);
  t.teardown(() => child.kill('SIGKILL'));
  let screen = '';
  const input = new ReadStream(master);
  input.on('data', (chunk) => (screen += String(chunk)));
  // What a terminal says when nobody is left at its other end.
  input.on('error', () => undefined);
  const read = new Promise<void>((resolve) => input.once('close', resolve));
  const closed = Promise.all([once(child, 'exit'), read]);
  return { child, closed, screen: () => screen };
}

ptyTest('a terminal shows what a probe waits for, and nothing of it is left at the end', async (t) => {
  const { child, closed, screen } = probeOnTerminal(t, stub('never-answers'));
  await waitFor(() => /waiting for node never-answers\.js to answer \([1-9]\d* s\)/.test(screen()), {
    message: () => `the line; seen: ${JSON.stringify(screen())}`,
  });
  child.kill('SIGINT');
  await closed;
  t.true(screen().endsWith(ERASE), JSON.stringify(screen().slice(-100)));
});

ptyTest('a terminal gets nothing of the kind with NO_COLOR', async (t) => {
  const { closed, screen } = probeOnTerminal(t, ['--timeout', '2s', ...stub('never-answers')], { NO_COLOR: '1' });
  await closed;
  t.is(screen(), '');
});

for (const [what, isTerminal, env, expected] of [
  ['a terminal has colors', true, {}, true],
  ['a file has none', false, {}, false],
  ['NO_COLOR takes them from a terminal', true, { NO_COLOR: '1' }, false],
  ['an empty NO_COLOR means nothing', true, { NO_COLOR: '' }, true],
  ['FORCE_COLOR gives them to a file', false, { FORCE_COLOR: '1' }, true],
  ['FORCE_COLOR=0 takes them from a terminal', true, { FORCE_COLOR: '0' }, false],
  ['NO_COLOR wins over FORCE_COLOR', true, { NO_COLOR: '1', FORCE_COLOR: '1' }, false],
  ['a terminal without the means has none', true, { TERM: 'dumb' }, false],
] as const) {
  test(what, (t) => {
    t.is(allowsColor(isTerminal, env), expected);
  });
}
