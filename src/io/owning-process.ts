/** Identifies the process that a file belongs to, so that another process can check whether it still runs. */
import { createHash } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

export interface OwningProcess {
  /** Identifies the machine or container. */
  readonly host: string;
  readonly pid: number;
}

export interface ThisProcess extends OwningProcess {
  /** The start time in the file system's clock, for comparison with file timestamps. */
  readonly startedAtMs: number;
}

export function thisProcess(): ThisProcess {
  const host = createHash('sha256').update(`${hostname()}${pidNamespace()}`).digest('hex').slice(0, 8);
  return { host, pid: process.pid, startedAtMs: Date.now() - process.uptime() * 1000 };
}

/** Identifies a container. It may have the host name of its machine, and its pids are valid only inside of it. */
function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/**
 * Returns true if the owner of a file has certainly ended. An owner on another machine or in another container never
 * counts as ended.
 */
export function hasEnded({ host, pid }: OwningProcess, writtenAtMs: number, self: ThisProcess): boolean {
  if (host !== self.host) return false;
  // The file may belong to an earlier process with this pid, since each container starts at pid 1, or to a bridge in
  // this process.
  if (pid === self.pid) return writtenAtMs < self.startedAtMs;
  return !isRunning(pid);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    // The process of another user exists, too.
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'EPERM';
  }
}
