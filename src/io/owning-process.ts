/** Names the process that a file belongs to, so that another process can tell whether that one still runs. */
import { createHash } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

export interface OwningProcess {
  /** Tells machines and containers apart. */
  readonly host: string;
  readonly pid: number;
}

export interface ThisProcess extends OwningProcess {
  /** By the clock that the file system stamps files with. */
  readonly startedAtMs: number;
}

export function thisProcess(): ThisProcess {
  const host = createHash('sha256').update(`${hostname()}${pidNamespace()}`).digest('hex').slice(0, 8);
  return { host, pid: process.pid, startedAtMs: Date.now() - process.uptime() * 1000 };
}

/** Containers may have the name of their machine, and numbers of processes that mean something in them alone. */
function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/** Returns true if the owner of a file has certainly ended, which is never certain on another machine or in a container. */
export function hasEnded({ host, pid }: OwningProcess, writtenAtMs: number, self: ThisProcess): boolean {
  if (host !== self.host) return false;
  // A process of the same number that ended earlier, as each container begins with number 1; or a bridge beside this one.
  if (pid === self.pid) return writtenAtMs < self.startedAtMs;
  return !isRunning(pid);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    // A process of another user runs, too.
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'EPERM';
  }
}
