import { findCanceledId, rewriteClientCanceled } from '../../mcp/classify/correlators.ts';
import { CANCELED } from '../../mcp/vocabulary/methods.ts';
import { type Frame, type JsonRpcId, withId } from '../../wire/frame.ts';

/** Ids that some servers take for missing, with those that are sent instead. No client counts that far. */
const REPLACED: ReadonlyMap<JsonRpcId, number> = new Map<JsonRpcId, number>([
  [0, 2_147_400_000],
  ['', 2_147_400_001],
]);
const ORIGINAL: ReadonlyMap<JsonRpcId, JsonRpcId> = new Map([...REPLACED].map(([id, sent]) => [sent, id]));

/** Replaces the ids 0 and "" of a client's requests: servers of the TypeScript SDK for MQTT do not answer these. */
export class EmptyIds {
  /** The ids in use that were replaced. */
  readonly #open = new Set<JsonRpcId>();

  /** Returns the client's message as the server gets it. */
  sent(frame: Frame): Frame {
    if (frame.method === CANCELED) return this.#canceled(frame);
    if (frame.kind !== 'request' || frame.id === undefined) return frame;
    const sent = REPLACED.get(frame.id);
    if (sent === undefined) return frame;
    this.#open.add(sent);
    return withId(frame, sent);
  }

  #canceled(frame: Frame): Frame {
    const canceled = findCanceledId(frame);
    const sent = canceled && REPLACED.get(canceled.value);
    return sent !== undefined && this.#open.has(sent) ? (rewriteClientCanceled(frame, sent) ?? frame) : frame;
  }

  /** Returns the server's message as the client expects it. */
  received(frame: Frame): Frame {
    if (!frame.isResponse || frame.id === undefined || this.#open.size === 0) return frame;
    const id = this.original(frame.id);
    if (id === frame.id) return frame;
    this.#open.delete(frame.id);
    return withId(frame, id);
  }

  /** Returns the id that the client has used. */
  original(id: JsonRpcId): JsonRpcId {
    return this.#open.has(id) ? (ORIGINAL.get(id) ?? id) : id;
  }
}
