/** The report of `mcp-portage probe`. Also printed as JSON in this form: members are added over time, never renamed. */
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';

export interface ProbeReport {
  /** Increased if the meaning of a member changes. */
  readonly format: 1;
  readonly target: {
    readonly kind: 'url' | 'stream' | 'grpc' | 'mqtt' | 'command' | 'replay' | 'aggregate';
    readonly name: string;
  };
  readonly verdict: ProbeConclusion;
  /** Every combination of transport and era that was tried, whether it works or not. */
  readonly offers: readonly Offer[];
  /** Undefined if no response required credentials. */
  readonly authorization: Authorization | undefined;
  /** Sentences about what should work but does not, and about why nothing works. */
  readonly problems: readonly string[];
  readonly clients: readonly ClientAdvice[];
  /** All requests in their order. */
  readonly steps: readonly Step[];
  readonly tookMs: number;
}

/**
 * The overall verdict. `usable`: at least one offer works, without problems. `partly-usable`: at least one works, but
 * there are problems. `unauthorized`: the server requires credentials, or better ones. `unusable`: no offer works, or
 * the server cannot be reached.
 */
export type ProbeConclusion = 'usable' | 'partly-usable' | 'unauthorized' | 'unusable';

export type OfferTransport =
  | 'stdio'
  | 'streamable-http'
  | 'http-sse'
  | 'byte-stream'
  | 'websocket'
  | 'grpc'
  | 'mqtt'
  | 'replay';

export const TRANSPORT_NAMES: Readonly<Record<OfferTransport, string>> = {
  stdio: 'stdio',
  'byte-stream': 'byte stream',
  mqtt: 'MQTT',
  websocket: 'WebSocket',
  grpc: 'gRPC',
  replay: 'replay',
  'http-sse': 'HTTP+SSE',
  'streamable-http': 'Streamable HTTP',
};

/** A transport and era in which the server was probed. */
export interface Offer {
  readonly transport: OfferTransport;
  readonly era: Era;
  readonly works: boolean;
  /** The outcome in plain words, or the reason why the offer does not work. */
  readonly saw: string;
  /** The revision that the server chose when asked for the newest one of the era. */
  readonly revision: string | undefined;
  /** The revisions that a modern server lists. */
  readonly supportedRevisions: readonly string[] | undefined;
  /** Undefined if the transport has no sessions. */
  readonly session: 'session' | 'stateless' | undefined;
  /** The GET stream for messages outside of calls; undefined if the transport has none. */
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
  /** The capability is not declared, so the list is not requested. */
  | { readonly state: 'not-declared' }
  | { readonly state: 'failed'; readonly saw: string }
  /** The probe ended before it requested the list. */
  | { readonly state: 'not-asked' };

export interface Authorization {
  /** 401: credentials are missing or wrong. 403: they are not enough. */
  readonly status: number;
  /**
   * `refused`: the request had a token or another `Authorization` header. `missing`: it had none. Undefined for a handshake
   * of a WebSocket, about which only the status is known.
   */
  readonly token: 'refused' | 'missing' | undefined;
  readonly scheme: string | undefined;
  /** The URL of the protected resource's metadata. [RFC 9728] */
  readonly resourceMetadata: string | undefined;
  /** The source of that URL: the `WWW-Authenticate` header or the well-known path. */
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

/** The way for one kind of client to use this server. */
export interface ClientAdvice {
  readonly client: ClientKind;
  /** `direct`: without mcp-portage. `portage`: through mcp-portage, with `command`. `none`: no offer works. */
  readonly way: 'direct' | 'portage' | 'none';
  readonly command: string | undefined;
}

export interface Step {
  /** `POST initialize`, `GET for an event stream`, `tools/list`. */
  readonly request: string;
  readonly saw: string;
  /** HTTP status, if there was a response. */
  readonly status: number | undefined;
  readonly tookMs: number;
}

/** 0: usable. 69 (EX_UNAVAILABLE): unreachable or unusable. 77 (EX_NOPERM): requires credentials. */
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
