/** The revisions of MCP and their differences within the legacy era. Transports read flags and never compare dates. */

/**
 * In the legacy era a handshake opens a session; in the modern era each request is complete by itself. [spec 2026-07-28
 * versioning#terminology]
 */
export type Era = 'legacy' | 'modern';

export type RevisionId = '2024-11-05' | '2025-03-26' | '2025-06-18' | '2025-11-25';

export interface Revision {
  readonly id: RevisionId;
  /** JSON-RPC arrays are legal. [spec 2025-03-26 basic#batching, removed in 2025-06-18] */
  readonly batching: boolean;
  /**
   * SSE streams start with an event that has an id and empty data, and `retry` is understood. Clients of earlier
   * revisions fail parsing the empty data. [spec 2025-11-25 transports#sending-messages-to-the-server]
   */
  readonly primingEvent: boolean;
  /**
   * Over HTTP, every request after `initialize` names the negotiated revision in `MCP-Protocol-Version`.
   * [spec 2025-06-18 transports#protocol-version-header]
   */
  readonly versionHeader: boolean;
}

const revisions: readonly Revision[] = [
  { id: '2024-11-05', batching: false, primingEvent: false, versionHeader: false },
  { id: '2025-03-26', batching: true, primingEvent: false, versionHeader: false },
  { id: '2025-06-18', batching: false, primingEvent: false, versionHeader: true },
  { id: '2025-11-25', batching: false, primingEvent: true, versionHeader: true },
];

const byId: ReadonlyMap<string, Revision> = new Map(revisions.map((revision) => [revision.id, revision]));

/**
 * The revision of a request that names none and belongs to no session with a negotiated one. [spec 2025-11-25
 * transports#protocol-version-header]
 */
export const ASSUMED_REVISION: RevisionId = '2025-03-26';
/** Assumed for a connection until its `initialize` is answered, because it allows the fewest features. */
export const OLDEST_REVISION = revisions[0] as Revision;
/** The revision that the bridge requests in its own handshakes. */
export const LATEST_LEGACY_REVISION = revisions[revisions.length - 1] as Revision;

export function findRevision(id: unknown): Revision | undefined {
  return typeof id === 'string' ? byId.get(id) : undefined;
}

/** A server that names no revision, or an unknown one, is treated like the oldest, which has the fewest features. */
export function servedRevision(id: unknown): Revision {
  return findRevision(id) ?? OLDEST_REVISION;
}

/** Returns the newest legacy revision in the list. */
export function findCommonLegacy(ids: readonly string[]): RevisionId | undefined {
  return revisions.findLast(({ id }) => ids.includes(id))?.id;
}

/** Returns true if the first of two legacy revisions is older than the other. */
export function isEarlierRevision(id: RevisionId, other: RevisionId): boolean {
  const indexOf = (wanted: RevisionId): number => revisions.findIndex((revision) => revision.id === wanted);
  return indexOf(id) < indexOf(other);
}

/** The names of the revisions, for error messages. */
export const REVISION_IDS: readonly string[] = revisions.map((revision) => revision.id);

export type ModernRevisionId = '2026-07-28';

/** Oldest first. */
const modernRevisions: readonly ModernRevisionId[] = ['2026-07-28'];

/** The revision that the bridge names in its own requests to a modern server. */
export const LATEST_MODERN_REVISION = modernRevisions[modernRevisions.length - 1] as ModernRevisionId;
/** The names of the modern revisions, for error messages. */
export const MODERN_REVISION_IDS: readonly string[] = modernRevisions;

/** Returns the newest modern revision in the list that is supported here. */
export function findCommonModern(ids: readonly string[]): ModernRevisionId | undefined {
  return modernRevisions.findLast((revision) => ids.includes(revision));
}

/**
 * Returns the era of a revision, even of an unknown one: dates from the first modern revision on are modern. Undefined
 * if the text is no revision's name.
 */
export function eraOf(id: string): Era | undefined {
  // This runs for every modern request, and the regular expression takes six times as long as the rest.
  if (MODERN_REVISION_IDS.includes(id)) return 'modern';
  if (byId.has(id)) return 'legacy';
  if (!/^\d{4}-\d{2}-\d{2}$/.test(id)) return undefined;
  return id >= (modernRevisions[0] as string) ? 'modern' : 'legacy';
}

/** Message features of a legacy revision. `Revision` above describes its transport features. */
export interface RevisionFeatures {
  /** Content of type `audio`. */
  readonly audio: boolean;
  /** Content of type `resource_link`. */
  readonly resourceLinks: boolean;
  /** `structuredContent` of tool results and the `outputSchema` for it. In legacy revisions both describe an object. */
  readonly structuredContent: boolean;
  /** The capability `completions`. In older revisions servers complete arguments without declaring it. */
  readonly completionsCapability: boolean;
  /** `context` of `completion/complete`. */
  readonly completionContext: boolean;
  /** `form`: no modes, and answers hold no arrays. `modes`: form and URL mode. */
  readonly elicitation: 'none' | 'form' | 'modes';
  /** Tools in `sampling/createMessage` requests, and several content blocks in one message. */
  readonly samplingTools: boolean;
}

const features: Readonly<Record<RevisionId, RevisionFeatures>> = {
  '2024-11-05': {
    audio: false,
    resourceLinks: false,
    structuredContent: false,
    completionsCapability: false,
    completionContext: false,
    elicitation: 'none',
    samplingTools: false,
  },
  '2025-03-26': {
    audio: true,
    resourceLinks: false,
    structuredContent: false,
    completionsCapability: true,
    completionContext: false,
    elicitation: 'none',
    samplingTools: false,
  },
  '2025-06-18': {
    audio: true,
    resourceLinks: true,
    structuredContent: true,
    completionsCapability: true,
    completionContext: true,
    elicitation: 'form',
    samplingTools: false,
  },
  '2025-11-25': {
    audio: true,
    resourceLinks: true,
    structuredContent: true,
    completionsCapability: true,
    completionContext: true,
    elicitation: 'modes',
    samplingTools: true,
  },
};

export function featuresOf(revision: RevisionId): RevisionFeatures {
  return features[revision];
}
