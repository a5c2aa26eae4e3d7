/** Made by `npm run docs` from the options of the command line; do not edit. */

/** A number of seconds, or a text like `'500ms'`, `'30s'`, `'5m'` or `'2h'`. */
export type Duration = number | string;

/** A number of bytes, or a text like `'64k'` or `'16m'`. */
export type Size = number | string;

/** Login options, for logins on demand. */
export interface LoginOptions {
  /** Way to log in: a user in a browser here, or with a code in any browser; the client itself; or a workload. Default: authorization-code; device-code where no browser opens and it is offered. */
  readonly grant?: 'authorization-code' | 'device-code' | 'client-credentials' | 'jwt-bearer' | undefined;
  /** URL of your client ID metadata document, used where the server supports that. */
  readonly clientDocument?: string | undefined;
  /** Identity provider of your company, which vouches for you at the authorization server. */
  readonly idpIssuer?: string | undefined;
  /** Client registered with that identity provider. */
  readonly idpClientId?: string | undefined;
  /** File with the secret of that client, if it has one. */
  readonly idpSecretFile?: string | undefined;
  /** The only authorization server to trust. Default: the one the server names. */
  readonly issuer?: string | undefined;
  /** Where the authorization server gives tokens. Default: what its metadata says. */
  readonly tokenEndpoint?: string | undefined;
  /** Log in at a server that does not announce PKCE, which is used all the same (Entra, Cognito). Default: false. */
  readonly assumePkce?: boolean | undefined;
  /** Token to show the server; a few want the ID token in place of the access token. Default: access. */
  readonly token?: 'access' | 'id' | undefined;
  /** Where the browser returns to on this machine; port 0 picks a free one. Default: http://127.0.0.1:0/callback. */
  readonly callback?: string | undefined;
  /** Open the browser for a login; the address is logged either way. Default: true. */
  readonly browser?: boolean | undefined;
}

/** Login options of a single server, for logins on demand. */
export interface ServerLoginOptions extends LoginOptions {
  /** Client registered with the authorization server, in place of dynamic registration. */
  readonly clientId?: string | undefined;
  /** File with the secret of that client. */
  readonly secretFile?: string | undefined;
  /** Private key the client authenticates with, in place of a secret (PEM file). */
  readonly clientKey?: string | undefined;
  /** File with the JWT of this workload for jwt-bearer, or with your ID token for `oauthIdpIssuer`. */
  readonly assertionFile?: string | undefined;
  /** How the client authenticates there. Default: one that the metadata offers. */
  readonly authMethod?: 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt' | undefined;
  /** Scope to ask for, in place of those the server names. */
  readonly scopes?: string | readonly string[] | undefined;
  /** Resource to ask tokens for; none leaves it out (Entra). Default: the server, as it names itself. */
  readonly resource?: string | undefined;
  /** Parameter to add to the request that begins a login, such as login_hint=me@example.com. */
  readonly params?: string | readonly string[] | Readonly<Record<string, string>> | undefined;
}

/** Options of a single server, under `portage` in its entry. */
export interface ServerOptions {
  /** Connect to this WebSocket URL and serve the clients there, as from behind a router; env:NAME or file:path holds a URL that contains a key. */
  readonly dial?: string | readonly string[] | undefined;
  /** Send this header to the hub; ${NAME} takes a value from the environment. */
  readonly dialHeader?: string | readonly string[] | undefined;
  /** Send the bearer token in env:NAME or file:path to the hub. */
  readonly dialToken?: string | undefined;
  /** Trust these certificate authorities of the hub (PEM file) instead of the built-in ones. */
  readonly dialCa?: string | undefined;
  /** Era of the protocol the server speaks; auto detects it. Default: auto. */
  readonly protocol?: 'auto' | 'legacy' | 'modern' | undefined;
  /** Show only tools whose names match this pattern, and refuse calls to all others. */
  readonly includeTool?: string | readonly string[] | undefined;
  /** Hide tools whose names match this pattern and refuse calls to them; wins over `includeTool`. */
  readonly excludeTool?: string | readonly string[] | undefined;
  /** Show the tool that the server calls OLD to clients as NEW. */
  readonly renameTool?: string | readonly string[] | Readonly<Record<string, string>> | undefined;
  /** Show clients this description of the tool that the server calls NAME. */
  readonly describeTool?: string | readonly string[] | Readonly<Record<string, string>> | undefined;
  /** Keep hashes of the tools in this file at first sight; hide tools that change or appear later until they are accepted. */
  readonly pinTools?: string | undefined;
  /** Pass this request header to the caller's own server process, as a variable. */
  readonly mapHeader?: string | readonly string[] | undefined;
  /** Pass the whole environment to the server, not just PATH, HOME and other harmless names. Default: false. */
  readonly inheritEnv?: boolean | undefined;
  /** Run the server on a pseudo-terminal, for servers that need one; requires the package @lydell/node-pty. Default: false. */
  readonly pty?: boolean | undefined;
  /** Transport the server speaks; auto detects it. Default: auto. */
  readonly transport?: 'auto' | 'streamable-http' | 'sse' | undefined;
  /** Send the headers in this file, one per line; # starts a comment. */
  readonly headerFile?: string | undefined;
  /** Send the bearer token in this file; it is read again when it changes. */
  readonly bearerTokenFile?: string | undefined;
  /** Pass this header of the client's requests on to the server, renamed if written as 'Name: Other'; no others are. */
  readonly forwardHeader?: string | readonly string[] | undefined;
  /** Trust these certificate authorities (PEM file) instead of the built-in ones. */
  readonly ca?: string | undefined;
  /** Client certificate to present to the server (PEM file). */
  readonly clientCert?: string | undefined;
  /** Private key of that certificate (PEM file). */
  readonly clientKey?: string | undefined;
  /** Time for name resolution, TCP and TLS; 0: no limit. Default: 10s. */
  readonly connectTimeout?: Duration | undefined;
  /** Time until a response begins; 0: no limit, since calls may be long. Default: 0. */
  readonly firstByteTimeout?: Duration | undefined;
  /** Silence allowed in a stream; keep-alive comments count as activity; 0: no limit. Default: 0. */
  readonly idleTimeout?: Duration | undefined;
  /** Time for one HTTP request and its whole response; 0: no limit. Default: 0. */
  readonly callTimeout?: Duration | undefined;
  /** Ping a connection that was idle this long; 0: never. Default: 0. */
  readonly keepAlive?: Duration | undefined;
  /** When to log in (OAuth): if the server asks for it, the same after forgetting an earlier login, or never. Default: never, unless an option of a login is given. */
  readonly login?: 'on-demand' | 'anew' | 'never' | ServerLoginOptions | undefined;
  /** Exchange each caller's token for one of the server, at `authIssuer`, as `oauthClientId` (RFC 8693). Default: false. */
  readonly exchangeToken?: boolean | undefined;
  /** Way to log in: a user in a browser here, or with a code in any browser; the client itself; or a workload. Default: authorization-code; device-code where no browser opens and it is offered. */
  readonly oauthGrant?: 'authorization-code' | 'device-code' | 'client-credentials' | 'jwt-bearer' | undefined;
  /** Client registered with the authorization server, in place of dynamic registration. */
  readonly oauthClientId?: string | undefined;
  /** File with the secret of that client. */
  readonly oauthSecretFile?: string | undefined;
  /** Private key the client authenticates with, in place of a secret (PEM file). */
  readonly oauthClientKey?: string | undefined;
  /** URL of your client ID metadata document, used where the server supports that. */
  readonly oauthClientDocument?: string | undefined;
  /** File with the JWT of this workload for jwt-bearer, or with your ID token for `oauthIdpIssuer`. */
  readonly oauthAssertionFile?: string | undefined;
  /** Identity provider of your company, which vouches for you at the authorization server. */
  readonly oauthIdpIssuer?: string | undefined;
  /** Client registered with that identity provider. */
  readonly oauthIdpClientId?: string | undefined;
  /** File with the secret of that client, if it has one. */
  readonly oauthIdpSecretFile?: string | undefined;
  /** The only authorization server to trust. Default: the one the server names. */
  readonly oauthIssuer?: string | undefined;
  /** Where the authorization server gives tokens. Default: what its metadata says. */
  readonly oauthTokenEndpoint?: string | undefined;
  /** How the client authenticates there. Default: one that the metadata offers. */
  readonly oauthAuthMethod?: 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt' | undefined;
  /** Log in at a server that does not announce PKCE, which is used all the same (Entra, Cognito). Default: false. */
  readonly oauthAssumePkce?: boolean | undefined;
  /** Scope to ask for, in place of those the server names. */
  readonly oauthScope?: string | readonly string[] | undefined;
  /** Resource to ask tokens for; none leaves it out (Entra). Default: the server, as it names itself. */
  readonly oauthResource?: string | undefined;
  /** Token to show the server; a few want the ID token in place of the access token. Default: access. */
  readonly oauthToken?: 'access' | 'id' | undefined;
  /** Parameter to add to the request that begins a login, such as login_hint=me@example.com. */
  readonly oauthParam?: string | readonly string[] | Readonly<Record<string, string>> | undefined;
  /** Where the browser returns to on this machine; port 0 picks a free one. Default: http://127.0.0.1:0/callback. */
  readonly oauthCallback?: string | undefined;
  /** Open the browser for a login; the address is logged either way. Default: true. */
  readonly oauthBrowser?: boolean | undefined;
  /** Where logins and counts are kept, readable only by you. Default: ~/.mcp-portage, or where the system keeps such files. */
  readonly stateDir?: string | undefined;
  /** One server process per client session, or one shared by all clients. Default: session. */
  readonly isolation?: 'session' | 'shared' | undefined;
  /** Server processes kept ready for the next sessions. Default: 0. */
  readonly prewarm?: number | undefined;
  /** End a session and its calls after this long without a request or an open stream. Default: 30m. */
  readonly sessionTimeout?: Duration | undefined;
  /** End a session this long after its last connection and its last call. Default: 5m if the client closed its stream or never returned, else `sessionTimeout`. */
  readonly sessionIdleTimeout?: Duration | undefined;
  /** Sessions at a time; new ones replace abandoned ones. Default: 256. */
  readonly maxSessions?: number | undefined;
  /** Sessions of one caller at a time; its new ones replace its abandoned ones. Default: half of `maxSessions` with several named callers, else all. */
  readonly maxCallerSessions?: number | undefined;
  /** Sessions of a legacy server shared by clients that have none; a call that may be asked something gets its own. Default: 16 if each is a process, else 256. */
  readonly poolSize?: number | undefined;
  /** Server processes at a time, including those that are exiting. Default: twice `maxSessions` plus `poolSize`. */
  readonly maxChildren?: number | undefined;
  /** Close a response stream after this long if the client can come back for the rest; 0: never. Default: 0. */
  readonly pollAfter?: Duration | undefined;
  /** Largest message, in either direction; what connect sends its client is limited to 10m unless this is given. Default: 16m. */
  readonly maxMessageBytes?: Size | undefined;
  /** Cut longer texts in results of tools, and put a note in place of larger images, blobs and structured content; 0: no limit. Default: 0. */
  readonly maxResultBytes?: Size | undefined;
  /** Deepest nesting of arrays and objects in a client's message; at most 1000. Default: 1000. */
  readonly maxJsonDepth?: number | undefined;
  /** Unanswered calls of one session, or of one named caller without sessions. Default: 1024. */
  readonly maxSessionInFlight?: number | undefined;
  /** Open event streams of one session; every call counts, since its response may become one. Default: 2048. */
  readonly maxSessionStreams?: number | undefined;
  /** Kept per session for clients that lost a connection and resume their stream. Default: 5m. */
  readonly maxReplayBytes?: Size | undefined;
  /** Calls waiting for their clients to answer a question; as many tasks besides. Default: 1024. */
  readonly maxParkedCalls?: number | undefined;
  /** Memory for such calls and tasks; as much again for results nobody has fetched. Default: 64m. */
  readonly maxParkedBytes?: Size | undefined;
  /** Silence allowed to one call; progress and questions to the user count as activity; 0: no limit. Default: 5m. */
  readonly requestTimeout?: Duration | undefined;
  /** Total time for one call, whatever progress it reports; 0: no limit. Default: 24h. */
  readonly maxCallTime?: Duration | undefined;
  /** Time a shared server process gets to respond to a ping after a call to it timed out; 0: never ask. Default: 30s. */
  readonly hangTimeout?: Duration | undefined;
}

/** Options of `serve`, `connect` and `probe`; for a single server they are defaults. */
export interface CommonOptions {
  /** Era of the protocol the server speaks; auto detects it. Default: auto. */
  readonly protocol?: 'auto' | 'legacy' | 'modern' | undefined;
  /** Pass the whole environment to the server, not just PATH, HOME and other harmless names. Default: false. */
  readonly inheritEnv?: boolean | undefined;
  /** Run the server on a pseudo-terminal, for servers that need one; requires the package @lydell/node-pty. Default: false. */
  readonly pty?: boolean | undefined;
  /** Transport the server speaks; auto detects it. Default: auto. */
  readonly transport?: 'auto' | 'streamable-http' | 'sse' | undefined;
  /** Trust these certificate authorities (PEM file) instead of the built-in ones. */
  readonly ca?: string | undefined;
  /** When to log in (OAuth): if the server asks for it, the same after forgetting an earlier login, or never. Default: never, unless an option of a login is given. */
  readonly login?: 'on-demand' | 'anew' | 'never' | LoginOptions | undefined;
  /** Way to log in: a user in a browser here, or with a code in any browser; the client itself; or a workload. Default: authorization-code; device-code where no browser opens and it is offered. */
  readonly oauthGrant?: 'authorization-code' | 'device-code' | 'client-credentials' | 'jwt-bearer' | undefined;
  /** URL of your client ID metadata document, used where the server supports that. */
  readonly oauthClientDocument?: string | undefined;
  /** Identity provider of your company, which vouches for you at the authorization server. */
  readonly oauthIdpIssuer?: string | undefined;
  /** Client registered with that identity provider. */
  readonly oauthIdpClientId?: string | undefined;
  /** File with the secret of that client, if it has one. */
  readonly oauthIdpSecretFile?: string | undefined;
  /** The only authorization server to trust. Default: the one the server names. */
  readonly oauthIssuer?: string | undefined;
  /** Where the authorization server gives tokens. Default: what its metadata says. */
  readonly oauthTokenEndpoint?: string | undefined;
  /** Log in at a server that does not announce PKCE, which is used all the same (Entra, Cognito). Default: false. */
  readonly oauthAssumePkce?: boolean | undefined;
  /** Token to show the server; a few want the ID token in place of the access token. Default: access. */
  readonly oauthToken?: 'access' | 'id' | undefined;
  /** Where the browser returns to on this machine; port 0 picks a free one. Default: http://127.0.0.1:0/callback. */
  readonly oauthCallback?: string | undefined;
  /** Open the browser for a login; the address is logged either way. Default: true. */
  readonly oauthBrowser?: boolean | undefined;
  /** Where logins and counts are kept, readable only by you. Default: ~/.mcp-portage, or where the system keeps such files. */
  readonly stateDir?: string | undefined;
  /** Largest message, in either direction; what connect sends its client is limited to 10m unless this is given. Default: 16m. */
  readonly maxMessageBytes?: Size | undefined;
}

/** Options of `serve` and `connect` only. */
export interface ServedOptions extends CommonOptions {
  /** Serve the servers of a file also as one; with search, clients search for its tools instead of listing them. Default: false; true for connect with several servers. */
  readonly aggregate?: boolean | 'search' | undefined;
  /** Show only tools whose names match this pattern, and refuse calls to all others. */
  readonly includeTool?: string | readonly string[] | undefined;
  /** Hide tools whose names match this pattern and refuse calls to them; wins over `includeTool`. */
  readonly excludeTool?: string | readonly string[] | undefined;
  /** Keep hashes of the tools in this file at first sight; hide tools that change or appear later until they are accepted. */
  readonly pinTools?: string | undefined;
  /** Time for name resolution, TCP and TLS; 0: no limit. Default: 10s. */
  readonly connectTimeout?: Duration | undefined;
  /** Time until a response begins; 0: no limit, since calls may be long. Default: 0. */
  readonly firstByteTimeout?: Duration | undefined;
  /** Silence allowed in a stream; keep-alive comments count as activity; 0: no limit. Default: 0. */
  readonly idleTimeout?: Duration | undefined;
  /** Time for one HTTP request and its whole response; 0: no limit. Default: 0. */
  readonly callTimeout?: Duration | undefined;
  /** Ping a connection that was idle this long; 0: never. Default: 0. */
  readonly keepAlive?: Duration | undefined;
  /** Cut longer texts in results of tools, and put a note in place of larger images, blobs and structured content; 0: no limit. Default: 0. */
  readonly maxResultBytes?: Size | undefined;
  /** Deepest nesting of arrays and objects in a client's message; at most 1000. Default: 1000. */
  readonly maxJsonDepth?: number | undefined;
  /** Silence allowed to one call; progress and questions to the user count as activity; 0: no limit. Default: 5m. */
  readonly requestTimeout?: Duration | undefined;
  /** Total time for one call, whatever progress it reports; 0: no limit. Default: 24h. */
  readonly maxCallTime?: Duration | undefined;
  /** Time running calls get to finish at shutdown; server processes then get as long to exit. Default: 4s. */
  readonly shutdownGrace?: Duration | undefined;
  /** Count who uses what, deprecated features included, for mcp-portage report. Default: false. */
  readonly usage?: boolean | undefined;
  /** Write one line of JSON per call to this file. */
  readonly auditFile?: string | undefined;
  /** Refuse calls while the audit file cannot be written. Default: false. */
  readonly auditRequired?: boolean | undefined;
  /** Write each message to this file as a line of JSON, with secrets hidden. */
  readonly record?: string | undefined;
  /** Keep tokens, passwords and keys in the recording instead of hiding them. Default: false. */
  readonly recordSecrets?: boolean | undefined;
  /** Cut larger messages in the recording and in the live feed. Default: 64k. */
  readonly recordMaxMessage?: Size | undefined;
  /** Rename the recording to FILE.1 at this size and begin another; 0: no limit. Default: 100m. */
  readonly recordMaxSize?: Size | undefined;
}

/** Options of servers that clients reach over HTTP. */
export interface HttpOptions extends ServedOptions {
  /** Address to listen on. Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /** Port to listen on; 0 picks a free one. Default: 8000. */
  readonly port?: number | undefined;
  /** Serve HTTP at this Unix socket (on Windows a named pipe); in place of a port unless one is given as well. */
  readonly socket?: string | readonly string[] | undefined;
  /** File mode of that socket, which decides who may connect. Default: 0600. */
  readonly socketMode?: string | undefined;
  /** Serve newline-delimited JSON at tcp://host:port or unix:///path, with name= before it if there are several servers. */
  readonly stream?: string | readonly string[] | undefined;
  /** Serve https with this certificate chain (PEM file). */
  readonly tlsCert?: string | undefined;
  /** Private key of the certificate (PEM file). */
  readonly tlsKey?: string | undefined;
  /** Streamable HTTP endpoint. Default: /mcp. */
  readonly path?: string | undefined;
  /** Also serve HTTP+SSE, for older clients. Default: true. */
  readonly sse?: boolean | undefined;
  /** HTTP+SSE: where older clients open their stream. Default: /sse. */
  readonly ssePath?: string | undefined;
  /** HTTP+SSE: where older clients post messages. Default: /messages. */
  readonly messagePath?: string | undefined;
  /** Tell older clients that HTTP+SSE ends after this day (UTC) or at this time, then refuse them. */
  readonly sunset?: string | undefined;
  /** What happens to older clients after that date. Default: refuse. */
  readonly afterSunset?: 'refuse' | 'serve' | undefined;
  /** Also serve WebSocket. Default: true. */
  readonly ws?: boolean | undefined;
  /** WebSocket endpoint. Default: /ws. */
  readonly wsPath?: string | undefined;
  /** Public URL of this process behind a reverse proxy, with its path prefix. */
  readonly baseUrl?: string | undefined;
  /** Host name clients may use, besides loopback names and the listening address. */
  readonly allowHost?: string | readonly string[] | undefined;
  /** Web origin whose pages may call, by CORS. */
  readonly allowOrigin?: string | readonly string[] | undefined;
  /** Serve everybody who can reach the port, even from other machines; otherwise those must authenticate. Default: false. */
  readonly allowAnonymous?: boolean | undefined;
  /** Accept requests with the bearer token in env:NAME or file:path; alice=env:NAME also names its owner. */
  readonly authToken?: string | readonly string[] | undefined;
  /** Accept access tokens (JWT) of this OAuth issuer. */
  readonly authIssuer?: string | undefined;
  /** Audience those tokens must have. Default: its own URLs, if `baseUrl` is given. */
  readonly authAudience?: string | readonly string[] | undefined;
  /** Keys of that issuer: a URL or a file. Default: from the issuer's metadata. */
  readonly authJwks?: string | undefined;
  /** Scope those tokens must have. */
  readonly authScope?: string | readonly string[] | undefined;
  /** Share sessions with other replicas through this Redis: redis://, rediss://, redis+sentinel:// or redis+cluster:// and its address. */
  readonly store?: string | undefined;
  /** URL at which the other replicas reach this one, such as http://10.0.0.5:8000. */
  readonly advertise?: string | undefined;
  /** Where the secret of all replicas is; with several lines, the first key encrypts and all decrypt. */
  readonly clusterKey?: string | undefined;
  /** Prefix of every key in Redis, so that other programs can share it. Default: mcp-portage:. */
  readonly storePrefix?: string | undefined;
  /** Trust these certificate authorities for Redis over TLS (PEM file) instead of the built-in ones. */
  readonly storeCa?: string | undefined;
  /** Client certificate to present to Redis (PEM file). */
  readonly storeClientCert?: string | undefined;
  /** Private key of that certificate (PEM file). */
  readonly storeClientKey?: string | undefined;
  /** Silence of a replica after which others take over its sessions with remote servers. Default: 15s. */
  readonly lease?: Duration | undefined;
  /** Limit sessions, calls of a caller without a session, and processes for all replicas together instead of for each. Default: false. */
  readonly clusterLimits?: boolean | undefined;
  /** Pass this request header to the caller's own server process, as a variable. */
  readonly mapHeader?: string | readonly string[] | undefined;
  /** Pass this header of the client's requests on to the server, renamed if written as 'Name: Other'; no others are. */
  readonly forwardHeader?: string | readonly string[] | undefined;
  /** Exchange each caller's token for one of the server, at `authIssuer`, as `oauthClientId` (RFC 8693). Default: false. */
  readonly exchangeToken?: boolean | undefined;
  /** One server process per client session, or one shared by all clients. Default: session. */
  readonly isolation?: 'session' | 'shared' | undefined;
  /** Server processes kept ready for the next sessions. Default: 0. */
  readonly prewarm?: number | undefined;
  /** End a session and its calls after this long without a request or an open stream. Default: 30m. */
  readonly sessionTimeout?: Duration | undefined;
  /** End a session this long after its last connection and its last call. Default: 5m if the client closed its stream or never returned, else `sessionTimeout`. */
  readonly sessionIdleTimeout?: Duration | undefined;
  /** Sessions at a time; new ones replace abandoned ones. Default: 256. */
  readonly maxSessions?: number | undefined;
  /** Sessions of one caller at a time; its new ones replace its abandoned ones. Default: half of `maxSessions` with several named callers, else all. */
  readonly maxCallerSessions?: number | undefined;
  /** Sessions of a legacy server shared by clients that have none; a call that may be asked something gets its own. Default: 16 if each is a process, else 256. */
  readonly poolSize?: number | undefined;
  /** Server processes at a time, including those that are exiting. Default: twice `maxSessions` plus `poolSize`. */
  readonly maxChildren?: number | undefined;
  /** Close a response stream after this long if the client can come back for the rest; 0: never. Default: 0. */
  readonly pollAfter?: Duration | undefined;
  /** Largest head of a request: its request line and headers. Default: 16k. */
  readonly maxHeaderBytes?: Size | undefined;
  /** Unanswered calls of all clients together, subscriptions included. Default: 4096. */
  readonly maxInFlight?: number | undefined;
  /** Unanswered calls of one session, or of one named caller without sessions. Default: 1024. */
  readonly maxSessionInFlight?: number | undefined;
  /** Open event streams of one session; every call counts, since its response may become one. Default: 2048. */
  readonly maxSessionStreams?: number | undefined;
  /** Kept per session for clients that lost a connection and resume their stream. Default: 5m. */
  readonly maxReplayBytes?: Size | undefined;
  /** Calls waiting for their clients to answer a question; as many tasks besides. Default: 1024. */
  readonly maxParkedCalls?: number | undefined;
  /** Memory for such calls and tasks; as much again for results nobody has fetched. Default: 64m. */
  readonly maxParkedBytes?: Size | undefined;
  /** Time a shared server process gets to respond to a ping after a call to it timed out; 0: never ask. Default: 30s. */
  readonly hangTimeout?: Duration | undefined;
  /** Show who is connected and what runs at /status, to callers who may see it. Default: false. */
  readonly status?: boolean | undefined;
  /** Token that opens /status and /metrics, and nothing else. */
  readonly statusToken?: string | undefined;
  /** Serve Prometheus metrics at /metrics. Default: false. */
  readonly metrics?: boolean | undefined;
  /** Show the messages of clients and servers live, to callers who may see the status. Default: false. */
  readonly inspect?: boolean | undefined;
}
