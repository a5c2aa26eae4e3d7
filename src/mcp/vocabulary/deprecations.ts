/**
 * Features that the specification has deprecated or removed and that are still in use, each with its earliest removal
 * date. [spec 2026-07-28 deprecated; SEP-2577, SEP-2596]
 */

export type DeprecationName =
  | 'http-sse'
  | 'sampling'
  | 'roots'
  | 'logging'
  | 'dynamic-client-registration'
  | 'batch'
  | 'old-revision';

/**
 * The end of a deprecated feature. `from`: the first revision released on or after this day may drop the feature. The
 * Core Maintainers decide, so this is the earliest day and no announcement. [spec community/feature-lifecycle]
 * `removed`: revisions from this one on do not have the feature. `undated`: no end has been announced.
 */
export type Removal =
  | { readonly kind: 'from'; readonly date: string }
  | { readonly kind: 'removed'; readonly revision: string }
  | { readonly kind: 'undated' };

/**
 * A deprecated feature. `instead` names its replacement and `source` the page of the specification that deprecates it;
 * both are shown to users, as is `title`.
 */
export interface Deprecation {
  readonly name: DeprecationName;
  readonly title: string;
  readonly removal: Removal;
  readonly instead: string;
  readonly source: string;
}

/** The revision of this date replaced HTTP+SSE by Streamable HTTP. UTC. [spec 2025-03-26 changelog] */
export const HTTP_SSE_DEPRECATED_ON = '2025-03-26';

const SITE = 'https://modelcontextprotocol.io';
/** The registry of deprecated features, with the earliest removal of each. */
const REGISTRY = `${SITE}/specification/2026-07-28/deprecated#deprecated`;
/** Twelve months after the release of 2026-07-28, which deprecates these features. */
const A_YEAR_LATER: Removal = { kind: 'from', date: '2027-07-28' };

/** Sorted by the earliest removal. */
export const DEPRECATIONS: readonly Deprecation[] = [
  {
    name: 'batch',
    title: 'JSON-RPC batches',
    removal: { kind: 'removed', revision: '2025-06-18' },
    instead: 'one message in each request',
    source: `${SITE}/specification/2025-06-18/changelog#major-changes`,
  },
  {
    name: 'http-sse',
    title: 'HTTP+SSE transport',
    // Three months after SEP-2596 became Final, which was on 2026-06-03.
    removal: { kind: 'from', date: '2026-09-03' },
    instead: 'Streamable HTTP',
    source: `${SITE}/seps/2596-spec-feature-lifecycle-and-deprecation#transition`,
  },
  {
    name: 'sampling',
    title: 'sampling',
    removal: A_YEAR_LATER,
    instead: 'the API of a model provider, called by the server',
    source: REGISTRY,
  },
  {
    name: 'roots',
    title: 'roots',
    removal: A_YEAR_LATER,
    instead: 'tool parameters, resource URIs or the configuration of the server',
    source: REGISTRY,
  },
  {
    name: 'logging',
    title: 'logging',
    removal: A_YEAR_LATER,
    instead: 'stderr, or OpenTelemetry',
    source: REGISTRY,
  },
  {
    name: 'dynamic-client-registration',
    title: 'dynamic client registration',
    removal: A_YEAR_LATER,
    instead: 'Client ID Metadata Documents',
    source: REGISTRY,
  },
  {
    name: 'old-revision',
    title: 'revisions with a handshake',
    removal: { kind: 'undated' },
    instead: 'revision 2026-07-28',
    source: `${SITE}/specification/2026-07-28/basic/versioning#terminology`,
  },
];

export function findDeprecation(name: DeprecationName): Deprecation {
  const found = DEPRECATIONS.find((deprecation) => deprecation.name === name);
  if (found === undefined) throw new Error(`unreachable: ${name}`);
  return found;
}
