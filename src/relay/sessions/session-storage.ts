import type { JsonRpcId } from '../../wire/frame.ts';
import type { ResumableCall } from './resumable-call.ts';
import type { SessionState } from './session-state.ts';

/** Stores sessions, so that other bridges can continue them when this one is gone. */
export interface SessionStorage {
  /** Returns a new state, which is stored with each change. */
  begin(id: string, principal: string): SessionState;
  /**
   * Returns the log of the session's streams, from which a client that comes back gets its messages. Undefined if the
   * session is not stored.
   */
  replayOf(id: string): ReplayLog | undefined;
  /** Called when a session has ended, so that no bridge continues it. */
  ended(id: string): void;
  /** Called when this bridge has closed its end of a session, so that another one can continue it at once. */
  handedOver(id: string): Promise<void>;
}

/** Consecutive events of one stream, encoded for the wire. `stream` and `sequence` are those of the first event. */
export interface ReplayRun {
  readonly stream: number;
  readonly sequence: number;
  readonly count: number;
  readonly bytes: Buffer;
}

/**
 * Stores the messages on the streams of a session. Storing is not awaited, except by `hold` and `opened`, and events
 * that could not be stored are missing later.
 */
export interface ReplayLog {
  /** Called with a request whose answer other bridges could wait for, if its client had a stream to come back to. */
  resumable: (request: JsonRpcId) => void;
  /**
   * Called when other bridges can wait, from now on, for an answer whose client already has this stream. Nothing more
   * may be sent on the stream until `stored` resolves.
   */
  hold: (stream: number, stored: Promise<void>) => void;
  /**
   * Called when the store has lost its data. Returns everything on the client's streams that has to be stored again,
   * except the streams on which calls are answered here. Undefined while there is no client.
   */
  kept: () => StoredReplay | undefined;
  add(run: ReplayRun): void;
  /** Adds a notification that waits for its client to open a stream. */
  waits(message: Buffer): void;
  /** Called when all waiting notifications have been added as events of a stream. */
  told(): void;
  /**
   * Adds a stream that carries the answers to these requests. If other bridges can wait for these answers, the promise
   * resolves when the positions of the calls are stored, or when that takes too long.
   */
  opened(stream: number, requests: readonly JsonRpcId[]): Promise<void>;
  /** Called when a stored stream of another bridge carries the answer to this request here. */
  continued(stream: number, request: JsonRpcId): void;
  /** Called after the last event of a stream. `end` tells if there was a connection to send the event on. */
  ended(stream: number, end: 'sent' | 'unsent'): void;
}

/** The stored messages of a session's streams. */
export interface StoredReplay {
  /** Oldest first. */
  readonly runs: readonly ReplayRun[];
  /** Notifications that the client has not received, oldest first. */
  readonly waiting: readonly Buffer[];
  /** Streams that have not ended. */
  readonly unended: ReadonlyMap<number, UnendedStream>;
}

/** A stream on which a client waits for answers. */
export interface UnendedStream {
  /** The requests that are answered on the stream. */
  readonly requests: readonly JsonRpcId[];
  /** The only request of the stream, if another bridge can wait for the server's answer to it. */
  readonly call: ResumableCall | undefined;
}
