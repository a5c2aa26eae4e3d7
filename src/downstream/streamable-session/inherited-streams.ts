import { BridgeError } from '../../errors.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { ResumableCall } from '../../relay/sessions/resumable-call.ts';
import type { StoredReplay } from '../../relay/sessions/session-storage.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { EventPosition, ReplayBuffer } from './replay-buffer.ts';

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
  /** The newest event that was stored of each stream that goes on; its client may have heard more than that. */
  readonly #storedUpTo = new Map<number, number>();

  /** @param general the stream that belongs to no call */
  restore({ unended }: StoredReplay, replay: ReplayBuffer, general: number): readonly InheritedCall[] {
    const calls: InheritedCall[] = [];
    for (const [key, { requests, call }] of unended) {
      if (key === general) continue;
      const newest = replay.newestOf(key);
      if (call === undefined) {
        const answers = requests.map((id) => errorFrame(id, rpcErrorOf(LOST_WITH_OWNER)));
        this.#lost.set(key, answers);
        continue;
      }
      this.#storedUpTo.set(key, newest);
      calls.push({ key, call, newest });
    }
    this.#storedUpTo.set(general, replay.newestOf(general));
    return calls;
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

  /** The answers to calls that were lost with their stream; undefined: none was. */
  answersOn(key: number): readonly Frame[] | undefined {
    return this.#lost.get(key);
  }

  answered(key: number): void {
    this.#lost.delete(key);
  }
}
