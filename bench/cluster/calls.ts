/** What a call costs in one bridge without a store, in the replica that has its session, and in both replicas where it is forwarded. */
import type { Bridge } from '../../test/support/bridge.ts';
import { readCpuNanos } from '../measure/proc.ts';
import {
  CALLS_IN_FLIGHT,
  type CallCosts,
  type CallFigures,
  type CallKind,
  type RouteCosts,
  type RouteName,
} from '../report/cluster-run.ts';
import { type Call, callMany, openSession } from './posts.ts';
import type { RedisMeter } from './redis-counts.ts';
import { type Bed, LEAST_COMMAND, portOf, SDK_COMMAND } from './replicas.ts';

export interface CallEffort {
  /** How often all is measured with new processes: one may be faster than another that does the same. */
  readonly sets: number;
  /** Rounds of each set. */
  readonly rounds: number;
  /** Rounds that are not measured, in which new processes compile their code. */
  readonly warmRounds: number;
  readonly callsOfARound: number;
  /** Calls of a round that are made one after the other. */
  readonly singleCalls: number;
}

interface MeasuredCall {
  readonly kind: CallKind;
  readonly target: (bed: Bed) => readonly string[];
  readonly call: Call;
}

/** Each has an equal part of the calls in flight. */
const SESSIONS = 8;

const tool = (name: string, args: object, answered: string): Omit<Call, 'era'> => ({
  method: 'tools/call',
  params: { name, arguments: args },
  answered,
});
const ECHO = tool('echo', { tag: 'a tag' }, 'a tag');

export const MEASURED_CALLS: readonly MeasuredCall[] = [
  // As small as a request gets, so that what the bridge adds weighs most.
  { kind: 'ping', target: () => LEAST_COMMAND, call: { method: 'ping', era: 'legacy', answered: '"result"' } },
  {
    kind: 'tool',
    target: () => SDK_COMMAND,
    call: { ...tool('echo', { message: 'hello' }, 'Echo: hello'), era: 'legacy' },
  },
  { kind: 'remote', target: (bed) => bed.remote('mcp'), call: { ...ECHO, era: 'legacy' } },
  {
    kind: 'remote-stream',
    target: (bed) => bed.remote('mcp'),
    call: { ...tool('progress', { tag: 'a tag', count: 10 }, 'a tag'), era: 'legacy' },
  },
  { kind: 'modern', target: (bed) => bed.remote('modern'), call: { ...ECHO, era: 'modern' } },
];

/** Where the calls of one round go. */
interface Route {
  readonly name: RouteName;
  readonly port: number;
  readonly sessions: readonly string[];
  /** The bridge that has the sessions. */
  readonly owner: Bridge;
  /** The replica that forwards the calls; undefined where they arrive at the owner. */
  readonly forwarder: Bridge | undefined;
}

export async function measureCalls(measured: MeasuredCall, effort: CallEffort, parts: Parts): Promise<CallFigures> {
  const routes = { storeless: createCosts(), alone: createCosts(), owned: createCosts(), forwarded: createCosts() };
  const asked = { commands: 0, bytes: 0 };
  for (let set = 0; set < effort.sets; set += 1) {
    const { commands, bytes } = await measureSet(measured, effort, parts, routes);
    asked.commands += commands;
    asked.bytes += bytes;
  }
  const callsToReplicas = effort.sets * effort.rounds * 3 * (effort.callsOfARound + effort.singleCalls);
  return {
    kind: measured.kind,
    routes,
    redisCommands: asked.commands / callsToReplicas,
    redisBytes: asked.bytes / callsToReplicas,
  };
}

interface Parts {
  readonly bed: Bed;
  readonly meter: RedisMeter;
}

/** Adds what calls cost with new processes. Returns what Redis was asked meanwhile. */
async function measureSet(
  { target, call }: MeasuredCall,
  effort: CallEffort,
  { bed, meter }: Parts,
  costs: CallFigures['routes'],
): Promise<{ readonly commands: number; readonly bytes: number }> {
  const storeless = await bed.startStoreless(target(bed));
  const startReplica = (): Promise<Bridge> => bed.startReplica(target(bed));
  const [alone, owner, other] = [await startReplica(), await startReplica(), await startReplica()];
  const open = (bridge: Bridge): Promise<readonly string[]> =>
    Promise.all(Array.from({ length: SESSIONS }, () => (call.era === 'modern' ? '' : openSession(portOf(bridge)))));
  const sessions = await open(owner);
  const createRoute = async (name: RouteName, bridge: Bridge): Promise<Route> => {
    return { name, port: portOf(bridge), sessions: await open(bridge), owner: bridge, forwarder: undefined };
  };
  const routes: readonly Route[] = [
    await createRoute('storeless', storeless),
    await createRoute('alone', alone),
    { name: 'owned', port: portOf(owner), sessions, owner, forwarder: undefined },
    { name: 'forwarded', port: portOf(other), sessions, owner, forwarder: other },
  ];
  for (let round = 0; round < effort.warmRounds; round += 1) {
    for (const { port, sessions: used } of routes) await callMany(port, used, call, effort.callsOfARound);
  }
  // Rounds take turns, so that what else this machine does falls on all of them.
  const redis = await meter.during(async () => {
    for (let round = 0; round < effort.rounds; round += 1) {
      for (const route of routes) await measureRound(route, call, effort, costs[route.name]);
    }
  });
  await bed.stop([storeless, alone, owner, other]);
  return redis;
}

function createCosts(): RouteCosts {
  const create = (): CallCosts => ({ owner: [], forwarder: [], servers: [], milliseconds: [] });
  return { many: create(), one: create() };
}

/** Adds what the calls of one round cost: first with many in flight, and then one after the other. */
async function measureRound(route: Route, call: Call, effort: CallEffort, costs: RouteCosts): Promise<void> {
  const { port, sessions } = route;
  const { callsOfARound, singleCalls } = effort;
  const inFlight = Array.from({ length: CALLS_IN_FLIGHT }, (_, index) => sessions[index % sessions.length] ?? '');
  await addCosts(route, costs.many, callsOfARound, () => callMany(port, inFlight, call, callsOfARound));
  await addCosts(route, costs.one, singleCalls, () => callMany(port, sessions.slice(0, 1), call, singleCalls));
}

async function addCosts(
  { owner, forwarder }: Route,
  costs: CallCosts,
  calls: number,
  work: () => Promise<void>,
): Promise<void> {
  const before = spentBy(owner, forwarder);
  const startedAt = performance.now();
  await work();
  costs.milliseconds.push((performance.now() - startedAt) / calls);
  const after = spentBy(owner, forwarder);
  for (const part of ['owner', 'forwarder', 'servers'] as const) {
    costs[part].push((after[part] - before[part]) / 1000 / calls);
  }
}

/** Nanoseconds of processor time so far. Only Linux tells them. */
function spentBy(owner: Bridge, forwarder: Bridge | undefined): Record<'owner' | 'forwarder' | 'servers', number> {
  const sum = (pids: readonly number[]): number =>
    pids.reduce((total, pid) => total + (readCpuNanos(pid) ?? Number.NaN), 0);
  return {
    owner: sum([owner.pid]),
    forwarder: forwarder === undefined ? 0 : sum([forwarder.pid]),
    servers: sum(owner.children()),
  };
}
