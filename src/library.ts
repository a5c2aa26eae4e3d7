/**
 * The library: mcp-portage inside another program. It leaves the process alone: it adds no signal handlers, does not
 * exit, does not change the environment and writes nothing to stdout or stderr.
 *
 * Every function rejects with a BridgeError, whose `code` names the reason: ERR_CONFIG_* for options that cannot be
 * used.
 */
import type {
  Bridge,
  Connection,
  ConnectOptions,
  CreateBridgeOptions,
  ProbeOptions,
  RunningServer,
  ServeOptions,
  ServerEntry,
} from './library/public-types.ts';
import type { ProbeReport } from './probe/report.ts';

export { BridgeError, type ErrorCode } from './errors.ts';
export type * from './library/option-types.ts';
export type * from './library/public-types.ts';
export type * from './probe/report.ts';

/**
 * Serves one or several servers over HTTP on a port of its own, for clients of every era. Resolves once clients can
 * connect.
 */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  return (await import('./library/create-bridge.ts')).serve(options);
}

/** Serves one or several servers through the program's own web server. Listens on no port unless `listen` is called. */
export async function createBridge(options: CreateBridgeOptions): Promise<Bridge> {
  return (await import('./library/create-bridge.ts')).createBridge(options);
}

/** Connects a client on a pair of streams to a server. Resolves once the client can send messages. */
export async function connect(options: ConnectOptions): Promise<Connection> {
  return (await import('./library/connect.ts')).connect(options);
}

/**
 * Probes a server: which transports and eras it supports, and how each kind of client can use it. Resolves with a
 * report whatever the server does, after everything that the probe opened or started has ended.
 */
export async function probe(server: ServerEntry, options?: ProbeOptions): Promise<ProbeReport> {
  return (await import('./library/probe.ts')).probe(server, options);
}
