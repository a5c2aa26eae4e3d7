/** A client of a bridge: it opens its session and then offers lanes, each a place for one call in flight. */
import type { Call } from './call.ts';
import type { Numbers } from './numbers.ts';
import type { Era, Workload } from './workload.ts';

export interface Client {
  /** What its calls are marked with; no two clients of a run have the same. */
  readonly name: string;
  readonly numbers: Numbers;
  openLane(workload: Workload): Promise<Lane>;
  /** Asks for something that is not measured; resolves with the answer, parsed. */
  request(method: string): Promise<ControlAnswer>;
  close(): Promise<void>;
}

export interface ControlAnswer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Who a client is. */
export interface Identity {
  readonly name: string;
  readonly era: Era;
  /** The era whose words answers come in. */
  readonly answersIn: Era;
  readonly numbers: Numbers;
}

export interface Lane {
  readonly call: Call;
  /** Sends the call as it is numbered now. `onDone` comes when it is answered, checked, and the lane is free again. */
  run(onDone: () => void, onFailure: (error: Error) => void): void;
  close(): void;
}

export const REVISION = '2025-06-18';

export const INITIALIZE =
  `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"${REVISION}","capabilities":{},` +
  '"clientInfo":{"name":"bench","version":"1.0.0"}}}';
export const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
