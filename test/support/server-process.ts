import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface ServerProcess {
  readonly pid: number;
  readonly url: URL;
  /** Dies without a word. */
  kill(): Promise<void>;
  /** May be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts a server that prints `{"url": …}` as its first line when it listens, and that ends with its stdin, so that it
 * cannot outlive the tests.
 */
export async function startServerProcess(program: string, args: readonly string[]): Promise<ServerProcess> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const url = await firstLineOf(child).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  return { pid: child.pid ?? Number.NaN, url, kill: () => end('SIGKILL'), stop: () => end('SIGTERM') };
}

async function firstLineOf(child: ChildProcess): Promise<URL> {
  if (child.stdout === null) throw new Error('the server has no stdout');
  for await (const line of createInterface({ input: child.stdout })) return new URL(JSON.parse(line).url);
  throw new Error('the server ended before it listened');
}
