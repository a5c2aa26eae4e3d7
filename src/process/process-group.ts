/** A child together with everything it started that stayed in its group (POSIX) or below it (Windows). */
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export type EndingSignal = 'SIGHUP' | 'SIGTERM' | 'SIGKILL';

export interface ProcessGroup {
  /** Sends a signal to every member. Does nothing if there is none. */
  signal(signal: EndingSignal): void;
  /** Sends SIGKILL synchronously. */
  killNow(): void;
  /** Returns true if a member still runs. Called once the leader has exited. */
  hasMembers(): boolean;
}

/** @param leaderPid on POSIX a child started with `detached`, so that its pid is also the id of its process group */
export function openProcessGroup(leaderPid: number): ProcessGroup {
  return process.platform === 'win32' ? windowsTree(leaderPid) : posixGroup(leaderPid);
}

function posixGroup(groupId: number): ProcessGroup {
  const send = (signal: EndingSignal | 0): boolean => {
    try {
      return process.kill(-groupId, signal);
    } catch {
      // ESRCH: there is no member. EPERM: there is none that this user may signal (on macOS also: only zombies are
      // left).
      return false;
    }
  };
  return {
    signal: (signal) => void send(signal),
    killNow: () => void send('SIGKILL'),
    hasMembers: () => send(0) && hasRunningMember(groupId),
  };
}

/**
 * Zombies count as members for kill(2), and in a container without an init process they may never be reaped. Only Linux
 * shows which members are zombies.
 */
function hasRunningMember(groupId: number): boolean {
  if (process.platform !== 'linux') return true;
  try {
    return readdirSync('/proc').some((name) => /^\d+$/.test(name) && runsInGroup(name, groupId));
  } catch {
    return true;
  }
}

function runsInGroup(pid: string, groupId: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // "pid (command) state parent group …"; the command may contain any character, including parentheses.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(group) === groupId && state !== 'Z' && state !== 'X';
  } catch {
    return false;
  }
}

/** Windows has neither process groups nor signals: taskkill walks down from the leader as long as the leader lives. */
function windowsTree(rootPid: number): ProcessGroup {
  const args = ['/pid', String(rootPid), '/T'];
  const options = { stdio: 'ignore', windowsHide: true } as const;
  return {
    signal(signal) {
      spawn('taskkill', signal === 'SIGKILL' ? [...args, '/F'] : args, options).on('error', () => undefined);
    },
    killNow: () => void spawnSync('taskkill', [...args, '/F'], options),
    hasMembers: () => false,
  };
}
