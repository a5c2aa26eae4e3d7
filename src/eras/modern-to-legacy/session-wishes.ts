import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { canonicalCapabilities, MAX_CAPABILITIES_BYTES } from '../../mcp/translate/capabilities.ts';
import { clientInfoOf } from '../../mcp/vocabulary/client-info.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import type { CallContext } from '../../relay/ports.ts';
import { type SessionWanted, sessionFor } from './pool/session-wanted.ts';

/** As many clients as are likely to call in the same moment; see `MetadataReader`. */
const MAX_KNOWN = 8;

interface Known {
  readonly metadata: RequestMetadata;
  readonly principal: string;
  readonly wanted: SessionWanted;
}

/** What session each request wants. Clients say the same of themselves with every request, so it is found out once. */
export class SessionWishes {
  /** Tells a server of a client that tells nothing of itself. */
  readonly #fallback: Implementation;
  readonly #affinityOf: (context: CallContext) => string | undefined;
  readonly #known: Known[] = [];
  #oldest = 0;

  constructor(fallback: Implementation, affinityOf: (context: CallContext) => string | undefined = () => '') {
    this.#fallback = fallback;
    this.#affinityOf = affinityOf;
  }

  of(context: CallContext, metadata: RequestMetadata): SessionWanted {
    const { principal, headers } = context;
    // Only the very object that was looked at before: it was made of the same bytes.
    for (const known of this.#known) {
      if (known.metadata === metadata && known.principal === principal && headers === undefined) return known.wanted;
    }
    const { capabilitiesBytes = 0 } = metadata;
    const declared = capabilitiesBytes > MAX_CAPABILITIES_BYTES ? {} : metadata.capabilities;
    const wanted = sessionFor({
      principal,
      capabilities: canonicalCapabilities(declared),
      clientInfo: clientInfoOf(metadata.clientInfo, this.#fallback),
      affinity: this.#affinityOf({ ...context, metadata }),
      headers,
    });
    if (headers === undefined && metadata.capabilitiesBytes === undefined) this.#learn({ metadata, principal, wanted });
    return wanted;
  }

  /** What is large holds on to the whole request and is not kept. */
  #learn(known: Known): void {
    this.#known[this.#oldest] = known;
    this.#oldest = (this.#oldest + 1) % MAX_KNOWN;
  }
}
