/** Children on pipes: the usual case. */
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { Writable } from 'node:stream';
import spawn from 'cross-spawn';
import type { Deps } from '../deps.ts';
import type { Child, ChildListener, ChildSpec } from './child.ts';
import { RunningChild } from './running-child.ts';
import { toSpawnError } from './spawn-error.ts';

/** Starts a child. Throws BridgeError ERR_UPSTREAM_SPAWN unless the system reports the failure later. */
export type StartChild = (spec: ChildSpec, listener: ChildListener) => Child;

export function createPipeStarter(deps: Deps): StartChild {
  return (spec, listener) => startPipeChild(spec, listener, deps);
}

function startPipeChild(spec: ChildSpec, listener: ChildListener, { log, clock }: Deps): Child {
  const process = spawnProcess(spec, ['pipe', 'pipe', 'pipe']);
  const { pid, stdin, stdout, stderr } = process;
  if (pid === undefined || stdin === null || stdout === null || stderr === null) {
    return awaitFailure(spec, listener, process);
  }
  const childLog = log.child({ child: spec.name, childPid: pid });
  const carried = { carrier: 'pipe', stdin, stdout, stderr } as const;
  return new RunningChild({ spec, process, pid, ...carried, listener, clock, log: childLog });
}

/** Starts a program without a shell. On Windows cross-spawn starts .cmd files as well. */
export function spawnProcess(spec: ChildSpec, stdio: SpawnOptions['stdio']): ChildProcess {
  try {
    return spawn(spec.command, spec.args, {
      cwd: spec.cwd,
      env: spec.env,
      stdio,
      // On POSIX this makes a process group, so that the whole group can be ended. On Windows it would open a console
      // window.
      detached: globalThis.process.platform !== 'win32',
      windowsHide: true,
    });
  } catch (thrown) {
    throw toSpawnError(spec, thrown);
  }
}

/** Stands for a child that the system refused to start. Node reports the reason only in the next tick. */
export function awaitFailure(spec: ChildSpec, listener: ChildListener, process: ChildProcess): Child {
  process.once('error', (cause) => listener.failed(toSpawnError(spec, cause)));
  return {
    name: spec.name,
    pid: undefined,
    stdin: new Writable({ write: (_chunk, _encoding, done) => done() }),
    lastHeardMs: Number.NEGATIVE_INFINITY,
    isEnding: true,
    hasFailed: false,
    pauseOutput: () => undefined,
    resumeOutput: () => undefined,
    terminate: () => Promise.resolve(),
    killNow: () => undefined,
    gone: Promise.resolve(),
  };
}
