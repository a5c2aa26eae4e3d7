/**
 * The revisions of MCP. A new revision is a row in the table, and functions for what differs in its messages. All other
 * files read flags; none compares dates or eras to find out how to behave.
 */

/**
 * In the legacy era a handshake opens a session; in the modern era each request is complete by itself. [spec 2026-07-28
 * versioning#terminology]
 */
export type Era = 'legacy' | 'modern';

/** Features of messages that a revision has. Content for a peer of an older revision is reduced to what that has. */
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
  /** The capability `tasks`. The modern era has an extension in its place. */
  readonly tasks: boolean;
}

interface RevisionRow {
  readonly era: Era;
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
  readonly features: RevisionFeatures;
}

/** Oldest first. */
const REVISIONS = {
  '2024-11-05': {
    era: 'legacy',
    batching: false,
    primingEvent: false,
    versionHeader: false,
    features: {
      audio: false,
      resourceLinks: false,
      structuredContent: false,
      completionsCapability: false,
      completionContext: false,
      elicitation: 'none',
      samplingTools: false,
      tasks: false,
    },
  },
  '2025-03-26': {
    era: 'legacy',
    batching: true,
    primingEvent: false,
    versionHeader: false,
    features: {
      audio: true,
      resourceLinks: false,
      structuredContent: false,
      completionsCapability: true,
      completionContext: false,
      elicitation: 'none',
      samplingTools: false,
      tasks: false,
    },
  },
  '2025-06-18': {
    era: 'legacy',
    batching: false,
    primingEvent: false,
    versionHeader: true,
    features: {
      audio: true,
      resourceLinks: true,
      structuredContent: true,
      completionsCapability: true,
      completionContext: true,
      elicitation: 'form',
      samplingTools: false,
      tasks: false,
    },
  },
  '2025-11-25': {
    era: 'legacy',
    batching: false,
    primingEvent: true,
    versionHeader: true,
    features: {
      audio: true,
      resourceLinks: true,
      structuredContent: true,
      completionsCapability: true,
      completionContext: true,
      elicitation: 'modes',
      samplingTools: true,
      tasks: true,
    },
  },
  '2026-07-28': {
    era: 'modern',
    batching: false,
    primingEvent: false,
    versionHeader: true,
    features: {
      audio: true,
      resourceLinks: true,
      structuredContent: true,
      completionsCapability: true,
      completionContext: true,
      elicitation: 'modes',
      samplingTools: true,
      tasks: false,
    },
  },
} as const satisfies Readonly<Record<string, RevisionRow>>;

type Table = typeof REVISIONS;
type IdOf<Spoken extends Era> = { [Id in keyof Table]: Table[Id]['era'] extends Spoken ? Id : never }[keyof Table];

/** A revision of the legacy era. */
export type RevisionId = IdOf<'legacy'>;
export type ModernRevisionId = IdOf<'modern'>;

/** A revision of the legacy era with its row. */
export interface Revision extends RevisionRow {
  readonly id: RevisionId;
}

// ---- Eras

/** The rules of an era, for code that serves both eras. */
export interface EraRules {
  /**
   * A client begins with `initialize`, which opens a session and says who the client is, or with any request, because
   * each request says so. Without sessions, a client over HTTP is known only by its requests.
   */
  readonly begins: 'initialize' | 'any-request';
  /** A server asks its client with requests of its own, or in an `input_required` result. */
  readonly serverAsks: 'requests' | 'input-required';
  /** Clients hear of changes without having asked, or on the stream of a `subscriptions/listen` that stays open. */
  readonly changes: 'unasked' | 'on-a-subscription';
  /** The request that every server of the era must answer, and can answer at once. */
  readonly lifeQuestion: 'ping' | 'server/discover';
}

export const ERAS: Readonly<Record<Era, EraRules>> = {
  legacy: { begins: 'initialize', serverAsks: 'requests', changes: 'unasked', lifeQuestion: 'ping' },
  modern: {
    begins: 'any-request',
    serverAsks: 'input-required',
    changes: 'on-a-subscription',
    lifeQuestion: 'server/discover',
  },
};

// ---- Revisions of the legacy era

const legacy: readonly Revision[] = idsOf('legacy').map((id) => ({ id: id as RevisionId, ...REVISIONS[id] }));
const byId: ReadonlyMap<string, Revision> = new Map(legacy.map((revision) => [revision.id, revision]));

/**
 * The revision of a request that names none and belongs to no session with a negotiated one. [spec 2025-11-25
 * transports#protocol-version-header]
 */
export const ASSUMED_REVISION: RevisionId = '2025-03-26';
/** Assumed for a connection until its `initialize` is answered, because it allows the fewest features. */
export const OLDEST_REVISION = legacy[0] as Revision;
/** The revision that the bridge requests in its own handshakes. */
export const LATEST_LEGACY_REVISION = legacy[legacy.length - 1] as Revision;

export function findRevision(id: unknown): Revision | undefined {
  return typeof id === 'string' ? byId.get(id) : undefined;
}

/** A server that names no revision, or an unknown one, is treated like the oldest, which has the fewest features. */
export function servedRevision(id: unknown): Revision {
  return findRevision(id) ?? OLDEST_REVISION;
}

/** Returns the newest legacy revision in the list. */
export function findCommonLegacy(ids: readonly string[]): RevisionId | undefined {
  return legacy.findLast(({ id }) => ids.includes(id))?.id;
}

/** Returns true if the first of two legacy revisions is older than the other. */
export function isEarlierRevision(id: RevisionId, other: RevisionId): boolean {
  const indexOf = (wanted: RevisionId): number => legacy.findIndex((revision) => revision.id === wanted);
  return indexOf(id) < indexOf(other);
}

export function featuresOf(revision: RevisionId | ModernRevisionId): RevisionFeatures {
  return REVISIONS[revision].features;
}

/** The names of the revisions, for error messages. */
export const REVISION_IDS: readonly string[] = legacy.map((revision) => revision.id);

// ---- Revisions of the modern era

const modern = idsOf('modern') as readonly ModernRevisionId[];

/** The revision that the bridge names in its own requests to a modern server. */
export const LATEST_MODERN_REVISION = modern[modern.length - 1] as ModernRevisionId;
/** The names of the modern revisions, for error messages. */
export const MODERN_REVISION_IDS: readonly string[] = modern;

/** Returns the newest modern revision in the list that is supported here. */
export function findCommonModern(ids: readonly string[]): ModernRevisionId | undefined {
  return modern.findLast((revision) => ids.includes(revision));
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
  return id >= (modern[0] as string) ? 'modern' : 'legacy';
}

function idsOf(era: Era): readonly (keyof Table)[] {
  return (Object.keys(REVISIONS) as (keyof Table)[]).filter((id) => REVISIONS[id].era === era);
}
