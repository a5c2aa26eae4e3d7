import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { waitFor } from './wait-for.ts';

interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
}

/** All descendants of a process that run now, zombies excluded. Empty on Windows, where this is not looked up. */
export function descendantsOf(pid: number): number[] {
  const table = listProcesses();
  const found: number[] = [];
  for (let generation = [pid]; generation.length > 0; ) {
    const parents = new Set(generation);
    generation = table.filter((entry) => parents.has(entry.parent)).map((entry) => entry.pid);
    found.push(...generation);
  }
  return found;
}

export function isAlive(pid: number): boolean {
  return runningAmong([pid]).length > 0;
}

/** Fails when one of these processes outlives what it was started for. */
export async function assertGone(pids: readonly number[]): Promise<void> {
  let left = pids;
  await waitFor(
    () => {
      left = runningAmong(left);
      return left.length === 0;
    },
    { message: () => `the end of processes ${left.join(', ')}` },
  );
}

/** Asked again and again until none is left, so on Linux without a look at all the others. */
function runningAmong(pids: readonly number[]): readonly number[] {
  if (process.platform === 'linux') return pids.filter((pid) => readEntry(pid) !== undefined);
  const running = new Set(listProcesses().map((entry) => entry.pid));
  return pids.filter((pid) => running.has(pid));
}

function listProcesses(): ProcessEntry[] {
  if (process.platform === 'linux') return readProc();
  return process.platform === 'win32' ? [] : askPs();
}

/** Not `ps`: slim images come without it. */
function readProc(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readEntry(Number(name)) ?? []);
}

/** @returns undefined where it does not run, or is a zombie */
function readEntry(pid: number): ProcessEntry | undefined {
  const stat = readIfThere(`/proc/${pid}/stat`);
  // pid (command) state parent …; the command may contain anything, so the fields start after the last ')'.
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return parent === undefined || state === 'Z' ? undefined : { pid, parent: Number(parent) };
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function askPs(): ProcessEntry[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).trim().split('\n');
  return lines.flatMap((line) => {
    const [pid, parent, state] = line.trim().split(/\s+/);
    return state?.startsWith('Z') ? [] : [{ pid: Number(pid), parent: Number(parent) }];
  });
}
