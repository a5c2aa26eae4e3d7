/** Processes of the benchmark. Each leads a group of its own, so that nothing it started outlives it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface Program {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Started {
  readonly pid: number;
  readonly child: ChildProcess;
}

/** One that speaks on its pipes. */
export interface Piped extends Started {
  readonly stdin: Writable;
  readonly stdout: Readable;
}

/** Everything that runs now; ended with the benchmark, however it ends. */
const running = new Set<Started>();
process.once('exit', () => {
  for (const started of running) signalGroup(started, 'SIGKILL');
});

/** Starts a Node program as a service: its log goes nowhere, wherever it writes it. */
export function startService(program: Program): Started {
  return start(program, 'ignore');
}

/** A service that tells when it is asked how long its event loop stood still; see watch-loop.cjs. */
export function startWatched({ args, env }: Program): Started {
  return start({ args: ['--require', WATCH_LOOP, ...args], ...(env && { env }) }, 'ignore', ['ipc']);
}

const WATCH_LOOP = fileURLToPath(new URL('../stalls/watch-loop.cjs', import.meta.url));

export function startPiped(program: Program): Piped {
  const started = start(program, 'pipe');
  const { stdin, stdout } = started.child;
  if (stdin === null || stdout === null) throw new Error('no pipes');
  return { ...started, stdin, stdout };
}

function start({ args, env }: Program, stdio: 'ignore' | 'pipe', more: readonly 'ipc'[] = []): Started {
  const child = spawn(process.execPath, args, {
    stdio: [stdio, stdio, 'ignore', ...more],
    env: { ...process.env, ...env },
    detached: true,
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`cannot start node ${args.join(' ')}`);
  const started = { pid, child };
  running.add(started);
  return started;
}

const GRACE_MS = 2000;

export async function stop(started: Started): Promise<void> {
  const { child } = started;
  child.stdout?.resume();
  if (!hasExited(started)) {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await Promise.race([exited, delay(GRACE_MS, undefined, { ref: false })]);
  }
  signalGroup(started, 'SIGKILL');
  running.delete(started);
}

export function hasExited({ child }: Started): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function signalGroup({ pid }: Started, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone.
  }
}

const LISTEN_TIMEOUT_MS = 30_000;
/** Short beside every start; a refused connection costs the starting process nothing. */
const LISTEN_POLL_MS = 2;

/** Resolves when something accepts connections there. */
/** @param place a port, or the path of a Unix socket */
export async function waitForPlace(place: number | string, started: Started): Promise<void> {
  const deadline = performance.now() + LISTEN_TIMEOUT_MS;
  while (!(await accepts(place))) {
    if (hasExited(started)) throw new Error(`it exited with code ${started.child.exitCode} before it listened`);
    if (performance.now() > deadline) throw new Error('it does not listen');
    await delay(LISTEN_POLL_MS);
  }
}

function accepts(place: number | string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = typeof place === 'string' ? connect(place) : connect({ port: place, host: '127.0.0.1' });
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
