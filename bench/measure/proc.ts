/** What the kernel says about one process, and only about it: its children are counted for nobody. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Nanoseconds of processor time, user and system, of all threads. /proc/PID/stat has the same sum in hundredths of a
 * second, which is too coarse for short measurements. Undefined where there is no such file.
 */
export function readCpuNanos(pid: number): number | undefined {
  try {
    let nanos = 0;
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanos += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
    }
    return nanos;
  } catch {
    return undefined;
  }
}

export function readRssMiB(pid: number): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return kib === undefined ? undefined : Number(kib) / 1024;
  } catch {
    return undefined;
  }
}

export function listChildren(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    const listed = readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').trim();
    return listed === '' ? [] : listed.split(' ').map(Number);
  });
}
