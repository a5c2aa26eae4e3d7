/** How a remote server is reached. */
export interface RemoteConfig {
  readonly transport: 'auto' | 'streamable-http' | 'sse';
  /** Sent with every request, `${ENV}` already expanded; names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Re-read when it changes; its content is sent as a bearer token. */
  readonly bearerTokenFile: string | undefined;
  readonly tls: {
    readonly caFile: string | undefined;
    readonly certFile: string | undefined;
    readonly keyFile: string | undefined;
  };
  /** The headers of clients' requests that pass to the server; nothing else does. */
  readonly forwardHeaders: readonly ForwardedHeader[];
  readonly timeouts: RemoteTimeouts;
  /** How the token of each caller becomes one of the server; undefined: nothing is made of it. */
  readonly exchange: ExchangeConfig | undefined;
  /** How to log in when the server asks for it; undefined: that is reported and nothing done. */
  readonly login: LoginConfig | undefined;
  /** Pause between pings on an idle connection; 0: none. */
  readonly keepAliveMs: number;
  /** HTTP_PROXY, HTTPS_PROXY, NO_PROXY as the environment had them. */
  readonly proxyEnv: Readonly<Record<string, string>>;
}

/** Whether what the server is shown depends on the caller, so that callers share nothing there. */
export function dependsOnCaller({
  forwardHeaders,
  exchange,
}: Pick<RemoteConfig, 'forwardHeaders' | 'exchange'>): boolean {
  return forwardHeaders.length > 0 || exchange !== undefined;
}

/** A header of clients' requests, and what it is called in those to the server. Both names are in lower case. */
export interface ForwardedHeader {
  readonly name: string;
  readonly sentAs: string;
}

/** An OAuth client: how it gets tokens for the server, and in whose name. */
export interface LoginConfig {
  /** A user logs in, or the client is its own user, or it has an assertion of somebody whom the server trusts. */
  readonly grant: UserGrant | 'client-credentials' | 'jwt-bearer';
  /** The assertion for the grant `jwt-bearer`; undefined: the grant is another one. */
  readonly assertion: AssertionSource | undefined;
  /** What to do with the tokens of the last run. */
  readonly stored: 'use' | 'forget';
  /** Known to the authorization server beforehand; undefined: it gets to know us now. */
  readonly client: RegisteredClient | undefined;
  /** Where a document describes the client, whose URL is then its id. */
  readonly clientMetadataUrl: string | undefined;
  /** The only authorization server that is trusted, as it writes itself; undefined: whichever the server names. */
  readonly issuer: string | undefined;
  /** The endpoint that gives tokens, in place of the one in the metadata. */
  readonly tokenEndpoint: URL | undefined;
  /** The way in which the client authenticates there; undefined: one that the metadata offers. */
  readonly authMethod: ClientMethod | undefined;
  /** True: an authorization server whose metadata does not mention PKCE counts as one that supports it. */
  readonly assumesPkce: boolean;
  /** Asked for in place of those that the server names. */
  readonly scopes: readonly string[];
  readonly resource: ResourceChoice;
  /** The token that the server is shown: the access token, or the ID token in its place. */
  readonly token: 'access' | 'id';
  /** Parameters that are added to the request with which a login begins. */
  readonly extraParameters: ReadonlyMap<string, string>;
  /** Where the browser comes back to, on this machine; port 0 picks a free one. */
  readonly callback: URL;
  /** A program and its arguments, among them `%s` for the address; undefined: the address is only logged. */
  readonly browser: readonly string[] | undefined;
  /** Where logins are kept; undefined: nowhere. */
  readonly stateDirectory: string | undefined;
}

/**
 * A user logs in with a browser of this machine, or with a code in any browser. `device-code-if-offered`: no browser can be
 * opened here.
 */
export type UserGrant = 'authorization-code' | 'device-code' | 'device-code-if-offered';

/**
 * The origin of an assertion that is exchanged for tokens. [RFC 7523 2.1]
 * - `file`: the platform on which this workload runs writes it, and renews it there.
 * - `identity-provider`: the identity provider of a company gives it for one of its users.
 */
export type AssertionSource = { readonly kind: 'file'; readonly file: string } | IdentityProvider;

export interface IdentityProvider {
  readonly kind: 'identity-provider';
  readonly issuer: string;
  /** The client that the bridge is there. */
  readonly client: RegisteredClient;
  /** Proves to it who the user is: a file that another program renews, or a login there. */
  readonly idToken:
    | { readonly kind: 'file'; readonly file: string }
    | { readonly kind: 'login'; readonly grant: UserGrant };
}

/** Where, and in whose name, tokens of callers are exchanged. [RFC 8693] */
export interface ExchangeConfig
  extends Pick<LoginConfig, 'tokenEndpoint' | 'authMethod' | 'scopes' | 'resource' | 'extraParameters'> {
  /** The issuer of the callers' tokens, at whose token endpoint they are exchanged. */
  readonly issuer: string;
  readonly client: RegisteredClient;
}

/** [RFC 7591 2] `token_endpoint_auth_method` */
export type ClientMethod = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt';

/** [RFC 8707] The resource that tokens are for: the server, as it names itself; one that the user names; or none. */
export type ResourceChoice =
  | { readonly kind: 'server' }
  | { readonly kind: 'named'; readonly uri: string }
  | { readonly kind: 'left-out' };

/** How a client proves that it is the one; `none`: it cannot. */
export interface RegisteredClient {
  readonly id: string;
  readonly proof:
    | { readonly kind: 'none' }
    | { readonly kind: 'secret'; readonly secret: string }
    /** A private key (PEM). */
    | { readonly kind: 'key'; readonly file: string };
}

/** Milliseconds; 0: no limit. The limit on a call's silence is ServerLimits.requestTimeoutMs. */
export interface RemoteTimeouts {
  /** Name resolution, TCP and TLS. */
  readonly connectMs: number;
  /** From the request's last byte to the response's head. */
  readonly firstByteMs: number;
  /** Silence on a stream, keep-alive comments included. */
  readonly idleMs: number;
  /** One request and all of its answer, however talkative. */
  readonly callMs: number;
}
