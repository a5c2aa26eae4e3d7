import type { TokenSource } from './access.ts';

/** Which data about clients and their calls is collected, and where it is sent or shown. */
export interface ObservationConfig {
  /** The status page of the running bridge, and the same data for programs. */
  readonly status: 'served' | 'off';
  /**
   * The token that the status requires. Undefined: the status is shown to all callers, if only this machine can connect
   * and no token is required.
   */
  readonly statusToken: TokenSource | undefined;
  /** Metrics for Prometheus. */
  readonly metrics: 'served' | 'off';
  /**
   * Counts of calls for the migration report, kept in a folder, or in memory if there is none. Undefined: calls are not
   * counted.
   */
  readonly usage: { readonly stateDirectory: string | undefined } | undefined;
  /** The audit log with a line for each call; undefined: none. */
  readonly audit: { readonly file: string; readonly unwritable: 'refuses-calls' | 'is-logged' } | undefined;
  /**
   * Spans of calls for an OpenTelemetry collector. The OpenTelemetry SDK reads the collector's address and all other
   * settings from the environment. Undefined: no tracing.
   */
  readonly traces: { readonly protocol: TraceProtocol } | undefined;
  /** Messages are recorded in a file, shown live, or both; undefined: neither. */
  readonly recording: RecordingConfig | undefined;
}

export interface RecordingConfig {
  /** The file that messages are written to; undefined: none. */
  readonly file: RecordingFileConfig | undefined;
  /** The live feed of messages, for those who may see the status. Secrets are always hidden in it. */
  readonly feed: 'served' | 'off';
  /** Largest message that is recorded whole. */
  readonly maxMessageBytes: number;
}

export interface RecordingFileConfig {
  readonly path: string;
  readonly secrets: 'hidden' | 'kept';
  /** Size at which the file is renamed and another one begins; 0: no limit. */
  readonly maxFileBytes: number;
}

/** The encoding of spans; both are sent over HTTP. */
export type TraceProtocol = 'http/protobuf' | 'http/json';
