/** A snapshot of the state of a running bridge. It holds no payload, credential or session id. */
import type { QueueSize } from '../collections/queue-sizes.ts';
import type { ObservedServer } from '../relay/observer.ts';

export interface Inspection {
  /** Wall-clock time, ms since the epoch. */
  readonly startedAtMs: number;
  readonly version: string;
  readonly servers: readonly InspectedServer[];
  /** Open calls of all servers. */
  readonly openCalls: number;
  readonly maxOpenCalls: number;
  readonly processes: number;
  readonly maxProcesses: number;
  /** Client connections that have had a request. */
  readonly connections: number;
  /** Bytes written to responses that the operating system has not taken yet. */
  readonly unsentBytes: number;
}

/**
 * - `not-started`: no client has used it yet, so it has no process and no connection.
 * - `starting`: it was started, and has not answered yet.
 * - `ready`: clients can be served, as far as is known.
 * - `failing`: the last attempt to start or reach it failed, and it is tried again.
 * - `stopped`: it has failed so often that it is not tried for a while.
 */
export type ServerState = 'not-started' | 'starting' | 'ready' | 'failing' | 'stopped';

/** The name of each state wherever people read it. */
export const STATE_WORDS: Readonly<Record<ServerState, string>> = {
  'not-started': 'not started',
  starting: 'starting',
  ready: 'ready',
  failing: 'failing',
  stopped: 'stopped after failures',
};

export interface InspectedServer {
  /** The name in the configuration file; for a server given on the command line, its program or host. */
  readonly name: string;
  /** URL of the server for clients. */
  readonly url: string;
  /** URL of HTTP+SSE; undefined: it is not served. */
  readonly sseUrl: string | undefined;
  /** Announced end of HTTP+SSE, which may have passed; undefined: none is announced. */
  readonly sunset: string | undefined;
  /** URL of WebSocket; undefined: it is not served. */
  readonly wsUrl: string | undefined;
  /** Hubs that the bridge calls, where the server is also served. */
  readonly hubs: readonly InspectedHub[];
  readonly kind: 'command' | 'url' | 'stream' | 'grpc' | 'mqtt' | 'replay' | 'aggregate';
  readonly state: ServerState;
  /** Wall-clock time since when it is starting, failing or stopped, ms since the epoch; undefined in other states. */
  readonly sinceMs: number | undefined;
  /** The reason why it is not ready; undefined if it is. */
  readonly problem: string | undefined;
  /** Detected protocols of the server, the later era first; empty until one is detected. */
  readonly verdicts: readonly ObservedServer[];
  readonly sessions: number;
  readonly openCalls: number;
  /** Running processes, those included that are ending. */
  readonly processes: number;
  /** Number of processes that exited by themselves or hung. Each is replaced when it is needed. */
  readonly restarts: number;
  readonly queues: readonly QueueSize[];
}

export interface InspectedHub {
  /** URL without its query, which may hold a credential. */
  readonly url: string;
  /** `calling`: the bridge is trying to connect. */
  readonly state: 'connected' | 'calling';
  /** The reason why the last attempt failed or the connection ended; undefined: none is known. */
  readonly problem: string | undefined;
}

export type Inspect = () => Inspection;
