import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { assertGone, descendantsOf } from './processes.ts';
import { waitFor } from './wait-for.ts';

export const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const BIN = fileURLToPath(new URL('../../bin/mcp-portage.js', import.meta.url));
/** The built executable, run with the Node that runs the tests. */
export const BRIDGE_COMMAND = [process.execPath, BIN] as const;

/** One line of stderr: a parsed log line, or the line itself under `msg` when it was not JSON. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly msg?: string };

export interface BridgeExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface BridgeOptions {
  /** Added to the environment of the bridge itself, not of its children. */
  readonly env?: Readonly<Record<string, string>>;
  /** The program, where it is not the one that is built here. */
  readonly bin?: string;
}

/** The built executable, running. */
export interface Bridge {
  readonly pid: number;
  /** Streamable HTTP endpoint, of the first server if there are several. */
  readonly url: URL;
  /** HTTP+SSE endpoint. */
  readonly sseUrl: URL;
  /** Grows while the bridge runs. */
  readonly logs: readonly LogLine[];
  /** All of the log is there then. */
  readonly exited: Promise<BridgeExit>;
  /** Processes below the bridge that run now. */
  children(): number[];
  kill(signal: NodeJS.Signals): void;
  /** Ends the bridge and fails if it does not end, or if a process below it stays behind. May be called twice. */
  stop(): Promise<BridgeExit>;
}

/** A test runner that dies must not leave bridges behind. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/**
 * Starts `mcp-portage serve --port 0 …args` from the build and resolves when it listens.
 * @param args further options, then `--` and the command of the server
 */
export async function startBridge(
  args: readonly string[],
  { env = {}, bin = BIN }: BridgeOptions = {},
): Promise<Bridge> {
  const child = spawn(process.execPath, [bin, 'serve', '--port', '0', '--log-format', 'json', ...args], {
    cwd: REPOSITORY,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  const logs: LogLine[] = [];
  let exit: BridgeExit | undefined;
  const exited = Promise.all([once(child, 'exit'), readLog(child.stderr, logs)]).then(([[code, signal]]) => {
    exit = { code, signal };
    return exit;
  });
  running.add(child);
  void exited.then(() => running.delete(child));

  const endpoints = await waitFor(() => findEndpoints(logs) ?? failIfEnded(exit, logs), {
    message: () => `the bridge to listen; it said:\n${printLogs(logs)}`,
  }).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  const pid = child.pid ?? Number.NaN;
  return {
    pid,
    ...endpoints,
    logs,
    exited,
    children: () => descendantsOf(pid),
    kill: (signal) => void child.kill(signal),
    stop: () => stopBridge(child, exited, logs),
  };
}

async function stopBridge(child: ChildProcess, exited: Promise<BridgeExit>, logs: LogLine[]): Promise<BridgeExit> {
  const below = child.pid === undefined || hasEnded(child) ? [] : descendantsOf(child.pid);
  child.kill('SIGTERM');
  try {
    await waitFor(() => hasEnded(child), {
      message: () => `the bridge to end after SIGTERM; it said:\n${printLogs(logs)}`,
    });
  } finally {
    child.kill('SIGKILL');
  }
  await assertGone(below);
  return exited;
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/** Its last lines may arrive after the news of its end: they are waited for. */
function failIfEnded(exit: BridgeExit | undefined, logs: readonly LogLine[]): undefined {
  if (exit === undefined) return undefined;
  throw new Error(`the bridge ended (${exit.code ?? exit.signal}) before listening:\n${printLogs(logs)}`);
}

/** Resolves when it has ended, and all its lines are there. */
export async function readLog(stderr: Readable, into: LogLine[]): Promise<void> {
  await once(
    createInterface({ input: stderr }).on('line', (line) => into.push(parseLog(line))),
    'close',
  );
}

function parseLog(line: string): LogLine {
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed === 'object' && parsed !== null) return { ...parsed };
  } catch {
    // Not every line of stderr is a log line.
  }
  return { msg: line };
}

/** The one place that knows how the bridge announces where it listens: log lines with the URLs of its endpoints. */
function findEndpoints(logs: readonly LogLine[]): Pick<Bridge, 'url' | 'sseUrl'> | undefined {
  // The last of them comes last, or stands for more of them than are announced.
  if (!logs.some(({ msg = '' }) => /^Readiness |more addresses/.test(msg))) return undefined;
  const announced = JSON.stringify(logs).match(/https?:\/\/[^\s"\\]+/g) ?? [];
  const find = (path: string) => announced.find((url) => url.endsWith(path));
  const [url, sseUrl] = [find('/mcp'), find('/sse')];
  if (url === undefined) return undefined;
  // Each server of a file is announced by one address.
  return { url: new URL(url), sseUrl: new URL(sseUrl ?? url.replace(/\/mcp$/, '/sse')) };
}

const printLogs = (logs: readonly LogLine[]): string => logs.map((line) => JSON.stringify(line)).join('\n');
