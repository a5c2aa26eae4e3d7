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

/** A stream of another bridge on which a call goes on here. */
export interface InheritedCall {
  readonly key: number;
  readonly call: ResumableCall;
  /** The newest event that was stored of the stream. */
  readonly newest: number;
}

/** What a session knows of streams that another bridge had: until their clients come back, or the session ends. */
export class InheritedStreams {
  /** Streams whose calls were lost, and what their clients get instead of answers. */
  readonly #lost = new Map<number, readonly Frame[]>();
  /** The first numbers of streams and events that no earlier owner has used. */
  readonly #firstOwn: EventPosition;
  /** The newest event that was stored of each stream that goes on; its client may have heard more than that. */
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
        // Its end may not have been stored, and a batch may have been answered in part.
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

  /** Undefined: the stream is another's no more, or never was. */
  storedUpTo(key: number): number | undefined {
    return this.#storedUpTo.get(key);
  }

  /**
   * From where a client gets what it missed. What it heard last may not have been stored. Then all that was said since is
   * told: rather twice than not at all.
   */
  knownPosition(position: EventPosition): EventPosition {
    const stored = this.#storedUpTo.get(position.stream) ?? position.sequence;
    return { ...position, sequence: Math.min(position.sequence, stored) };
  }

  /** Its client has heard what is known here. */
  caughtUp(key: number): void {
    this.#storedUpTo.delete(key);
  }

  /**
   * Called when a client opens the stream without an event id; it may have heard more than is known here. Returns the number after
   * which come events that no earlier owner can have sent; 0: all events of the stream are known.
   */
  begunAnew(key: number): number {
    return this.#storedUpTo.delete(key) ? this.#firstOwn.sequence : 0;
  }

  /**
   * The answers to calls that were lost with their stream, which is not open here; undefined: none was. Of a stream that was not stored before its
   * bridge was lost, the client's event tells which call it was.
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
