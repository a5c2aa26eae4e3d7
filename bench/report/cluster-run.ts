/** One run of `npm run bench:cluster` as it is kept in a file: the figures, and where they come from. */
import { describeMachine, type Machine } from './last-run.ts';

/**
 * - `ping`: the least request, to the least server that is a command.
 * - `tool`: a call of a tool that does nothing, to a command that is made with the official SDK.
 * - `remote`, `remote-stream`: a call to a remote server, answered by one message, or by a stream of eleven.
 * - `modern`: a call of 2026-07-28 to a remote server of that revision.
 */
export type CallKind = 'ping' | 'tool' | 'remote' | 'remote-stream' | 'modern';

/** What a call costs in each round: microseconds of processor time, and milliseconds until its answer where there is one at a time. */
export interface CallCosts {
  /** The bridge that has the session. */
  readonly owner: number[];
  /** The replica that forwards the call to it; zeros where none does. */
  readonly forwarder: number[];
  /** The processes that the bridge has started as servers. */
  readonly servers: number[];
  readonly milliseconds: number[];
}

/**
 * Where calls arrive.
 * - `storeless`: at one bridge without a store.
 * - `alone`: at the replica that has the session, and to which none is forwarded.
 * - `owned`: at the replica that has the session, and to which others are forwarded.
 * - `forwarded`: at another replica, which forwards them.
 */
export type RouteName = 'storeless' | 'alone' | 'owned' | 'forwarded';

/** So many that each process always has work, as at the limit of its capacity. */
export const CALLS_IN_FLIGHT = 64;

/** The calls of a route, with many or with one of them in flight. */
export type RouteCosts = Readonly<Record<'many' | 'one', CallCosts>>;

export interface CallFigures {
  readonly kind: CallKind;
  readonly routes: Readonly<Record<RouteName, RouteCosts>>;
  /** For each call to a replica, whether it is forwarded or not. */
  readonly redisCommands: number;
  readonly redisBytes: number;
}

/**
 * - `command`: a call to a command, answered by one message.
 * - `remote`, `remote-stream`: as in {@link CallKind}.
 */
export type PairKind = 'command' | 'remote' | 'remote-stream';

/** What a call costs in new processes that serve the same, in microseconds of processor time. */
export interface PairFigures {
  readonly kind: PairKind;
  readonly inFlight: number;
  /** A replica, in each set of processes. */
  readonly replica: readonly number[];
  /** Bridges without a store: two in each set. */
  readonly storeless: readonly number[];
}

/** What one replica asks Redis in the time of one lease while nobody calls. */
export interface RestFigures {
  /** How many were measured. */
  readonly leases: number;
  readonly commands: number;
  readonly bytes: number;
  /** What comes on top for each other replica that it has exchanged requests with. */
  readonly commandsPerPeer: number;
  readonly bytesPerPeer: number;
}

/** What one session with a remote server takes. */
export interface SessionFigures {
  /** Until it is open and stored. */
  readonly redisCommands: number;
  readonly redisBytes: number;
  /** Redis' memory for as long as the session is open. */
  readonly redisMemoryBytes: number;
  /** Memory of its replica, measured in each of several steps. */
  readonly bytes: readonly number[];
  /** Memory of a session whose client and server each have an event stream open. */
  readonly bytesWithStream: readonly number[];
}

export interface ClusterRun {
  readonly date: string;
  readonly seconds: number;
  readonly rounds: number;
  readonly callsOfARound: number;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly calls: readonly CallFigures[];
  readonly pairs: readonly PairFigures[];
  readonly rest: RestFigures;
  readonly sessions: SessionFigures;
}

export function describeClusterRun(
  measured: Omit<ClusterRun, 'date' | 'machine' | 'versions'>,
  versions: ClusterRun['versions'],
): ClusterRun {
  return { date: new Date().toISOString().slice(0, 10), machine: describeMachine(), versions, ...measured };
}
