import type { BridgeError } from '../../errors.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { canonicalCapabilities, MAX_CAPABILITIES_BYTES } from '../../mcp/translate/capabilities.ts';
import { clientInfoOf, type LogLevel, parseLogLevel } from '../../mcp/vocabulary/client-declarations.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { declaresTasks } from '../../mcp/vocabulary/task-extension.ts';
import type { CallContext } from '../../relay/ports.ts';
import { tooManyCapabilities } from './pool/legacy-pool.ts';
import { type SessionWanted, sessionFor } from './pool/session-wanted.ts';
import type { TaskClient } from './tasks/hosted-tasks.ts';

/**
 * The callers that share the sessions of the server.
 * - `by-name`: all callers of one name.
 * - `nobody`: one name may stand for many callers, so each call gets a session of its own.
 */
export type SessionSharing = 'by-name' | 'nobody';

/**
 * The client of a request, as far as its metadata describes it. No more of the metadata is kept: each call would keep
 * whatever its client has put into it.
 */
export interface DescribedClient extends TaskClient {
  /** The session that its requests need. */
  readonly wanted: SessionWanted;
  readonly logLevel: LogLevel | undefined;
  /** The error for capabilities that are too large to be read, which would take seconds; undefined: they are not. */
  readonly refusal: BridgeError | undefined;
}

/** Returns the client as the one that this identity stands for, so that its sessions know it again. */
export function identified(client: DescribedClient, identity: object): DescribedClient {
  return { ...client, wanted: { ...client.wanted, identity } };
}

/** This many clients are likely to call in the same moment at most; see `MetadataReader`. */
const MAX_KNOWN = 8;

interface Known {
  readonly metadata: RequestMetadata;
  readonly client: DescribedClient;
}

/** Describes the clients of requests. They say the same of themselves with every request, so the latest results are kept. */
export class ClientDescriptions {
  /** The name that a server gets of a client that does not name itself. */
  readonly #fallback: Implementation;
  readonly #affinity: string | undefined;
  readonly #known: Known[] = [];
  #oldest = 0;

  constructor(fallback: Implementation, sharing: SessionSharing) {
    this.#fallback = fallback;
    this.#affinity = sharing === 'by-name' ? '' : undefined;
  }

  of(context: Pick<CallContext, 'principal' | 'headers'>, metadata: RequestMetadata): DescribedClient {
    const { principal, headers } = context;
    // Only the very object that was looked at before: it was made of the same bytes.
    for (const known of this.#known) {
      if (known.metadata === metadata && known.client.principal === principal && headers === undefined) {
        return known.client;
      }
    }
    const { capabilitiesBytes = 0 } = metadata;
    const isTooLarge = capabilitiesBytes > MAX_CAPABILITIES_BYTES;
    const declared = isTooLarge ? {} : metadata.capabilities;
    const client: DescribedClient = {
      principal,
      declaresTasks: declaresTasks(declared),
      wanted: sessionFor({
        principal,
        capabilities: canonicalCapabilities(declared),
        clientInfo: clientInfoOf(metadata.clientInfo, this.#fallback),
        affinity: this.#affinity,
        headers,
      }),
      logLevel: parseLogLevel(metadata.logLevel),
      refusal: isTooLarge ? tooManyCapabilities(capabilitiesBytes) : undefined,
    };
    if (headers === undefined && metadata.capabilitiesBytes === undefined) this.#learn({ metadata, client });
    return client;
  }

  /** Large metadata is not kept, because it refers to the bytes of the whole request. */
  #learn(known: Known): void {
    this.#known[this.#oldest] = known;
    this.#oldest = (this.#oldest + 1) % MAX_KNOWN;
  }
}
