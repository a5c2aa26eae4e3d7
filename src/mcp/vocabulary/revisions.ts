/**
 * The revisions of MCP and how they differ inside the legacy era. Transports ask a flag; nobody compares dates.
 */

/** legacy: a handshake opens a session; modern: each request says everything. [spec 2026-07-28 versioning#terminology] */
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
 * What a request speaks that names no revision and is in no session that has agreed on one.
 * [spec 2025-11-25 transports#protocol-version-header]
 */
export const ASSUMED_REVISION: RevisionId = '2025-03-26';
/** What a connection is taken for until its `initialize` has been answered: no liberties. */
export const OLDEST_REVISION = revisions[0] as Revision;
/** What the bridge asks for in its own handshakes. */
export const LATEST_LEGACY_REVISION = revisions[revisions.length - 1] as Revision;

export function findRevision(id: unknown): Revision | undefined {
  return typeof id === 'string' ? byId.get(id) : undefined;
}

/** A server that names no revision, or one nobody knows, is served like the oldest: it takes no liberties. */
export function servedRevision(id: unknown): Revision {
  return findRevision(id) ?? OLDEST_REVISION;
}

/** The newest legacy revision in the list. */
export function findCommonLegacy(ids: readonly string[]): RevisionId | undefined {
  return revisions.findLast(({ id }) => ids.includes(id))?.id;
}

/** Did the first of two legacy revisions come before the other? */
export function isEarlierRevision(id: RevisionId, other: RevisionId): boolean {
  const indexOf = (wanted: RevisionId): number => revisions.findIndex((revision) => revision.id === wanted);
  return indexOf(id) < indexOf(other);
}

/** The names of the revisions, for error messages. */
export const REVISION_IDS: readonly string[] = revisions.map((revision) => revision.id);

export type ModernRevisionId = '2026-07-28';

/** Oldest first. */
const modernRevisions: readonly ModernRevisionId[] = ['2026-07-28'];

/** What the bridge asks for where it speaks for itself to a server of the modern era. */
export const LATEST_MODERN_REVISION = modernRevisions[modernRevisions.length - 1] as ModernRevisionId;
/** The names of the modern revisions, for error messages. */
export const MODERN_REVISION_IDS: readonly string[] = modernRevisions;

/** The newest modern revision that is spoken here and in the list. */
export function findCommonModern(ids: readonly string[]): ModernRevisionId | undefined {
  return modernRevisions.findLast((revision) => ids.includes(revision));
}

/**
 * The era of a revision, also of one that is not known here: a date after the first modern revision belongs to a
 * revision to come. Undefined: not the name of a revision.
 */
export function eraOf(id: string): Era | undefined {
  // This is asked for every modern request, and the regular expression takes six times as long as the rest.
  if (MODERN_REVISION_IDS.includes(id)) return 'modern';
  if (byId.has(id)) return 'legacy';
  if (!/^\d{4}-\d{2}-\d{2}$/.test(id)) return undefined;
  return id >= (modernRevisions[0] as string) ? 'modern' : 'legacy';
}

/** What messages of a legacy revision may say. How they travel: revisions.ts. */
export interface RevisionFeatures {
  /** Content of type `audio`. */
  readonly audio: boolean;
  /** Content of type `resource_link`. */
  readonly resourceLinks: boolean;
  /** `structuredContent` of tool results and the `outputSchema` it follows. An object in each of these revisions. */
  readonly structuredContent: boolean;
  /** The capability `completions`; before it, servers completed arguments without saying so. */
  readonly completionsCapability: boolean;
  /** `context` of `completion/complete`. */
  readonly completionContext: boolean;
  /** `form`: without modes, and answers hold no arrays. `modes`: forms and URLs. */
  readonly elicitation: 'none' | 'form' | 'modes';
  /** Tools in requests of `sampling/createMessage`, and several blocks in one message. */
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
