/** Made by `npm run docs` from the options of the command line; do not edit. */

/** A number of seconds, or a text like `'500ms'`, `'30s'`, `'5m'` or `'2h'`. */
export type Duration = number | string;

/** A number of bytes, or a text like `'64k'` or `'16m'`. */
export type Size = number | string;

/** What may be said of one server, under `portage` in its entry. */
export interface ServerOptions {
  /** Era of the protocol the server speaks; auto finds out. Default: auto. */
  readonly protocol?: 'auto' | 'legacy' | 'modern' | undefined;
  /** Show only tools whose names fit this pattern, and let only those be called. */
  readonly includeTool?: string | readonly string[] | undefined;
  /** Hide tools whose names fit this pattern, and refuse to call them; wins over `includeTool`. */
  readonly excludeTool?: string | readonly string[] | undefined;
  /** Tell a caller's own server process what this header of its requests says, as a variable. */
  readonly mapHeader?: string | readonly string[] | undefined;
  /** Give the server this whole environment, not just PATH, HOME and other harmless names. Default: false. */
  readonly inheritEnv?: boolean | undefined;
  /** Run the server on a pseudo-terminal, for servers that need one. Default: false. */
  readonly pty?: boolean | undefined;
  /** How the server is spoken to; auto finds out. Default: auto. */
  readonly transport?: 'auto' | 'streamable-http' | 'sse' | undefined;
  /** Headers in a file, one a line; # starts a comment. */
  readonly headerFile?: string | undefined;
  /** Send the token in this file as a credential; read again when it changes. */
  readonly bearerTokenFile?: string | undefined;
  /** Let this header of the client's own requests pass to the server; no other does. */
  readonly forwardHeader?: string | readonly string[] | undefined;
  /** Trust these authorities (PEM file) instead of the built-in ones. */
  readonly ca?: string | undefined;
  /** Certificate to show to the server (PEM file). */
  readonly clientCert?: string | undefined;
  /** Private key of that certificate (PEM file). */
  readonly clientKey?: string | undefined;
  /** Time for name resolution, TCP and TLS; 0: no limit. Default: 10s. */
  readonly connectTimeout?: Duration | undefined;
  /** Time until an answer begins; 0: no limit, as a call may be long. Default: 0. */
  readonly firstByteTimeout?: Duration | undefined;
  /** Silence allowed in a stream, keep-alive comments count as life; 0: no limit. Default: 0. */
  readonly idleTimeout?: Duration | undefined;
  /** Time for one HTTP request and all of its answer, however talkative; 0: no limit. Default: 0. */
  readonly callTimeout?: Duration | undefined;
  /** Ping a connection that was idle this long; 0: never. Default: 0. */
  readonly keepAlive?: Duration | undefined;
  /** Log in when the server asks for it (OAuth), also forgetting an earlier login first, or not at all. Default: on-demand for connect, never for the others or with a token. */
  readonly login?: 'on-demand' | 'anew' | 'never' | undefined;
  /** Who logs in: a user with a browser, or the client in its own name. Default: authorization-code. */
  readonly oauthGrant?: 'authorization-code' | 'client-credentials' | undefined;
  /** A client that the authorization server knows, instead of one registered on the way. */
  readonly oauthClientId?: string | undefined;
  /** The secret of that client, in a file. */
  readonly oauthSecretFile?: string | undefined;
  /** Private key that the client proves itself with instead of a secret (PEM file). */
  readonly oauthClientKey?: string | undefined;
  /** Where a document of yours describes the client; used where that is supported. */
  readonly oauthClientDocument?: string | undefined;
  /** The only authorization server to trust. Default: whichever the server names. */
  readonly oauthIssuer?: string | undefined;
  /** A scope to ask for instead of those that the server names. */
  readonly oauthScope?: string | readonly string[] | undefined;
  /** Where the browser comes back to on this machine; port 0 picks a free one. Default: http://127.0.0.1:0/callback. */
  readonly oauthCallback?: string | undefined;
  /** Open the browser for a login; the address to open is in the log either way. Default: true. */
  readonly oauthBrowser?: boolean | undefined;
  /** Where logins and counts are kept, readable for you alone. Default: ~/.mcp-portage, or where the system keeps such things. */
  readonly stateDir?: string | undefined;
  /** One server process per client session, or one shared by all. Default: session. */
  readonly isolation?: 'session' | 'shared' | undefined;
  /** Server processes kept started ahead of the next sessions. Default: 0. */
  readonly prewarm?: number | undefined;
  /** End a session after this long without a request or an open stream, calls included. Default: 30m. */
  readonly sessionTimeout?: Duration | undefined;
  /** End a session this long after its last connection and call. Default: 5m where the client closed its stream or never returned, else `sessionTimeout`. */
  readonly sessionIdleTimeout?: Duration | undefined;
  /** Most sessions at a time; abandoned ones make room for new ones. Default: 256. */
  readonly maxSessions?: number | undefined;
  /** Most sessions of one caller at a time; its own abandoned ones make room. Default: half of `maxSessions` where callers have several names, else all. */
  readonly maxCallerSessions?: number | undefined;
  /** Sessions of a legacy server kept for clients that have none; a call that can be asked something has one to itself. Default: 16 if each is a process, else 256. */
  readonly poolSize?: number | undefined;
  /** Start no further server processes beyond this many, those that are ending included. Default: twice `maxSessions`, and `poolSize`. */
  readonly maxChildren?: number | undefined;
  /** Close a stream this old where the client can come back for the rest; 0: never. Default: 0. */
  readonly pollAfter?: Duration | undefined;
  /** Largest single message, either way. Default: 16m. */
  readonly maxMessageBytes?: Size | undefined;
  /** Deepest nesting of arrays and objects in a client's message; at most 1000. Default: 1000. */
  readonly maxJsonDepth?: number | undefined;
  /** Unanswered calls of one session, or of one named caller that has no sessions. Default: 1024. */
  readonly maxSessionInFlight?: number | undefined;
  /** Open event streams of one session; a call counts, as its answer may become one. Default: 2048. */
  readonly maxSessionStreams?: number | undefined;
  /** Kept of each session for clients that lost a connection and come back for the rest. Default: 5m. */
  readonly maxReplayBytes?: Size | undefined;
  /** Calls that wait until their clients were asked something; as many tasks besides. Default: 1024. */
  readonly maxParkedCalls?: number | undefined;
  /** Held by such calls and tasks, and as much again by outcomes nobody has come back for. Default: 64m. */
  readonly maxParkedBytes?: Size | undefined;
  /** Silence allowed to one call (progress and questions to the user count as life); 0: no limit. Default: 5m. */
  readonly requestTimeout?: Duration | undefined;
  /** Time for one call in all, whatever progress it reports; 0: no limit. Default: 24h. */
  readonly maxCallTime?: Duration | undefined;
  /** Time to show life for a process that several clients share, once a call was given up; 0: never asked. Default: 30s. */
  readonly hangTimeout?: Duration | undefined;
}

/** What may be said of whatever is done with servers; of a single server it is a default. */
export interface CommonOptions {
  /** Era of the protocol the server speaks; auto finds out. Default: auto. */
  readonly protocol?: 'auto' | 'legacy' | 'modern' | undefined;
  /** Give the server this whole environment, not just PATH, HOME and other harmless names. Default: false. */
  readonly inheritEnv?: boolean | undefined;
  /** Run the server on a pseudo-terminal, for servers that need one. Default: false. */
  readonly pty?: boolean | undefined;
  /** How the server is spoken to; auto finds out. Default: auto. */
  readonly transport?: 'auto' | 'streamable-http' | 'sse' | undefined;
  /** Trust these authorities (PEM file) instead of the built-in ones. */
  readonly ca?: string | undefined;
  /** Log in when the server asks for it (OAuth), also forgetting an earlier login first, or not at all. Default: on-demand for connect, never for the others or with a token. */
  readonly login?: 'on-demand' | 'anew' | 'never' | undefined;
  /** Who logs in: a user with a browser, or the client in its own name. Default: authorization-code. */
  readonly oauthGrant?: 'authorization-code' | 'client-credentials' | undefined;
  /** Where a document of yours describes the client; used where that is supported. */
  readonly oauthClientDocument?: string | undefined;
  /** The only authorization server to trust. Default: whichever the server names. */
  readonly oauthIssuer?: string | undefined;
  /** Where the browser comes back to on this machine; port 0 picks a free one. Default: http://127.0.0.1:0/callback. */
  readonly oauthCallback?: string | undefined;
  /** Open the browser for a login; the address to open is in the log either way. Default: true. */
  readonly oauthBrowser?: boolean | undefined;
  /** Where logins and counts are kept, readable for you alone. Default: ~/.mcp-portage, or where the system keeps such things. */
  readonly stateDir?: string | undefined;
  /** Largest single message, either way. Default: 16m. */
  readonly maxMessageBytes?: Size | undefined;
}

/** What else may be said where clients come over HTTP. */
export interface HttpOptions extends CommonOptions {
  /** Address to listen on. Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /** Port to listen on; 0 picks a free one. Default: 8000. */
  readonly port?: number | undefined;
  /** Serve https with this certificate chain (PEM file). */
  readonly tlsCert?: string | undefined;
  /** Private key of the certificate (PEM file). */
  readonly tlsKey?: string | undefined;
  /** Streamable HTTP endpoint. Default: /mcp. */
  readonly path?: string | undefined;
  /** Serve HTTP+SSE, too, for old clients. Default: true. */
  readonly sse?: boolean | undefined;
  /** HTTP+SSE: the stream old clients open. Default: /sse. */
  readonly ssePath?: string | undefined;
  /** HTTP+SSE: where old clients post. Default: /messages. */
  readonly messagePath?: string | undefined;
  /** How clients reach this process through a reverse proxy, with its path prefix. */
  readonly baseUrl?: string | undefined;
  /** Host name clients may use, besides loopback names and the listening address. */
  readonly allowHost?: string | readonly string[] | undefined;
  /** Web origin whose pages may call, with CORS. */
  readonly allowOrigin?: string | readonly string[] | undefined;
  /** Let in whoever reaches the port, also beyond this machine; without it, that takes authentication. Default: false. */
  readonly allowAnonymous?: boolean | undefined;
  /** Let in who shows this token: where it is, env:NAME or file:path, and optionally whose, as in alice=env:NAME. */
  readonly authToken?: string | readonly string[] | undefined;
  /** Let in who shows an access token (JWT) of this OAuth issuer. */
  readonly authIssuer?: string | undefined;
  /** What this server is called in such a token. Default: its URLs, if `baseUrl` is given. */
  readonly authAudience?: string | readonly string[] | undefined;
  /** The issuer's keys, a URL or a file. Default: where the issuer's metadata says. */
  readonly authJwks?: string | undefined;
  /** A scope such a token needs. */
  readonly authScope?: string | readonly string[] | undefined;
  /** Show only tools whose names fit this pattern, and let only those be called. */
  readonly includeTool?: string | readonly string[] | undefined;
  /** Hide tools whose names fit this pattern, and refuse to call them; wins over `includeTool`. */
  readonly excludeTool?: string | readonly string[] | undefined;
  /** Tell a caller's own server process what this header of its requests says, as a variable. */
  readonly mapHeader?: string | readonly string[] | undefined;
  /** Let this header of the client's own requests pass to the server; no other does. */
  readonly forwardHeader?: string | readonly string[] | undefined;
  /** Time for name resolution, TCP and TLS; 0: no limit. Default: 10s. */
  readonly connectTimeout?: Duration | undefined;
  /** Time until an answer begins; 0: no limit, as a call may be long. Default: 0. */
  readonly firstByteTimeout?: Duration | undefined;
  /** Silence allowed in a stream, keep-alive comments count as life; 0: no limit. Default: 0. */
  readonly idleTimeout?: Duration | undefined;
  /** Time for one HTTP request and all of its answer, however talkative; 0: no limit. Default: 0. */
  readonly callTimeout?: Duration | undefined;
  /** Ping a connection that was idle this long; 0: never. Default: 0. */
  readonly keepAlive?: Duration | undefined;
  /** One server process per client session, or one shared by all. Default: session. */
  readonly isolation?: 'session' | 'shared' | undefined;
  /** Server processes kept started ahead of the next sessions. Default: 0. */
  readonly prewarm?: number | undefined;
  /** End a session after this long without a request or an open stream, calls included. Default: 30m. */
  readonly sessionTimeout?: Duration | undefined;
  /** End a session this long after its last connection and call. Default: 5m where the client closed its stream or never returned, else `sessionTimeout`. */
  readonly sessionIdleTimeout?: Duration | undefined;
  /** Most sessions at a time; abandoned ones make room for new ones. Default: 256. */
  readonly maxSessions?: number | undefined;
  /** Most sessions of one caller at a time; its own abandoned ones make room. Default: half of `maxSessions` where callers have several names, else all. */
  readonly maxCallerSessions?: number | undefined;
  /** Sessions of a legacy server kept for clients that have none; a call that can be asked something has one to itself. Default: 16 if each is a process, else 256. */
  readonly poolSize?: number | undefined;
  /** Start no further server processes beyond this many, those that are ending included. Default: twice `maxSessions`, and `poolSize`. */
  readonly maxChildren?: number | undefined;
  /** Close a stream this old where the client can come back for the rest; 0: never. Default: 0. */
  readonly pollAfter?: Duration | undefined;
  /** Deepest nesting of arrays and objects in a client's message; at most 1000. Default: 1000. */
  readonly maxJsonDepth?: number | undefined;
  /** Largest head of a request: its line and all of its headers. Default: 16k. */
  readonly maxHeaderBytes?: Size | undefined;
  /** Unanswered calls of all clients together; subscriptions count. Default: 4096. */
  readonly maxInFlight?: number | undefined;
  /** Unanswered calls of one session, or of one named caller that has no sessions. Default: 1024. */
  readonly maxSessionInFlight?: number | undefined;
  /** Open event streams of one session; a call counts, as its answer may become one. Default: 2048. */
  readonly maxSessionStreams?: number | undefined;
  /** Kept of each session for clients that lost a connection and come back for the rest. Default: 5m. */
  readonly maxReplayBytes?: Size | undefined;
  /** Calls that wait until their clients were asked something; as many tasks besides. Default: 1024. */
  readonly maxParkedCalls?: number | undefined;
  /** Held by such calls and tasks, and as much again by outcomes nobody has come back for. Default: 64m. */
  readonly maxParkedBytes?: Size | undefined;
  /** Silence allowed to one call (progress and questions to the user count as life); 0: no limit. Default: 5m. */
  readonly requestTimeout?: Duration | undefined;
  /** Time for one call in all, whatever progress it reports; 0: no limit. Default: 24h. */
  readonly maxCallTime?: Duration | undefined;
  /** Time to show life for a process that several clients share, once a call was given up; 0: never asked. Default: 30s. */
  readonly hangTimeout?: Duration | undefined;
  /** Time running calls get to finish at shutdown; then server processes get as much to end. Default: 4s. */
  readonly shutdownGrace?: Duration | undefined;
  /** Show who is connected and what runs at /status, to whoever may look. Default: true. */
  readonly status?: boolean | undefined;
  /** Let in to /status and /metrics who shows this token, which opens nothing else. */
  readonly statusToken?: string | undefined;
  /** Count calls for Prometheus, at /metrics. Default: false. */
  readonly metrics?: boolean | undefined;
  /** Count who uses what, and what of it is deprecated, for mcp-portage report. Default: false. */
  readonly usage?: boolean | undefined;
  /** Write a line of JSON for each call to this file. */
  readonly auditFile?: string | undefined;
  /** Refuse calls while that file cannot be written. Default: false. */
  readonly auditRequired?: boolean | undefined;
}

/** What else may be said where a client comes on a pair of streams. */
export interface StreamOptions extends CommonOptions {
  /** Show only tools whose names fit this pattern, and let only those be called. */
  readonly includeTool?: string | readonly string[] | undefined;
  /** Hide tools whose names fit this pattern, and refuse to call them; wins over `includeTool`. */
  readonly excludeTool?: string | readonly string[] | undefined;
  /** Time for name resolution, TCP and TLS; 0: no limit. Default: 10s. */
  readonly connectTimeout?: Duration | undefined;
  /** Time until an answer begins; 0: no limit, as a call may be long. Default: 0. */
  readonly firstByteTimeout?: Duration | undefined;
  /** Silence allowed in a stream, keep-alive comments count as life; 0: no limit. Default: 0. */
  readonly idleTimeout?: Duration | undefined;
  /** Time for one HTTP request and all of its answer, however talkative; 0: no limit. Default: 0. */
  readonly callTimeout?: Duration | undefined;
  /** Ping a connection that was idle this long; 0: never. Default: 0. */
  readonly keepAlive?: Duration | undefined;
  /** Deepest nesting of arrays and objects in a client's message; at most 1000. Default: 1000. */
  readonly maxJsonDepth?: number | undefined;
  /** Silence allowed to one call (progress and questions to the user count as life); 0: no limit. Default: 5m. */
  readonly requestTimeout?: Duration | undefined;
  /** Time for one call in all, whatever progress it reports; 0: no limit. Default: 24h. */
  readonly maxCallTime?: Duration | undefined;
  /** Time running calls get to finish at shutdown; then server processes get as much to end. Default: 4s. */
  readonly shutdownGrace?: Duration | undefined;
  /** Count who uses what, and what of it is deprecated, for mcp-portage report. Default: false. */
  readonly usage?: boolean | undefined;
  /** Write a line of JSON for each call to this file. */
  readonly auditFile?: string | undefined;
  /** Refuse calls while that file cannot be written. Default: false. */
  readonly auditRequired?: boolean | undefined;
}
