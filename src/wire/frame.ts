import { type Outline, outlineOf } from './json/outline.ts';
import { parseJson } from './json/parse-json.ts';
import type { Edit } from './json/scan-json.ts';

/** A JSON-RPC id as decoded. Fractions, null and integers beyond 2^53-1 are refused by the scanner. */
export type JsonRpcId = string | number;

export type FrameKind = 'request' | 'notification' | 'result' | 'error';

/** What the envelope scan found: offsets into the bytes, nothing copied. -1 stands for "absent". */
export interface Envelope {
  readonly kind: FrameKind;
  readonly id: JsonRpcId | undefined;
  /** The id's token with its quotes: bytes[idStart, idEnd). */
  readonly idStart: number;
  readonly idEnd: number;
  readonly method: string | undefined;
  /** First byte of the value of `params`, `result` or `error`; -1 when there is none. */
  readonly payloadStart: number;
}

/** To go over a shorter message again costs less than to note where its members stand. */
const WORTH_AN_OUTLINE = 16 * 1024;

/**
 * One JSON-RPC message as it travels through the bridge: its bytes, untouched, plus what the envelope scan found.
 * The bytes hold exactly one JSON object without CR or LF, so the same bytes are a line on stdio, the data of one
 * event on SSE and a body on HTTP. Frames are immutable; edits make a new frame (wire/splice.ts).
 */
export class Frame {
  readonly bytes: Buffer;
  readonly kind: FrameKind;
  readonly id: JsonRpcId | undefined;
  readonly idStart: number;
  readonly idEnd: number;
  readonly method: string | undefined;
  readonly payloadStart: number;
  /** `unread`: nobody has asked for it yet. */
  #outline: Outline | 'unread' | undefined;

  constructor(bytes: Buffer, envelope: Envelope, outline?: Outline) {
    this.bytes = bytes;
    this.kind = envelope.kind;
    this.id = envelope.id;
    this.idStart = envelope.idStart;
    this.idEnd = envelope.idEnd;
    this.method = envelope.method;
    this.payloadStart = envelope.payloadStart;
    this.#outline = outline ?? 'unread';
  }

  /**
   * Where its members stand. Of a message that was read in full it was made on the way; of another it is made once where
   * that is worth it. Undefined: its members are found by walking.
   */
  get outline(): Outline | undefined {
    if (this.#outline === 'unread') {
      this.#outline = this.bytes.length < WORTH_AN_OUTLINE ? undefined : outlineOf(this.bytes);
    }
    return this.#outline;
  }

  /**
   * The outline of the message that these edits made of this one, where this one's was needed already and the edits leave
   * its members where they are. Undefined: it is made when somebody asks for it.
   */
  outlineOfEdited(edited: Buffer, edits: readonly Edit[]): Outline | undefined {
    const outline = this.#outline;
    if (outline === undefined || outline === 'unread' || edited.length < WORTH_AN_OUTLINE) return undefined;
    return outline.edited(edited, edits);
  }

  /** A response of either kind. */
  get isResponse(): boolean {
    return this.kind === 'result' || this.kind === 'error';
  }

  /** The whole message parsed, anew at each call. For the few messages the bridge must read. */
  json(): unknown {
    return parseJson(this.bytes);
  }
}
