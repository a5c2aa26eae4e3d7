/** What `mcp-portage probe` finds out. Printed as JSON as it is: members are added over time, never renamed. */
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import type { Transport } from '../relay/observer.ts';

export interface ProbeReport {
  /** Raised if a member ever changes its meaning. */
  readonly format: 1;
  readonly target: { readonly kind: 'url' | 'stream' | 'command'; readonly name: string };
  readonly verdict: ProbeConclusion;
  /** Every way of speaking MCP that was tried, whether it works or not. */
  readonly offers: readonly Offer[];
  /** Undefined: nothing asked for credentials. */
  readonly authorization: Authorization | undefined;
  /** What does not work although it should, in whole sentences; also why nothing works. */
  readonly problems: readonly string[];
  readonly clients: readonly ClientAdvice[];
  /** Everything that was sent, in order. */
  readonly steps: readonly Step[];
  readonly tookMs: number;
}

/**
 * - `usable`: at least one way works, without problems.
 * - `partly-usable`: at least one way works, but something is wrong.
 * - `unauthorized`: it wants credentials, or better ones.
 * - `unusable`: no way works, or nobody is there.
 */
export type ProbeConclusion = 'usable' | 'partly-usable' | 'unauthorized' | 'unusable';

export type OfferTransport = Transport;

export const TRANSPORT_NAMES: Readonly<Record<OfferTransport, string>> = {
  stdio: 'stdio',
  'byte-stream': 'byte stream',
  websocket: 'WebSocket',
  'http-sse': 'HTTP+SSE',
  'streamable-http': 'Streamable HTTP',
};

/** One way of speaking with the server. */
export interface Offer {
  readonly transport: OfferTransport;
  readonly era: Era;
  readonly works: boolean;
  /** Why not, or what came of it, in plain words. */
  readonly saw: string;
  /** The revision agreed on: what the server chose when asked for the newest one of the era. */
  readonly revision: string | undefined;
  /** What a modern server says it supports. */
  readonly supportedRevisions: readonly string[] | undefined;
  /** Undefined where the transport has no such thing. */
  readonly session: 'session' | 'stateless' | undefined;
  /** The stream by GET for what belongs to no call; undefined where there is no such thing. */
  readonly serverStream: 'offered' | 'not-offered' | 'failing' | undefined;
  readonly serverInfo: Implementation | undefined;
  /** Names, sorted; sub-capabilities as `resources.subscribe`. */
  readonly capabilities: readonly string[];
  readonly tools: ItemCount;
  readonly resources: ItemCount;
  readonly resourceTemplates: ItemCount;
  readonly prompts: ItemCount;
}

export type ItemCount =
  | { readonly state: 'counted'; readonly count: number; readonly isComplete: boolean }
  /** The capability is not declared, so nobody asks. */
  | { readonly state: 'not-declared' }
  | { readonly state: 'failed'; readonly saw: string }
  /** It was not got to. */
  | { readonly state: 'not-asked' };

export interface Authorization {
  /** 401: credentials are missing or wrong. 403: they are not enough. */
  readonly status: number;
  readonly scheme: string | undefined;
  /** Where the metadata of the protected resource is. [RFC 9728] */
  readonly resourceMetadata: string | undefined;
  /** How that was learned: from `WWW-Authenticate`, or by looking at the well-known place. */
  readonly metadataSource: 'header' | 'well-known' | undefined;
  readonly authorizationServers: readonly string[];
  readonly scopes: readonly string[];
}

export type ClientKind =
  | 'stdio-legacy'
  | 'http-sse'
  | 'streamable-http-legacy'
  | 'streamable-http-modern'
  | 'stdio-modern';

/** How a kind of client gets to this server. */
export interface ClientAdvice {
  readonly client: ClientKind;
  /** `direct`: without help. `portage`: through mcp-portage, with `command`. `none`: nothing of the server works. */
  readonly way: 'direct' | 'portage' | 'none';
  readonly command: string | undefined;
}

export interface Step {
  /** `POST initialize`, `GET for an event stream`, `tools/list`. */
  readonly request: string;
  readonly saw: string;
  /** HTTP status, where there was one. */
  readonly status: number | undefined;
  readonly tookMs: number;
}

/** 0: usable. 69 (EX_UNAVAILABLE): unreachable or unusable. 77 (EX_NOPERM): it wants credentials. */
export function exitCodeOf({ verdict }: ProbeReport): 0 | 69 | 77 {
  switch (verdict) {
    case 'usable':
    case 'partly-usable':
      return 0;
    case 'unauthorized':
      return 77;
    case 'unusable':
      return 69;
  }
}
