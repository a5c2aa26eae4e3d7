/** The built program with whatever arguments, where it does not listen at a port, or not in the usual way. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { BRIDGE_COMMAND, type BridgeExit, type LogLine, REPOSITORY, readLog } from './bridge.ts';
import { waitFor } from './wait-for.ts';

export interface SocketBridge {
  readonly pid: number;
  readonly logs: readonly LogLine[];
  readonly exited: Promise<BridgeExit>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when it listens; rejects when it ends before. */
  listens(): Promise<void>;
}

export interface SocketBridgeOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Descriptors of this process that it has from 3 on. */
  readonly inherited?: readonly number[];
  /** What is run; default: the program itself. */
  readonly command?: readonly string[];
}

/** Killed when the test ends, if it still runs then. */
export function startSocketBridge(
  t: ExecutionContext,
  args: readonly string[],
  { env = {}, inherited = [], command = BRIDGE_COMMAND }: SocketBridgeOptions = {},
): SocketBridge {
  const [program = '', ...before] = command;
  const child = spawn(program, [...before, 'serve', '--log-format', 'json', ...args], {
    cwd: REPOSITORY,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'pipe', ...inherited],
  });
  const logs: LogLine[] = [];
  let hasEnded = false;
  const read = child.stderr === null ? undefined : readLog(child.stderr, logs);
  const exited = Promise.all([once(child, 'exit'), read]).then(([[code, signal]]): BridgeExit => {
    hasEnded = true;
    return { code, signal };
  });
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return {
    pid: child.pid ?? Number.NaN,
    logs,
    exited,
    kill: (signal) => void child.kill(signal),
    async listens() {
      const isThere = () => hasEnded || logs.some(({ msg = '' }) => /^Readiness /.test(msg));
      await waitFor(isThere, { message: () => `the bridge to listen; it said ${JSON.stringify(logs)}` });
      if (hasEnded) throw new Error(`the bridge has ended: ${JSON.stringify(logs)}`);
    },
  };
}

/** Its path is short enough for sockets; gone when the test ends. */
export async function createSocketFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'portage-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
