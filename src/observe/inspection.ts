/** The state of a running bridge at one moment, for those who look at it. Holds no payload, credential or session id. */
import type { QueueSize } from '../collections/queue-sizes.ts';
import type { ObservedServer } from '../relay/observer.ts';

export interface Inspection {
  /** Wall-clock time, ms since the epoch. */
  readonly startedAtMs: number;
  readonly version: string;
  readonly servers: readonly InspectedServer[];
  /** Over all servers. */
  readonly openCalls: number;
  readonly maxOpenCalls: number;
  readonly processes: number;
  readonly maxProcesses: number;
  /** Connections of clients that have had a request. */
  readonly connections: number;
  /** Written to responses, and not taken by the system yet. */
  readonly unsentBytes: number;
}

/**
 * - `idle`: nobody has come for it yet; it has no process and no connection.
 * - `ready`: clients can be served, as far as is known.
 * - `unproven`: it did not work last time.
 * - `refused`: it cannot be served now.
 */
export type ServerState = 'idle' | 'ready' | 'unproven' | 'refused';

export interface InspectedServer {
  /** As the configuration file writes it; of the server of a command line its program or host. */
  readonly name: string;
  /** Where clients find it. */
  readonly url: string;
  /** Undefined: HTTP+SSE is not served. */
  readonly sseUrl: string | undefined;
  /** When HTTP+SSE is going to end, or has ended; undefined: nobody has said. */
  readonly sunset: string | undefined;
  /** Undefined: WebSocket is not served. */
  readonly wsUrl: string | undefined;
  /** Where it is served besides, by calling there. */
  readonly hubs: readonly InspectedHub[];
  readonly kind: 'command' | 'url' | 'stream';
  readonly state: ServerState;
  /** Why it is not ready; undefined where it is. */
  readonly problem: string | undefined;
  /** What has been found out that it speaks, the later era first; none: it has not been found out yet. */
  readonly verdicts: readonly ObservedServer[];
  readonly sessions: number;
  readonly openCalls: number;
  /** Running ones, those that are ending included. */
  readonly processes: number;
  /** Processes that exited by themselves or hung, since the bridge runs: another is started when it is needed. */
  readonly restarts: number;
  readonly queues: readonly QueueSize[];
}

export interface InspectedHub {
  /** Without its query, which may hold a credential. */
  readonly url: string;
  /** `calling`: there is no connection, but there is to be one. */
  readonly state: 'connected' | 'calling';
  /** Why the last call came to nothing, or its connection has ended; undefined: nothing is known of that. */
  readonly problem: string | undefined;
}

export type Inspect = () => Inspection;
