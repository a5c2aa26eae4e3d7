import { EnvelopeDraft } from './envelope-members.ts';
import type { Envelope } from './frame.ts';
import { CLOSE_BRACE, OPEN_BRACE } from './json/ascii.ts';
import { skipValue } from './json/scan-json.ts';
import { scanEnvelope } from './scan-envelope.ts';

/** Longer lines are no usual notification; to go over one twice to learn from it costs more than it saves. */
const MAX_LINE_BYTES = 16 * 1024;
/** Longer heads are of no usual notification. */
const MAX_HEAD_BYTES = 128;

const NONE = { head: Buffer.alloc(0), envelope: undefined } as const;

/** What the last notification was like: its bytes up to and with the `{` of its params, and what the scan said. */
type Known = { readonly head: Buffer; readonly envelope: Envelope } | typeof NONE;

/**
 * `scanEnvelope` for the lines of one sender. Notifications of progress come by the thousand and start alike byte for
 * byte, so what was found in one holds for the next.
 */
export class EnvelopeScanner {
  readonly #draft = new EnvelopeDraft();
  #known: Known = NONE;

  /** Returns what `scanEnvelope(bytes)` would. */
  scan(bytes: Buffer): Envelope | undefined {
    const { head, envelope } = this.#known;
    if (bytes.length > MAX_LINE_BYTES) return this.#scan(bytes);
    if (envelope !== undefined && startsWith(bytes, head) && endsWithPayload(bytes, envelope.payloadStart)) {
      return envelope;
    }
    const scanned = this.#scan(bytes);
    if (scanned?.kind === 'notification') this.#learn(bytes, scanned);
    return scanned;
  }

  #scan(bytes: Buffer): Envelope | undefined {
    this.#draft.reset();
    return scanEnvelope(bytes, this.#draft);
  }

  #learn(bytes: Buffer, envelope: Envelope): void {
    const { payloadStart } = envelope;
    if (payloadStart >= MAX_HEAD_BYTES || bytes[payloadStart] !== OPEN_BRACE) return;
    // A member before the params might be one that a later one would replace.
    if (!endsWithPayload(bytes, payloadStart)) return;
    this.#known = { head: Buffer.from(bytes.subarray(0, payloadStart + 1)), envelope };
  }
}

function startsWith(bytes: Buffer, head: Buffer): boolean {
  if (bytes.length < head.length) return false;
  for (let at = head.length - 1; at >= 0; at--) if (bytes[at] !== head[at]) return false;
  return true;
}

/** After the payload there is the end of the message and nothing else. */
function endsWithPayload(bytes: Buffer, payloadStart: number): boolean {
  const last = bytes.length - 1;
  return bytes[last] === CLOSE_BRACE && skipValue(bytes, payloadStart) === last;
}
