import { BridgeError } from '../../errors.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { ResumableCall } from '../../relay/sessions/resumable-call.ts';
import type { StoredReplay, UnendedStream } from '../../relay/sessions/session-storage.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { idsAmong } from './continued-lane.ts';
import type { EventPosition, NamedEvent } from './event-ids.ts';
import type { ReplayBuffer } from './replay-buffer.ts';

const LOST_WITH_OWNER = new BridgeError(
  'ERR_CLUSTER_OWNER',
  'The replica that ran this call was lost; whether it was carried out is not known, and it was not run again.',
);

/** A stream of another replica whose call continues here. */
export interface InheritedCall {
  readonly key: number;
  readonly call: ResumableCall;
  /** The newest stored event of the stream. */
  readonly newest: number;
}

/**
 * The streams that a session has taken over from another replica, kept until their clients reconnect or the session
 * ends.
 */
export class InheritedStreams {
  /** Streams whose calls were lost, with the error responses that their clients get. */
  readonly #lost = new Map<number, readonly Frame[]>();
  /** The first stream number and event number that no earlier owner has used. */
  readonly #firstOwn: EventPosition;
  /** The newest stored event of each stream that continues. The client may have received later events. */
  readonly #storedUpTo = new Map<number, number>();

  constructor(firstOwn: EventPosition) {
    this.#firstOwn = firstOwn;
  }

  /** @param general the stream that belongs to no call */
  restore({ unended }: StoredReplay, replay: ReplayBuffer, general: number): readonly InheritedCall[] {
    const calls: InheritedCall[] = [];
    for (const [key, { requests, call }] of unended) {
      if (key === general) continue;
      const newest = replay.newestOf(key);
      if (call === undefined) {
        // The end of the stream may not have been stored, and a batch may have been answered in part.
        const answered = new Set(idsAmong(replay.runsOf(key), 'responses'));
        this.#lost.set(key, requests.filter((id) => !answered.has(id)).map(lostAnswer));
        continue;
      }
      this.#storedUpTo.set(key, newest);
      calls.push({ key, call, newest });
    }
    this.#storedUpTo.set(general, replay.newestOf(general));
    return calls;
  }

  /** Streams on which clients still have to be told that their calls were lost. */
  get unended(): ReadonlyMap<number, UnendedStream> {
    const requestsOf = (answers: readonly Frame[]) => answers.flatMap(({ id }) => id ?? []);
    return new Map([...this.#lost].map(([key, answers]) => [key, { requests: requestsOf(answers), call: undefined }]));
  }

  /**
   * Returns the newest stored event of a stream that was taken over; undefined: it was not, or its client has caught
   * up.
   */
  storedUpTo(key: number): number | undefined {
    return this.#storedUpTo.get(key);
  }

  /**
   * Returns the position after which missed events are sent again. The client's latest event may not have been stored;
   * then everything after the newest stored event is sent, since a duplicate is better than a loss.
   */
  knownPosition(position: EventPosition): EventPosition {
    const stored = this.#storedUpTo.get(position.stream) ?? position.sequence;
    return { ...position, sequence: Math.min(position.sequence, stored) };
  }

  /** Called when the client has received the stored events. */
  caughtUp(key: number): void {
    this.#storedUpTo.delete(key);
  }

  /**
   * Called when a client opens the stream without an event id; it may have received more events than are known here.
   * Returns the number after which events follow that no earlier owner can have sent; 0: all events of the stream are
   * known.
   */
  begunAnew(key: number): number {
    return this.#storedUpTo.delete(key) ? this.#firstOwn.sequence : 0;
  }

  /**
   * Returns the error responses to calls that were lost with their stream; undefined: no call was lost. The stream is
   * not open here. If a stream was not stored before its replica was lost, the client's event id names the call.
   * @param newest the newest event of the stream that is known here; 0: none
   */
  answersOn({ stream, request }: NamedEvent, newest: number): readonly Frame[] | undefined {
    const lost = this.#lost.get(stream);
    if (lost !== undefined || request === undefined) return lost;
    return newest === 0 && stream < this.#firstOwn.stream ? [lostAnswer(request)] : undefined;
  }

  answered(key: number): void {
    this.#lost.delete(key);
  }
}

function lostAnswer(request: JsonRpcId): Frame {
  return errorFrame(request, rpcErrorOf(LOST_WITH_OWNER));
}
