import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { says } from '../support/says.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectClient, type Era, type FaultClient } from './fault-clients.ts';

const PROGRAM = fileURLToPath(new URL('../fixtures/servers/faulty.js', import.meta.url));

/** The command of a server with faults. */
export const faulty = (...words: string[]): string[] => ['--', process.execPath, PROGRAM, ...words];

export interface FaultyOptions {
  readonly options?: readonly string[];
  /** Default: a server with faults, of the era of its clients. */
  readonly target?: readonly string[];
  /** That of the clients. */
  readonly era?: Era;
  /** Resolves when the bridge holds what it holds without clients. Default: it does when it listens. */
  readonly isReady?: (bridge: Bridge) => Promise<unknown>;
}

/** What came of those who were there before the fault. */
export interface Aftermath {
  /** What the log says, all in all; see `says`. Default: nothing. */
  readonly log?: readonly string[];
  /** Default: served as before. `is over`: the fault was everybody's, so its session is gone, too. */
  readonly witness?: 'is served' | 'is over';
}

export interface Faulty {
  readonly bridge: Bridge;
  readonly victim: FaultClient;
  /** Another client, whom the fault shall not concern. */
  readonly witness: FaultClient;
  /** Of the process that serves the victim at first: one of its own, or the only one. */
  readonly childPid: number;
  /** Fails unless it is as expected, the next client is served, and nothing has stayed of the fault. Ends the bridge. */
  recovered(aftermath?: Aftermath): Promise<void>;
}

/** The bridge before a server with faults, or what else `target` names. Ended with the test, when nothing may be left. */
export async function startFaulty(
  t: ExecutionContext,
  { options = [], era = 'legacy', target = faulty(era), isReady }: FaultyOptions = {},
): Promise<Faulty> {
  const bridge = await startBridge(['--shutdown-grace', '300ms', ...options, ...target]);
  t.teardown(() => bridge.stop());
  await isReady?.(bridge);
  const witness = await connectClient(bridge, era);
  await witness.call('echo', 'before');
  const before = await steadyHandles(bridge);
  const earlier = bridge.children();
  const victim = await connectClient(bridge, era);
  const children = bridge.children();
  // Not the highest number: after the highest of all the system begins with low ones again.
  const childPid = children.find((pid) => !earlier.includes(pid)) ?? children[0] ?? Number.NaN;
  const recovered = async ({ log = [], witness: fate = 'is served' }: Aftermath = {}): Promise<void> => {
    const { status, text } = await witness.call('echo', 'undisturbed');
    if (fate === 'is served') t.is(text, 'undisturbed');
    else t.is(status, 404);
    const next = await connectClient(bridge, era);
    t.is((await next.call('echo', 'welcome')).text, 'welcome');
    await next.leave();
    await victim.leave();
    await waitFor(() => handlesOf(bridge.pid) <= before && bridge.children().length <= earlier.length, {
      message: () =>
        `${handlesOf(bridge.pid)} handles to become ${before} again, ${bridge.children().length} children ${earlier.length}`,
    });
    await bridge.stop();
    says(t, bridge, log);
  };
  return { bridge, victim, witness, childPid, recovered };
}

/**
 * Resolves when the bridge has dealt with what was sent to it before, as far as that can be: it has looked at all of its
 * connections since.
 */
export async function hasLooked({ url }: Bridge): Promise<void> {
  // The first question may be seen together with what came before it, or ahead of it.
  const port = Number(url.port);
  for (let times = 0; times < 3; times += 1) await (await callHttp({ port, path: '/healthz' })).text();
}

/** Sockets, pipes and files of a process; 0 where nobody can tell. */
export function handlesOf(pid: number): number {
  return process.platform === 'linux' ? readdirSync(`/proc/${pid}/fd`).length : 0;
}

/** 0 also of one that has ended. */
export function rssMiBOf(pid: number): number {
  if (process.platform !== 'linux' || !existsSync(`/proc/${pid}/status`)) return 0;
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** Connections of clients close a moment after their answers. */
async function steadyHandles({ pid }: Bridge): Promise<number> {
  let last = -1;
  let times = 0;
  return waitFor(() => {
    const now = handlesOf(pid);
    times = now === last ? times + 1 : 0;
    last = now;
    return times >= 5 && now;
  });
}
