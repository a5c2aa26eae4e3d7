/**
 * mcp-portage as a part of a program. Nothing happens to the process but what is asked for: no listener for signals, no
 * exit, no change of its environment, and nothing is written to its output.
 *
 * Every function rejects with a BridgeError: ERR_CONFIG_* for options that cannot be used, and its `code` says what else.
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

/** Serves one server or several over HTTP, for clients of every era, on a port of its own. Resolves once clients can connect. */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  return (await import('./library/create-bridge.ts')).serve(options);
}

/** Serves one server or several through a web server that the program has already. Nothing listens unless `listen` is called. */
export async function createBridge(options: CreateBridgeOptions): Promise<Bridge> {
  return (await import('./library/create-bridge.ts')).createBridge(options);
}

/** Joins one client, on a pair of streams, to a server. Resolves once the client can speak. */
export async function connect(options: ConnectOptions): Promise<Connection> {
  return (await import('./library/connect.ts')).connect(options);
}

/**
 * Finds out what a server speaks, and how each kind of client can use it. Resolves with a report whatever the server does,
 * and when everything that was opened or started for it has ended.
 */
export async function probe(server: ServerEntry, options?: ProbeOptions): Promise<ProbeReport> {
  return (await import('./library/probe.ts')).probe(server, options);
}
