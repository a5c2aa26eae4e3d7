/** Runs a program with a time limit, in a process group of its own that is ended with it. */
import { spawn } from 'node:child_process';

export interface ProgramOptions {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly limitMs: number;
  /** Written to its stdin, which then stays open; with none, stdin is empty. */
  readonly input: string;
  /** The program has said what is wanted; it is ended then. */
  readonly isEnough: (stdout: string) => boolean;
}

export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
  readonly end: { readonly kind: 'exited'; readonly code: number | null } | { readonly kind: 'ended' | 'timed-out' };
}

/** What more than this is printed is not kept. */
const MAX_PRINTED = 4 * 1024 * 1024;

export function runProgram(file: string, options: ProgramOptions): Promise<Printed> {
  const { args, cwd, env, limitMs, input, isEnough } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    const endGroup = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // Nobody is left in it.
      }
    };
    const finish = (end: Printed['end']) => {
      clearTimeout(timer);
      endGroup();
      resolve({ stdout, stderr, end });
    };
    const timer = setTimeout(() => finish({ kind: 'timed-out' }), limitMs);
    child.stdin.on('error', () => undefined);
    if (input === '') child.stdin.end();
    else child.stdin.write(input);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < MAX_PRINTED) stdout += text;
      if (isEnough(stdout)) finish({ kind: 'ended' });
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (stderr.length < MAX_PRINTED) stderr += text;
    });
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    // A grandchild may hold the pipes open, so the group is ended at the exit, and the end of the pipes is awaited.
    child.once('exit', endGroup);
    child.once('close', (code) => finish({ kind: 'exited', code }));
  });
}

export function neverEnough(): boolean {
  return false;
}
