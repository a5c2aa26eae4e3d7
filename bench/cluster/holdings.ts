/** What replicas cost without calls: the commands they send to Redis at rest, and the memory of sessions. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Bridge } from '../../test/support/bridge.ts';
import { readRssMiB } from '../measure/proc.ts';
import type { RestFigures, SessionFigures } from '../report/cluster-run.ts';
import { callOnce, openSession, openSessions, openStream } from './posts.ts';
import type { RedisMeter } from './redis-counts.ts';
import { type Bed, LEAST_COMMAND, portOf } from './replicas.ts';

export interface HoldingEffort {
  /** What is counted at rest. */
  readonly leases: number;
  /** Sessions of one step, and steps. The first step fills what is allocated only once. */
  readonly sessions: number;
  readonly steps: number;
}

interface Parts {
  readonly bed: Bed;
  readonly meter: RedisMeter;
}

/** Shorter than by default, so that there is more to count in the same time. */
const LEASE_MS = 3000;
const REPLICAS = 3;
/** Until what a replica does after its last answer is done. */
const SETTLE_MS = 500;
const BYTES_OF_A_MIB = 1024 * 1024;

/** Counts what replicas ask Redis while nobody calls: before any of them has to do with another one, and afterward. */
export async function measureRest(leases: number, { bed, meter }: Parts): Promise<RestFigures> {
  const replicas: Bridge[] = [];
  for (let index = 0; index < REPLICAS; index += 1) {
    replicas.push(await bed.startReplica(LEAST_COMMAND, ['--lease', `${LEASE_MS}ms`]));
  }
  const rest = async (): Promise<{ readonly commands: number; readonly bytes: number }> => {
    const { commands, bytes } = await meter.during(() => delay(leases * LEASE_MS));
    return { commands: commands / leases / REPLICAS, bytes: bytes / leases / REPLICAS };
  };
  await delay(SETTLE_MS);
  const apart = await rest();
  const ping = { method: 'ping', era: 'legacy', answered: '"result"' } as const;
  for (const owner of replicas) {
    const session = await openSession(portOf(owner));
    for (const replica of replicas) await callOnce(portOf(replica), session, ping, 1);
  }
  await delay(SETTLE_MS);
  const acquainted = await rest();
  await bed.stop(replicas);
  const others = REPLICAS - 1;
  return {
    leases,
    commands: apart.commands,
    bytes: apart.bytes,
    commandsPerPeer: (acquainted.commands - apart.commands) / others,
    bytesPerPeer: (acquainted.bytes - apart.bytes) / others,
  };
}

/** What one session with a remote server takes of Redis, and of the memory of its replica. */
export async function measureSessions(
  { sessions, steps }: HoldingEffort,
  { bed, meter }: Parts,
): Promise<SessionFigures> {
  const replica = await bed.startReplica(bed.remote('mcp'));
  await openSessions(portOf(replica), sessions);
  const opened = await meter.during(async () => {
    await openSessions(portOf(replica), sessions);
    await delay(SETTLE_MS);
  });
  const bytes = await grow(replica, steps, sessions, () => openSessions(portOf(replica), sessions));
  const streaming = await bed.startReplica(bed.remote('streams'));
  const closers: (() => void)[] = [];
  const openWithStreams = async (): Promise<void> => {
    for (const id of await openSessions(portOf(streaming), sessions)) {
      closers.push(await openStream(portOf(streaming), id));
    }
  };
  await openWithStreams();
  const bytesWithStream = await grow(streaming, steps, sessions, openWithStreams);
  for (const close of closers) close();
  await bed.stop([replica, streaming]);
  return {
    redisCommands: opened.commands / sessions,
    redisBytes: opened.bytes / sessions,
    redisMemoryBytes: opened.memoryBytes / sessions,
    bytes,
    bytesWithStream,
  };
}

/** Bytes that the process grows by for each session, step by step. */
async function grow(
  { pid }: Bridge,
  steps: number,
  sessions: number,
  open: () => Promise<unknown>,
): Promise<readonly number[]> {
  const grown: number[] = [];
  for (let step = 0; step < steps; step += 1) {
    const before = readRssMiB(pid) ?? Number.NaN;
    await open();
    await delay(SETTLE_MS);
    grown.push((((readRssMiB(pid) ?? Number.NaN) - before) * BYTES_OF_A_MIB) / sessions);
  }
  return grown;
}
