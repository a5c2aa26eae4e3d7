import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { parseDiscovery } from '../../mcp/vocabulary/discover.ts';
import { asFields, type Fields, readFields, readPayload } from '../../mcp/vocabulary/payload.ts';
import {
  eraOf,
  findCommonModern,
  MODERN_REVISION_IDS,
  type ModernRevisionId,
  REVISION_IDS,
} from '../../mcp/vocabulary/revisions.ts';
import { INTERNAL_ERROR, UNSUPPORTED_REVISION } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';

/**
 * Longest time for which a server's description is kept, even if the server allows more, since a newer build may
 * replace the server.
 */
const MAX_TTL_MS = 3_600_000;
/** Bytes of a description. It is kept as objects that may take twenty times as much memory. */
export const MAX_DISCOVERY_BYTES = 1024 * 1024;

/** A modern server's description of itself. */
export interface DiscoveredServer {
  /** The revision used for this server. */
  readonly revision: ModernRevisionId;
  /** The `DiscoverResult` of the server. */
  readonly result: Fields;
}

export type DiscoveryOutcome =
  | { readonly kind: 'found'; readonly server: DiscoveredServer }
  | { readonly kind: 'failed'; readonly error: RpcError };

/** A session that waits for the description, and can ask the server on its own link. */
export interface DiscoverySeeker {
  /** Sends `server/discover`. The seeker passes the server's answer to `SharedDiscovery.answered`. */
  askServer(): void;
  /** Called once with the outcome, but never after `leave`. */
  discovered(outcome: DiscoveryOutcome): void;
}

/**
 * Asks `server/discover` once for all sessions, because a server's description does not depend on the session. One
 * session asks on its own link, so that no process is started for it, and the others wait. If it leaves before the
 * answer, the next one asks. [spec 2026-07-28 server/discover]
 */
export class SharedDiscovery {
  readonly #clock: Clock;
  readonly #serverName: string;
  /** In the order of arrival. The first one has asked. */
  readonly #seekers: DiscoverySeeker[] = [];
  /** True if the server refused the request and named a revision that both sides know. It is then asked once more. */
  #wasRefused = false;
  #known: { readonly server: DiscoveredServer; readonly untilMs: number } | undefined;

  constructor(serverName: string, clock: Clock) {
    this.#serverName = serverName;
    this.#clock = clock;
  }

  /** Waits for the description. The seeker gets it at once if an earlier answer is still valid. */
  seek(seeker: DiscoverySeeker): void {
    if (this.#known !== undefined && this.#clock.now() < this.#known.untilMs) {
      return seeker.discovered({ kind: 'found', server: this.#known.server });
    }
    this.#seekers.push(seeker);
    if (this.#seekers.length === 1) seeker.askServer();
  }

  /** Takes the server's answer to the seeker that asked. */
  answered(seeker: DiscoverySeeker, answer: Frame): void {
    if (this.#seekers[0] !== seeker) return;
    const isAskedAgain = !this.#wasRefused && refusesOnlyNow(answer);
    this.#wasRefused = isAskedAgain;
    if (isAskedAgain) return seeker.askServer();
    const outcome = this.#read(answer);
    if (outcome.kind === 'found') this.#keep(outcome.server);
    for (const waiting of this.#seekers.splice(0)) waiting.discovered(outcome);
  }

  /** Called when the seeker's session or link has ended. */
  leave(seeker: DiscoverySeeker): void {
    const index = this.#seekers.indexOf(seeker);
    if (index === -1) return;
    this.#seekers.splice(index, 1);
    if (index === 0) this.#seekers[0]?.askServer();
  }

  #keep(server: DiscoveredServer): void {
    const { ttlMs } = server.result;
    const heldMs = typeof ttlMs === 'number' ? Math.min(Math.max(ttlMs, 0), MAX_TTL_MS) : 0;
    this.#known = { server, untilMs: this.#clock.now() + heldMs };
  }

  #read(answer: Frame): DiscoveryOutcome {
    if (answer.bytes.length > MAX_DISCOVERY_BYTES) return failed(this.#tooLarge(answer.bytes.length));
    const payload = readPayload(answer);
    if (answer.kind === 'error') return { kind: 'failed', error: this.#refusal(payload) };
    const discovery = parseDiscovery(payload);
    if (payload === undefined || discovery === undefined) return failed(this.#notDiscovered());
    const revision = findCommonModern(discovery.supportedVersions);
    if (revision === undefined) return failed(this.#noCommonRevision(discovery.supportedVersions));
    return { kind: 'found', server: { revision, result: payload } };
  }

  #refusal(error: Fields | undefined): RpcError {
    const { code, message, data } = error ?? {};
    if (code === UNSUPPORTED_REVISION) return rpcErrorOf(this.#noCommonRevision(asFields(data)?.supported));
    return {
      code: typeof code === 'number' ? code : INTERNAL_ERROR,
      message: typeof message === 'string' ? message : `${this.#serverName} refused server/discover.`,
      ...(data !== undefined && { data }),
    };
  }

  #tooLarge(bytes: number): BridgeError {
    const message = `${this.#serverName} answered server/discover with ${bytes} bytes; more than ${MAX_DISCOVERY_BYTES} are not kept.`;
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', message);
  }

  #notDiscovered(): BridgeError {
    return new BridgeError(
      'ERR_UPSTREAM_PROTOCOL',
      `${this.#serverName} answered server/discover with something that is not its result.`,
    );
  }

  #noCommonRevision(supported: unknown): BridgeError {
    // Revisions are the server's own text, so only those that look like one are printed.
    const names = (Array.isArray(supported) ? supported : []).filter((id) => typeof id === 'string' && eraOf(id));
    return new BridgeError(
      'ERR_UPSTREAM_REVISION',
      `${this.#serverName} supports the revisions ${names.join(', ') || 'it did not name'}; mcp-portage speaks ${MODERN_REVISION_IDS.join(', ')} with it, and ${REVISION_IDS.join(', ')} with this client.`,
      { data: { supported: names } },
    );
  }
}

/** A client that is told a revision both sides know asks again with it. [spec 2026-07-28 basic/versioning] */
function refusesOnlyNow(answer: Frame): boolean {
  if (answer.kind !== 'error') return false;
  const { code, data } = readFields(answer, ['code', 'data']);
  const supported = asFields(data)?.supported;
  const names = Array.isArray(supported) ? supported.filter((id) => typeof id === 'string') : [];
  return code === UNSUPPORTED_REVISION && findCommonModern(names) !== undefined;
}

function failed(error: BridgeError): DiscoveryOutcome {
  return { kind: 'failed', error: rpcErrorOf(error) };
}
