import type { Frame } from '../../wire/frame.ts';
import { visitMembers } from '../../wire/json/outline.ts';
import type { Span } from '../../wire/json/scan-json.ts';
import { findUnmistakable } from './look-alikes.ts';
import { META, type MetadataFault, type RequestMetadata, readRequestMetadata } from './request-metadata.ts';

/** No more clients are likely to call in the same moment; the one met first makes way. */
const MAX_KNOWN = 8;
/** No usual envelope is larger. */
const MAX_BYTES = 2048;

interface Known {
  readonly meta: Buffer;
  readonly metadata: RequestMetadata;
}

/**
 * `readRequestMetadata` for the requests of some clients. Each sends the same envelope with every request, byte for byte,
 * so what was found in one holds for the next.
 */
export class MetadataReader {
  readonly #known: Known[] = [];
  #oldest = 0;

  /** Returns what `readRequestMetadata(frame)` would. */
  read(frame: Frame): RequestMetadata | MetadataFault {
    const meta = findUnmistakable(frame, frame.payloadStart, META);
    if (meta === undefined || meta === 'unclear') return readRequestMetadata(frame);
    for (const known of this.#known) if (isEqual(frame, meta, known.meta)) return known.metadata;
    const metadata = readRequestMetadata(frame);
    if (!('fault' in metadata) && holdsNothingElse(frame, meta, metadata)) this.#learn(frame, meta, metadata);
    return metadata;
  }

  #learn({ bytes }: Frame, { start, end }: Span, metadata: RequestMetadata): void {
    if (end - start > MAX_BYTES) return;
    this.#known[this.#oldest] = { meta: Buffer.from(bytes.subarray(start, end)), metadata };
    this.#oldest = (this.#oldest + 1) % MAX_KNOWN;
  }
}

function isEqual({ bytes }: Frame, { start, end }: Span, meta: Buffer): boolean {
  return end - start === meta.length && bytes.compare(meta, 0, meta.length, start, end) === 0;
}

/** With a progress token or the like, which is another one in each request, a `_meta` does not come twice. */
function holdsNothingElse({ bytes, outline }: Frame, { start }: Span, metadata: RequestMetadata): boolean {
  const { clientInfo, logLevel } = metadata;
  let expected = 2 + (clientInfo === undefined ? 0 : 1) + (logLevel === undefined ? 0 : 1);
  visitMembers(bytes, start, outline, () => {
    expected -= 1;
    return expected >= 0;
  });
  return expected === 0;
}
