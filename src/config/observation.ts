import type { TokenSource } from './access.ts';

/** What is kept and told of clients and their calls. */
export interface ObservationConfig {
  /** The page about the running bridge, and what programs get of it. */
  readonly status: 'served' | 'off';
  /** The status is shown to whoever has it. Undefined: to whoever may call, if only this machine can and no token is asked for. */
  readonly statusToken: TokenSource | undefined;
  /** Figures for Prometheus. */
  readonly metrics: 'served' | 'off';
  /** Calls are counted for the migration report, and kept in a folder; without one, as long as the process runs. Undefined: neither. */
  readonly usage: { readonly stateDirectory: string | undefined } | undefined;
  /** A line for each call; undefined: none. */
  readonly audit: { readonly file: string; readonly unwritable: 'refuses-calls' | 'is-logged' } | undefined;
  /**
   * Calls are traced, and a collector of OpenTelemetry gets their spans. Where it is, and all that is not here, the SDK of
   * OpenTelemetry reads from the environment. Undefined: neither.
   */
  readonly traces: { readonly protocol: TraceProtocol } | undefined;
}

/** How spans are written; over HTTP both. */
export type TraceProtocol = 'http/protobuf' | 'http/json';
