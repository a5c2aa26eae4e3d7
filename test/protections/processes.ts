import type { Protection } from './protection.ts';

const CHILD = { tests: ['test/process/pipe-child.test.ts'] } as const;
const TERMINATION = { file: 'src/process/terminate.ts', tests: ['test/process/terminate.test.ts'] } as const;
const GROUP = { file: 'src/process/process-group.ts', ...CHILD } as const;
const RUNNING = { file: 'src/process/running-child.ts', ...CHILD } as const;
const STDERR = { file: 'src/process/stderr-log.ts', tests: ['test/process/stderr-log.test.ts'] } as const;
const POLICY = { file: 'src/process/supervisor.ts', tests: ['test/process/supervisor.test.ts'] } as const;
const MESSAGES = { file: 'src/upstream/stdio-messages.ts', tests: ['test/upstream/stdio-messages.test.ts'] } as const;
const LINK = { file: 'src/upstream/stdio-link.ts', tests: ['test/upstream/stdio.test.ts'] } as const;
const CODE_FILE = { file: 'src/start/code-file.ts', tests: ['test/start/code-file.test.ts'] } as const;

/** Processes: how they start, what they may do to the bridge, and that they end. */
export const PROCESSES: readonly Protection[] = [
  {
    promise: 'arguments go to the command as they are, without a shell',
    file: 'src/process/pipe-child.ts',
    ...CHILD,
    title: 'passes arguments as they are*',
    code: 'windowsHide: true,',
    without: 'windowsHide: true,\n      shell: true,',
  },
  {
    promise: 'a process gets its own environment and nothing of ours',
    file: 'src/process/pipe-child.ts',
    ...CHILD,
    title: 'gives the child its environment*',
    code: 'env: spec.env,',
  },
  {
    promise: 'a process is asked first, by the end of its input',
    ...TERMINATION,
    code: "action: carrier === 'pipe' ? 'close-stdin' : 'SIGHUP', waitMs: graceMs",
    without: "action: 'SIGTERM', waitMs: graceMs",
  },
  {
    promise: 'a process that ignores the end of its input is ended',
    ...TERMINATION,
    code: "{ action: 'SIGTERM', waitMs: graceMs },",
  },
  {
    promise: 'a process that ignores SIGTERM is killed',
    ...TERMINATION,
    title: 'goes down the ladder*',
    code: "waitMs: graceMs },\n    { action: 'SIGKILL', waitMs: AFTER_KILL_MS },",
    without: 'waitMs: graceMs },',
  },
  {
    promise: 'what outlives its parent is ended',
    ...TERMINATION,
    code: 'if (!group.hasMembers()) return this.#finish();\n    this.#state',
    without: 'if (group !== undefined) return this.#finish();\n    this.#state',
  },
  {
    promise: 'what outlives its parent and ignores SIGTERM is killed',
    ...TERMINATION,
    code: "waitMs: Math.min(graceMs, MAX_FOLLOW_MS) },\n    { action: 'SIGKILL', waitMs: AFTER_KILL_MS },",
    without: 'waitMs: Math.min(graceMs, MAX_FOLLOW_MS) },',
  },
  {
    promise: 'signals go to the whole group',
    ...GROUP,
    title: 'ends a * grandchild*',
    code: 'process.kill(-groupId, signal)',
    without: 'process.kill(groupId, signal)',
  },
  {
    promise: 'a flood on stderr does not stop a process',
    ...RUNNING,
    title: '*flood on stderr',
    code: "stderr.on('data', (chunk: Buffer) => this.#stderrLog.push(chunk));",
  },
  {
    promise: 'what holds the pipes of a process that has exited is not waited for',
    ...RUNNING,
    title: '*a process in another group still holds',
    code: 'stdout.destroy();\n      stderr.destroy();',
  },
  {
    promise: 'writing to a process that is gone is no failure of the bridge',
    ...RUNNING,
    title: 'survives writes*',
    code: "stdin.on('error', (err) => log.debug({ err }, 'child stdin error'));",
  },
  { promise: 'lines of stderr are limited', ...STDERR, code: 'part.subarray(0, room)', without: 'part' },
  {
    promise: 'stderr cannot forge lines of the log',
    ...STDERR,
    code: "toPrintable(this.#line.take().toString('utf8'), MAX_STDERR_LINE_BYTES)",
    without: "this.#line.take().toString('utf8')",
  },
  {
    promise: 'a server that cannot run is not started again and again',
    ...POLICY,
    code: 'if (refusal !== undefined) throw refusal;',
  },
  {
    promise: 'noise on stdout is skipped',
    ...MESSAGES,
    code: 'if (envelope !== undefined) this.#options.sink.message(new Frame(bytes, envelope));',
    without: 'if (envelope !== null) this.#options.sink.message(new Frame(bytes, envelope as never));',
  },
  {
    promise: 'an over-long message fails the call that it answers',
    ...MESSAGES,
    code: 'const { kind, id } = recoverEnvelope(head, tail);',
    without: 'const { kind, id } = recoverEnvelope(head.subarray(0, 0), tail.subarray(0, 0));',
  },
  {
    promise: 'a server that closes its stdout and stays is ended',
    ...LINK,
    title: 'ends a server that closed its stdout*',
    code: 'this.#lost(error);\n      this.#letGo();',
    without: 'void error;',
  },
  {
    promise: 'processes end with the bridge',
    file: 'src/upstream/stdio.ts',
    tests: ['test/upstream/stdio.test.ts'],
    title: 'resolves close when all children are gone*',
    code: '[...this.#children].map((child) => child.terminate())',
    without: '[]',
  },
  {
    promise: 'the last resort leaves no process behind',
    file: 'src/upstream/stdio.ts',
    tests: ['test/upstream/stdio.test.ts'],
    title: 'kills everything at once*',
    code: 'for (const child of this.#children) child.killNow();',
  },
  {
    promise: 'compiled code that somebody else could have written is not run',
    ...CODE_FILE,
    title: 'a file that others may write*',
    code: 'isPrivate(fstatSync(fd)) ? readFileSync(fd) : undefined',
    without: 'readFileSync(fd)',
  },
  {
    promise: 'compiled code is not written where others may write',
    ...CODE_FILE,
    title: 'a folder that others may write*',
    code: 'if (!isPrivate(lstatSync(path))) throw',
    without: 'if (path === undefined) throw',
  },
  {
    promise: 'compiled code is not read through a link',
    ...CODE_FILE,
    title: 'a link is not followed*',
    code: ' | (constants.O_NOFOLLOW ?? 0)',
  },
];
