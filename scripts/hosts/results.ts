/** What comes of trying a host, as the inner process tells the outer one and as the report shows it. */

/** How the host reaches the bridge; `connect` is a command that it starts and speaks to over stdio. */
export type Carrier = 'streamable-http' | 'http-sse' | 'connect';

export const CARRIER_TITLES: Readonly<Record<Carrier, string>> = {
  'streamable-http': 'Streamable HTTP',
  'http-sse': 'HTTP+SSE',
  connect: '`connect` over stdio',
};

/** What a host says about our server. */
export type HostSays =
  | { readonly kind: 'connected'; readonly words: string }
  | { readonly kind: 'not-connected'; readonly words: string };

/** A client as the bridge's log names it. */
export interface SeenClient {
  readonly name: string;
  readonly version: string;
  readonly revision: string;
  readonly transport: string;
}

export type Outcome =
  | { readonly kind: 'connected'; readonly words: string; readonly client: SeenClient }
  | { readonly kind: 'failed'; readonly words: string }
  | { readonly kind: 'skipped'; readonly reason: string };

export interface Result {
  readonly host: string;
  /** Of its package; empty where it could not be had. */
  readonly hostVersion: string;
  readonly carrier: Carrier;
  /** What told the host about the server. */
  readonly configuredBy: string;
  readonly outcome: Outcome;
}
