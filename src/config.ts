import type { ClusterConfig } from './config/cluster.ts';
import type { ListenerConfig } from './config/listener.ts';
import type { ObservationConfig } from './config/observation.ts';
import type { ServerConfig } from './config/server.ts';

/** What the user asked for, parsed once; inside the bridge nothing re-checks it. Times in ms, sizes in bytes. */
export interface Config {
  readonly listener: ListenerConfig;
  readonly servers: readonly [ServerConfig, ...ServerConfig[]];
  readonly limits: ProcessLimits;
  readonly observation: ObservationConfig;
  /** Undefined: this is the only one that serves these servers. */
  readonly cluster: ClusterConfig | undefined;
  readonly log: LogConfig;
}

/** Stands above the limits of each server. */
export interface ProcessLimits {
  /** Calls of all clients together that wait for an answer. */
  readonly maxInFlight: number;
  /** Processes of all servers, those that are ending included. */
  readonly maxChildren: number;
  readonly shutdownGraceMs: number;
}

export interface LogConfig {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly format: 'pretty' | 'json';
}

/** Equal for configurations that say the same. It holds what they hold, secrets too. */
export function fingerprint(config: unknown): string {
  return JSON.stringify(config, (_key, value: unknown) => (value instanceof Map ? [...value] : value));
}
