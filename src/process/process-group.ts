/** A child together with everything it started that stayed in its group (POSIX) or below it (Windows). */
import { spawn, spawnSync } from 'node:child_process';

export type EndingSignal = 'SIGHUP' | 'SIGTERM' | 'SIGKILL';

export interface ProcessGroup {
  /** To every member. Not an error when there is none. */
  signal(signal: EndingSignal): void;
  /** SIGKILL that has been delivered when the call returns. */
  killNow(): void;
  /** Is anyone left, once the leader has exited? Unreaped members count. */
  hasMembers(): boolean;
}

/** @param leaderPid on POSIX started with `detached`, so that its pid is the id of a group of its own */
export function openProcessGroup(leaderPid: number): ProcessGroup {
  return process.platform === 'win32' ? windowsTree(leaderPid) : posixGroup(leaderPid);
}

function posixGroup(groupId: number): ProcessGroup {
  const send = (signal: EndingSignal | 0): boolean => {
    try {
      return process.kill(-groupId, signal);
    } catch {
      // ESRCH: nobody is left. EPERM: nobody we may touch is left (on macOS also: only unreaped ones).
      return false;
    }
  };
  return {
    signal: (signal) => void send(signal),
    killNow: () => void send('SIGKILL'),
    hasMembers: () => send(0),
  };
}

/** Windows has neither groups nor signals: taskkill walks down from the leader as long as that one lives. */
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
