/**
 * What a store costs a call in the replica that has the session. Two processes that do the same differ by up to a fifth, so
 * a replica is measured beside two bridges without a store, with new processes in each set.
 */
import type { Bridge } from '../../test/support/bridge.ts';
import { openHttpClient } from '../bridges/endpoint.ts';
import type { Client } from '../load/client.ts';
import { drive } from '../load/drive.ts';
import { Numbers } from '../load/numbers.ts';
import { PROGRESS, SMALL_32, type Workload } from '../load/workload.ts';
import { readCpuNanos } from '../measure/proc.ts';
import type { PairFigures, PairKind } from '../report/cluster-run.ts';
import { type Bed, LEAST_COMMAND, portOf } from './replicas.ts';

export interface PairEffort {
  readonly pairSets: number;
  /** Slices of each set that are measured, one after the other by each bridge. */
  readonly slices: number;
  readonly sliceMs: number;
  /** Before the first of them, as new processes compile their code. */
  readonly warmMs: number;
}

interface MeasuredPair {
  readonly kind: PairKind;
  readonly target: (bed: Bed) => readonly string[];
  readonly workload: Workload;
}

const EVENTS = 10;
const STREAM: Workload = {
  ...PROGRESS,
  name: 'stream',
  title: `calls with ${EVENTS} progress events`,
  argumentsTail: `,"count":${EVENTS}`,
  inFlight: SMALL_32.inFlight,
  progressEvents: EVENTS,
};

export const MEASURED_PAIRS: readonly MeasuredPair[] = [
  { kind: 'command', target: () => LEAST_COMMAND, workload: SMALL_32 },
  { kind: 'remote', target: (bed) => bed.remote('mcp'), workload: SMALL_32 },
  { kind: 'remote-stream', target: (bed) => bed.remote('mcp'), workload: STREAM },
];

const CLIENTS = 2;
const LEGACY = { era: 'legacy', answersIn: 'legacy' } as const;

export async function measurePairs(measured: MeasuredPair, effort: PairEffort, bed: Bed): Promise<PairFigures> {
  const replica: number[] = [];
  const storeless: number[] = [];
  for (let set = 0; set < effort.pairSets; set += 1) {
    const [first, second, third] = await measureSet(measured, effort, bed, set);
    replica.push(third);
    storeless.push(first, second);
  }
  return { kind: measured.kind, inFlight: measured.workload.inFlight, replica, storeless };
}

type Three<Value> = readonly [Value, Value, Value];

/** Microseconds of a call in two bridges without a store, and in a replica. Another one starts first in each set. */
async function measureSet(
  { target, workload }: MeasuredPair,
  { slices, sliceMs, warmMs }: PairEffort,
  bed: Bed,
  set: number,
): Promise<Three<number>> {
  const starts = [
    () => bed.startStoreless(target(bed)),
    () => bed.startStoreless(target(bed)),
    () => bed.startReplica(target(bed)),
  ];
  const measured: Measured[] = [];
  for (const turn of starts.keys()) {
    const index = (set + turn) % starts.length;
    const bridge = await starts[index]?.();
    if (bridge !== undefined) measured[index] = await Measured.open(bridge, workload);
  }
  for (const one of measured) await one.drive(warmMs);
  for (const one of measured) one.forget();
  for (let slice = 0; slice < slices; slice += 1) {
    for (const turn of measured.keys()) await measured[(slice + turn) % measured.length]?.drive(sliceMs);
  }
  const [first, second, third] = measured.map(({ microsOfACall }) => microsOfACall);
  for (const one of measured) await one.close();
  await bed.stop(measured.map(({ bridge }) => bridge));
  return [first ?? Number.NaN, second ?? Number.NaN, third ?? Number.NaN];
}

class Measured {
  readonly bridge: Bridge;
  readonly #clients: readonly Client[];
  readonly #workload: Workload;
  #micros = 0;
  #calls = 0;

  static async open(bridge: Bridge, workload: Workload): Promise<Measured> {
    const clients: Client[] = [];
    for (let index = 0; index < CLIENTS; index += 1) {
      const identity = { name: `client${index}`, numbers: new Numbers(), ...LEGACY };
      clients.push(await openHttpClient({ port: portOf(bridge), path: '/mcp' }, identity, 'streamable'));
    }
    return new Measured(bridge, clients, workload);
  }

  private constructor(bridge: Bridge, clients: readonly Client[], workload: Workload) {
    this.bridge = bridge;
    this.#clients = clients;
    this.#workload = workload;
  }

  get microsOfACall(): number {
    return this.#micros / this.#calls;
  }

  async drive(forMs: number): Promise<void> {
    const edges: number[] = [];
    const { calls } = await drive({
      clients: this.#clients,
      workload: this.#workload,
      forMs,
      maxCalls: Number.POSITIVE_INFINITY,
      onEdge: () => edges.push(readCpuNanos(this.bridge.pid) ?? Number.NaN),
    });
    const [before = Number.NaN, after = Number.NaN] = edges;
    this.#micros += (after - before) / 1000;
    this.#calls += calls;
  }

  forget(): void {
    this.#micros = 0;
    this.#calls = 0;
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.close();
  }
}
