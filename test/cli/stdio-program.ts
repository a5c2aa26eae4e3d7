import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
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
  readonly exited: Promise<ProgramExit>;
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
}

/** Killed when the test ends, if it has not ended by then. */
export function startConnect(
  t: ExecutionContext,
  argv: readonly string[],
  { isRead = true, isLogRead = true }: ProgramOptions = {},
): StdioProgram {
  // Settings of whoever runs the tests are no part of them.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('MCP_PORTAGE_')));
  const child = spawn(process.execPath, [EXECUTABLE, 'connect', ...argv], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdin.on('error', () => undefined);
  const exited = once(child, 'exit').then(([code, signal]): ProgramExit => ({ code, signal }));
  const lines: string[] = [];
  if (isRead) createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
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

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'by-hand', version: '1.0.0' } },
} as const;

export function callEcho(id: number, text: string): object {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: { text } } };
}
