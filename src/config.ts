import type { ClusterConfig } from './config/cluster.ts';
import type { ListenerConfig } from './config/listener.ts';
import type { ObservationConfig } from './config/observation.ts';
import type { ServerConfig } from './config/server.ts';

/** The user's configuration, parsed once and not checked again inside the bridge. Times are in ms, sizes in bytes. */
export interface Config {
  readonly listener: ListenerConfig;
  readonly servers: readonly [ServerConfig, ...ServerConfig[]];
  readonly limits: ProcessLimits;
  readonly observation: ObservationConfig;
  /** Undefined if this process is the only replica. */
  readonly cluster: ClusterConfig | undefined;
  readonly log: LogConfig;
}

/** Limits for the whole process, in addition to those of each server. */
export interface ProcessLimits {
  /** Open calls of all clients together. */
  readonly maxInFlight: number;
  /** Processes of all servers, including those that are ending. */
  readonly maxChildren: number;
  readonly shutdownGraceMs: number;
}

export interface LogConfig {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly format: 'pretty' | 'json';
}

/** Equal for equal configurations. Contains everything in the configuration, including secrets. */
export function fingerprint(config: unknown): string {
  return JSON.stringify(config, (_key, value: unknown) => (value instanceof Map ? [...value] : value));
}
