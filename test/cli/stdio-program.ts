import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { descendantsOf } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

export const EXECUTABLE = fileURLToPath(new URL('../../bin/mcp-portage.js', import.meta.url));
const SERVERS = fileURLToPath(new URL('../fixtures/servers/', import.meta.url));

/** One of the small servers of the tests, as words of a command line. */
export function stub(name: string, ...args: string[]): string[] {
  return ['--', process.execPath, join(SERVERS, `${name}.js`), ...args];
}

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** `mcp-portage connect …`, as a client sees it that was written without an SDK. */
export interface StdioProgram {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Everything on stdout so far, line by line. */
  readonly lines: readonly string[];
  /** All that is read of it is there then. */
  readonly exited: Promise<ProgramExit>;
  /** Everything on stderr so far, where it is read. */
  log(): string;
  send(message: object): void;
  /** The answer to a request, once it is there. */
  answerTo(
    id: number,
  ): Promise<{ readonly result?: Record<string, unknown>; readonly error?: Record<string, unknown> }>;
  initialize(): Promise<void>;
  /** Processes below it that run now. */
  children(): number[];
}

export interface ProgramOptions {
  /** False: its stdout stays a pipe that nobody reads. */
  readonly isRead?: boolean;
  /** False: the same for stderr. */
  readonly isLogRead?: boolean;
  /** True: `child` is a client that only starts it, with its own pipes. Killed, it leaves the program to itself. */
  readonly hasParent?: boolean;
  /** Added to its environment. */
  readonly env?: Readonly<Record<string, string>>;
}

const PARENT = [
  '-e',
  "require('node:child_process').spawn(process.execPath, process.argv.slice(1), { stdio: 'inherit' })",
];

/** Killed when the test ends, if it has not ended by then. */
export function startConnect(
  t: ExecutionContext,
  argv: readonly string[],
  { isRead = true, isLogRead = true, hasParent = false, env: own = {} }: ProgramOptions = {},
): StdioProgram {
  // Settings of whoever runs the tests are no part of them.
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('MCP_PORTAGE_'));
  const env = { ...Object.fromEntries(others), ...own };
  const args = [...(hasParent ? [...PARENT, '--'] : []), EXECUTABLE, 'connect', ...argv];
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdin.on('error', () => undefined);
  // Not with 'exit': it may overtake what was written before, for processes that end at about the same time end together.
  const exited = once(child, 'close').then(([code, signal]): ProgramExit => ({ code, signal }));
  const lines: string[] = [];
  if (isRead) readLines(child.stdout, lines);
  let log = '';
  if (isLogRead) child.stderr.on('data', (chunk) => (log += String(chunk)));

  const send = (message: object): void => void child.stdin.write(`${JSON.stringify(message)}\n`);
  const answerTo = (id: number) =>
    waitFor(
      () => lines.map((line) => JSON.parse(line)).find((message) => message.id === id && !('method' in message)),
      {
        message: () => `the answer to ${id}; its log:\n${log}`,
      },
    );
  return {
    child,
    lines,
    exited,
    log: () => log,
    send,
    answerTo,
    async initialize() {
      send(INITIALIZE);
      await answerTo(INITIALIZE.id);
      send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    },
    children: () => (child.pid === undefined ? [] : descendantsOf(child.pid)),
  };
}

/** Of Node's own reader, U+2028 in a text ends a line as well, from Node 24 on. */
function readLines(input: Readable, into: string[]): void {
  let rest = '';
  input.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    into.push(...lines);
  });
}

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'by-hand', version: '1.0.0' } },
} as const;

export function callEcho(id: number, text: string): object {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: { text } } };
}
