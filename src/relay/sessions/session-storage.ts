import type { JsonRpcId } from '../../wire/frame.ts';
import type { ResumableCall } from './resumable-call.ts';
import type { SessionState } from './session-state.ts';

/** Where sessions are kept for other bridges, which go on with them when this one is gone. */
export interface SessionStorage {
  /** What a session keeps up to date from now on, and is stored with each change. */
  begin(id: string, principal: string): SessionState;
  /** What its streams have said, for a client that comes back; undefined: the session is not kept. */
  replayOf(id: string): ReplayLog | undefined;
  /** The session has ended, and nobody is to go on with it. */
  ended(id: string): void;
  /** This bridge has let go of the session, so that any other may go on with it at once. */
  handedOver(id: string): Promise<void>;
}

/** Events of one stream that followed each other, encoded for the wire; the numbers are those of the first. */
export interface ReplayRun {
  readonly stream: number;
  readonly sequence: number;
  readonly count: number;
  readonly bytes: Buffer;
}

/** Takes what is said on the streams of a session. Nobody waits for it; what cannot be kept is missing later. */
export interface ReplayLog {
  /** Called with a request whose answer others could wait for, if only its client had a stream to come back to. */
  resumable: (request: JsonRpcId) => void;
  /**
   * Called when others could wait for an answer from now on whose client has this stream already: nothing more is to be sent on
   * it before they know.
   */
  hold: (stream: number, stored: Promise<void>) => void;
  /**
   * Called for what was said and is still to be kept, where what was kept before is lost: all but the streams on which answers
   * come here. Undefined: nobody speaks yet.
   */
  kept: () => StoredReplay | undefined;
  add(run: ReplayRun): void;
  /** A notification that waits for its client to open a stream. */
  waits(message: Buffer): void;
  /** All that waited has been added, as events of a stream. */
  told(): void;
  /**
   * A stream that carries the answers to these requests. Resolves when it is kept how far their calls have come, where they can go
   * on elsewhere, or that takes too long.
   */
  opened(stream: number, requests: readonly JsonRpcId[]): Promise<void>;
  /** A stream of another bridge, which was kept, carries the answer to this request here. */
  continued(stream: number, request: JsonRpcId): void;
  /** It has had its last event; whether there was a connection to send it on. */
  ended(stream: number, end: 'sent' | 'unsent'): void;
}

/** What was kept of the streams of a session. */
export interface StoredReplay {
  /** Oldest first. */
  readonly runs: readonly ReplayRun[];
  /** Notifications that the client has not been told, oldest first. */
  readonly waiting: readonly Buffer[];
  /** Streams that have not ended. */
  readonly unended: ReadonlyMap<number, UnendedStream>;
}

/** A stream on which a client waits for answers. */
export interface UnendedStream {
  /** The requests that are answered there. */
  readonly requests: readonly JsonRpcId[];
  /** Its only request, where the server's answer can be waited for elsewhere. */
  readonly call: ResumableCall | undefined;
}
