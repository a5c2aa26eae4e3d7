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
  return listProcesses().some((entry) => entry.pid === pid);
}

/** Fails when one of these processes outlives what it was started for. */
export async function assertGone(pids: readonly number[]): Promise<void> {
  let left = pids;
  await waitFor(
    () => {
      const running = new Set(listProcesses().map((entry) => entry.pid));
      left = left.filter((pid) => running.has(pid));
      return left.length === 0;
    },
    { message: () => `the end of processes ${left.join(', ')}` },
  );
}

function listProcesses(): ProcessEntry[] {
  if (process.platform === 'linux') return readProc();
  return process.platform === 'win32' ? [] : askPs();
}

/** Not `ps`: slim images come without it. */
function readProc(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = readIfThere(`/proc/${name}/stat`);
      // pid (command) state parent …; the command may contain anything, so the fields start after the last ')'.
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return parent === undefined || state === 'Z' ? [] : [{ pid: Number(name), parent: Number(parent) }];
    });
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
