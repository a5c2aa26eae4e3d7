/** The connection to a remote server. */
export interface RemoteConfig {
  readonly transport: 'auto' | 'streamable-http' | 'sse';
  /** The account at a broker; applies to servers that are reached through one. */
  readonly account: BrokerAccount;
  /** Sent with every request. `${ENV}` is already expanded; names are in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** A file whose content is sent as a bearer token. It is read again when it changes. */
  readonly bearerTokenFile: string | undefined;
  readonly tls: {
    readonly caFile: string | undefined;
    readonly certFile: string | undefined;
    readonly keyFile: string | undefined;
  };
  /** The headers of clients' requests that pass to the server; nothing else does. */
  readonly forwardHeaders: readonly ForwardedHeader[];
  readonly timeouts: RemoteTimeouts;
  /** Exchange of each caller's token for one of the server; undefined: callers' tokens are not exchanged. */
  readonly exchange: ExchangeConfig | undefined;
  /** Login for a server that asks for one; undefined: the refusal of the server is passed on. */
  readonly login: LoginConfig | undefined;
  /** Interval of pings on an idle connection; 0: none. */
  readonly keepAliveMs: number;
  /** HTTP_PROXY, HTTPS_PROXY, NO_PROXY from the environment. */
  readonly proxyEnv: Readonly<Record<string, string>>;
}

/** A user name and password for a broker; both undefined: the connection is anonymous. */
export interface BrokerAccount {
  readonly user: string | undefined;
  readonly password: PasswordSource | undefined;
}

export type PasswordSource =
  | { readonly kind: 'value'; readonly password: string }
  /** The file is read again with each connection. */
  | { readonly kind: 'file'; readonly file: string };

/** Returns true if the requests to the server differ by caller, so that callers may not share a session with it. */
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
  /** Use of the login that an earlier run has stored: `forget` deletes it and logs in anew. */
  readonly stored: 'use' | 'forget';
  /** A client registered in advance; undefined: it registers now. */
  readonly client: RegisteredClient | undefined;
  /** The URL of a document that describes the client; the URL is then its id. */
  readonly clientMetadataUrl: string | undefined;
  /** The only trusted authorization server, by its own identifier; undefined: the one that the server names. */
  readonly issuer: string | undefined;
  /** The token endpoint to use instead of the one in the metadata. */
  readonly tokenEndpoint: URL | undefined;
  /** The client's authentication method at that endpoint; undefined: one that the metadata offers. */
  readonly authMethod: ClientMethod | undefined;
  /** True if PKCE is assumed to be supported by an authorization server whose metadata does not mention it. */
  readonly assumesPkce: boolean;
  /** Requested instead of the scopes that the server names. */
  readonly scopes: readonly string[];
  readonly resource: ResourceChoice;
  /** The token sent to the server: the access token, or the ID token instead. */
  readonly token: 'access' | 'id';
  /** Additional parameters of the authorization request. */
  readonly extraParameters: ReadonlyMap<string, string>;
  /** The redirect URI on this machine; port 0 picks a free one. */
  readonly callback: URL;
  /** A program with its arguments, in which `%s` stands for the URL; undefined: the URL is only logged. */
  readonly browser: readonly string[] | undefined;
  /** The folder for logins; undefined: they are not stored. */
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

/** The authorization server that exchanges callers' tokens, and the client that asks it to. [RFC 8693] */
export interface ExchangeConfig
  extends Pick<LoginConfig, 'tokenEndpoint' | 'authMethod' | 'scopes' | 'resource' | 'extraParameters'> {
  /** The issuer of the callers' tokens, at whose token endpoint they are exchanged. */
  readonly issuer: string;
  readonly client: RegisteredClient;
}

/** [RFC 7591 2] `token_endpoint_auth_method` */
export type ClientMethod = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt';

/** [RFC 8707] The resource that tokens are for: the server by its own identifier, one that the user names, or none. */
export type ResourceChoice =
  | { readonly kind: 'server' }
  | { readonly kind: 'named'; readonly uri: string }
  | { readonly kind: 'left-out' };

/** A registered client and its authentication; `none` for a public client. */
export interface RegisteredClient {
  readonly id: string;
  readonly proof:
    | { readonly kind: 'none' }
    | { readonly kind: 'secret'; readonly secret: string }
    /** A private key in PEM format. */
    | { readonly kind: 'key'; readonly file: string };
}

/** Timeouts in milliseconds; 0: no limit. The limit for a silent call is ServerLimits.requestTimeoutMs. */
export interface RemoteTimeouts {
  /** Limit for name resolution, TCP and TLS together. */
  readonly connectMs: number;
  /** Limit from the request's last byte to the response's head. */
  readonly firstByteMs: number;
  /** Limit for silence on a stream. Keep-alive comments end the silence. */
  readonly idleMs: number;
  /** Limit for a request and its whole response, even if data keeps arriving. */
  readonly callMs: number;
}
