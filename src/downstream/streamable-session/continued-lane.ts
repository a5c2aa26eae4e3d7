import { ListMember } from '../../collections/short-lived-values.ts';
import type { ResumableCall } from '../../relay/sessions/resumable-call.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';
import { SseDecoder } from '../../wire/sse-decode.ts';
import type { LaneOwner, SessionLane } from './post-lane.ts';
import type { ResumableStream } from './resumable-stream.ts';

/** A call that another replica began and that continues here. */
export interface ContinuedCall {
  readonly call: ResumableCall;
  readonly lane: ContinuedLane;
  /** Ids of the server's requests on the call's stream. The client may have answered some of them. */
  readonly asked: readonly JsonRpcId[];
}

/** The stream of a call that another replica began. Its client reconnects for the rest. */
export class ContinuedLane extends ListMember implements SessionLane {
  readonly #owner: LaneOwner;
  readonly #stream: ResumableStream;
  readonly isStream = true;
  isOpen = true;

  constructor(owner: LaneOwner, stream: ResumableStream) {
    super();
    this.#owner = owner;
    this.#stream = stream;
    owner.lanes.add(this);
  }

  get lostAtMs(): number | undefined {
    return this.#owner.lostAtMs;
  }

  get isConnected(): boolean {
    return this.#stream.isConnected;
  }

  send(frame: Frame): boolean {
    const hasCapacity = this.#stream.send(frame);
    if (frame.isResponse) this.release();
    return hasCapacity;
  }

  release(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#stream.end();
    this.unlink();
    this.#owner.streamEnded(this.#stream);
  }

  leave(): void {
    this.isOpen = false;
    this.#stream.disconnect();
    this.unlink();
  }

  /** Always 0: the stream's connection reports its own unsent bytes. */
  get unsentBytes(): number {
    return 0;
  }

  tick(): void {}
}

/** Larger events are not searched. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024;

/** Returns the ids of the requests or responses in encoded events. */
export function idsAmong(events: readonly Buffer[], wanted: 'requests' | 'responses'): readonly JsonRpcId[] {
  const ids: JsonRpcId[] = [];
  const decoder = new SseDecoder(
    {
      event: ({ data }) => {
        const read = readMessage(data, SERVER_LIMITS);
        const frame = read.kind === 'message' ? read.frame : undefined;
        const isWanted = wanted === 'requests' ? frame?.kind === 'request' : frame?.isResponse === true;
        if (isWanted && frame?.id !== undefined) ids.push(frame.id);
      },
      retry: () => {},
      oversized: () => {},
    },
    MAX_EVENT_BYTES,
  );
  for (const run of events) decoder.push(run);
  return ids;
}
