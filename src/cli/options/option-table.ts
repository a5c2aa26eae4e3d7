/**
 * All options, one row each: what is said of it, its kind of value, its default, and where it applies. The command line,
 * the environment, configuration files, the library, help, completion, the manual page, the schema and the reference are
 * made from this table. A row is named like its field in files and in the library; the flag and the variable follow from
 * that name. `parse/` checks which values can be combined, and makes the configuration from them.
 */
import type { Target } from '../../config/server.ts';
import { HOSTS } from '../../snippet.ts';
import { flagOf, variableOf } from './option-names.ts';
import type { ReadingContext, ValueType } from './value-type.ts';
import {
  aggregate,
  allowedHost,
  assignment,
  baseUrl,
  callback,
  choice,
  clientDocument,
  count,
  directory,
  duration,
  endpointPath,
  file,
  fileMode,
  fileSize,
  forwardedHeader,
  header,
  hubPlace,
  issuer,
  jsonDepth,
  keyLocation,
  keySource,
  lease,
  listenedGrpc,
  listenedStream,
  listenHost,
  mappedHeader,
  named,
  namePattern,
  onOrOff,
  origin,
  ownOrigin,
  parameter,
  passwordPlace,
  period,
  port,
  positiveCount,
  positiveDuration,
  renaming,
  replaySpeed,
  resource,
  resultSize,
  scopes,
  size,
  socketPath,
  storePrefix,
  sunset,
  text,
  tokenEndpoint,
  tokenSource,
  toolText,
  watchedPath,
} from './value-types.ts';

/**
 * The commands for servers: `serve` them over HTTP, `connect` a stdio client to one, `probe` them, print a `snippet`
 * for hosts, `report` on their use, show it live in `top`, `view` the messages of a recording, `login` or `logout`,
 * accept changed tools with `pin`, and give `info` for a bug report.
 */
export const BRIDGE_VERBS = [
  'serve',
  'connect',
  'probe',
  'snippet',
  'report',
  'top',
  'view',
  'login',
  'logout',
  'pin',
  'info',
] as const;
export type BridgeVerb = (typeof BRIDGE_VERBS)[number];

/** The commands that use a server. */
export const USE_SERVERS = ['serve', 'connect', 'probe'] as const;
/** The commands that connect to a server, or log in there. */
const REACH_SERVERS = [...USE_SERVERS, 'login', 'logout'] as const;

/**
 * The places where an option may be set, apart from the command line and the environment: `process` at the top of a
 * file, `server` in the entry of a server or, for all servers, at the top, `one-server` in an entry alone, since for all
 * servers it would be a mistake and could disclose a credential to the wrong ones. An `entry` option has a key of its own
 * in the entry. A `call` option is for a single run of the program and belongs on the command line.
 */
export type OptionScope = 'process' | 'server' | 'one-server' | 'entry' | 'call';

/** The use of an option is limited to some commands, kinds of servers (all kinds if absent), and places in a file. */
export interface Application {
  readonly scope: OptionScope;
  readonly verbs: readonly BridgeVerb[];
  readonly targets?: readonly Target['kind'][] | undefined;
}

interface Group extends Application {
  /** The heading in the help. */
  readonly title: string;
}

/** A row adds this to its kind of value. It may apply elsewhere than its group does. */
interface RowDetails extends Partial<Application> {
  /** The default, as a user would write it. Absent: the option is not set by default. */
  readonly default?: string;
  /** A description of a default that depends on other settings, in place of `default`. */
  readonly defaultNote?: string;
  /** The effect of the `--no-` form, for a flag that is on by default. */
  readonly off?: string;
  /** The value of an option that is written without one. A value must then follow an equals sign: `--aggregate=search`. */
  readonly bare?: string;
}

/** A `flag` takes no value, and a `list` may be repeated. */
interface Row extends RowDetails {
  readonly kind: 'value' | 'flag' | 'list';
  readonly type: ValueType<unknown>;
  readonly describe: string;
}

function value<T, const D extends RowDetails>(type: ValueType<T>, describe: string, details?: D) {
  return { kind: 'value', type, describe, ...(details as D) } as const;
}

function list<T>(type: ValueType<T>, describe: string, details: RowDetails = {}) {
  return { kind: 'list', type, describe, ...details } as const;
}

/** A flag that is off by default. */
function flag(describe: string, details: Omit<RowDetails, 'default' | 'off'> = {}) {
  return { kind: 'flag', type: onOrOff, describe, default: 'false', ...details } as const;
}

/** A flag that is on by default: files and the library may set it, and the command line only ever switches it off. */
function flagThatIsOn(describe: string, off: string) {
  return { kind: 'flag', type: onOrOff, describe, default: 'true', off } as const;
}

/** The rows are checked where the groups are listed: a constraint here would widen the types of their values. */
function group<R>(head: Group, rows: R) {
  return { ...head, rows };
}

const SERVERS = group(
  { title: 'Configuration file', scope: 'call', verbs: ['serve', 'connect', 'probe', 'snippet', 'login', 'logout'] },
  {
    config: value(
      file,
      'Read the servers from this file; the configuration of Claude, Cursor, VS Code, Codex or another host works as it is',
    ),
    allowWritableConfig: flag('Accept that file even if other users can write to it, as in some containers'),
    strictConfig: flag('Refuse that file if the entry of any server is wrong, instead of leaving that server out'),
    aggregate: value(
      aggregate,
      'Serve the servers of a file also as one; with search, clients search for its tools instead of listing them',
      {
        bare: 'true',
        defaultNote: 'false; true for connect with several servers',
        scope: 'process',
        verbs: ['serve', 'connect', 'probe', 'snippet'],
      },
    ),
  },
);

const LISTEN = group(
  { title: 'Listening (serve)', scope: 'process', verbs: ['serve', 'snippet'] },
  {
    host: value(listenHost, 'Address to listen on', { default: '127.0.0.1' }),
    port: value(port, 'Port to listen on; 0 picks a free one', { default: '8000' }),
    socket: list(
      socketPath,
      'Serve HTTP at this Unix socket (on Windows a named pipe); in place of a port unless one is given as well',
    ),
    socketMode: value(fileMode, 'File mode of that socket, which decides who may connect', { default: '0600' }),
    stream: list(
      listenedStream,
      'Serve newline-delimited JSON at tcp://host:port or unix:///path, with name= before it if there are several servers',
    ),
    grpc: list(
      listenedGrpc,
      'Serve gRPC (mcp.transport.v1.Mcp) at host:port, with name= before it if there are several servers; in place of a port unless one is given as well',
    ),
    tlsCert: value(file, 'Serve https with this certificate chain (PEM file)'),
    tlsKey: value(file, 'Private key of the certificate (PEM file)'),
  },
);

const ENDPOINTS = group(
  { title: 'Endpoints (serve)', scope: 'process', verbs: ['serve', 'snippet'] },
  {
    path: value(endpointPath, 'Streamable HTTP endpoint', { default: '/mcp' }),
    sse: flagThatIsOn('Also serve HTTP+SSE, for older clients', 'Do not serve HTTP+SSE, for older clients'),
    ssePath: value(endpointPath, 'HTTP+SSE: where older clients open their stream', { default: '/sse' }),
    messagePath: value(endpointPath, 'HTTP+SSE: where older clients post messages', { default: '/messages' }),
    sunset: value(
      sunset,
      'Tell older clients that HTTP+SSE ends after this day (UTC) or at this time, then refuse them',
    ),
    afterSunset: value(choice('what', ['refuse', 'serve']), 'What happens to older clients after that date', {
      default: 'refuse',
    }),
    ws: flagThatIsOn('Also serve WebSocket', 'Do not serve WebSocket'),
    wsPath: value(endpointPath, 'WebSocket endpoint', { default: '/ws' }),
    baseUrl: value(baseUrl, 'Public URL of this process behind a reverse proxy, with its path prefix'),
  },
);

const ACCESS = group(
  { title: 'Access (serve)', scope: 'process', verbs: ['serve', 'snippet'] },
  {
    allowHost: list(allowedHost, 'Host name clients may use, besides loopback names and the listening address'),
    allowOrigin: list(origin, 'Web origin whose pages may call, by CORS'),
    allowAnonymous: flag(
      'Serve everybody who can reach the port, even from other machines; otherwise those must authenticate',
    ),
    authToken: list(
      named('name=source', tokenSource('authToken')),
      'Accept requests with the bearer token in env:NAME or file:path; alice=env:NAME also names its owner',
    ),
    authIssuer: value(issuer, 'Accept access tokens (JWT) of this OAuth issuer'),
    authAudience: list(named('audience', text), 'Audience those tokens must have', {
      defaultNote: 'its own URLs, if --base-url is given',
    }),
    authJwks: value(keyLocation, 'Keys of that issuer: a URL or a file', { defaultNote: "from the issuer's metadata" }),
    authScope: list(scopes, 'Scope those tokens must have'),
  },
);

const HUBS = group(
  { title: 'Calling hubs (serve)', scope: 'one-server', verbs: ['serve'] },
  {
    dial: list(
      hubPlace,
      'Connect to this WebSocket or MQTT URL and serve the clients there, as from behind a router; env:NAME or file:path holds a URL that contains a key or password',
    ),
    dialHeader: list(header, `Send this header to the hub; \${NAME} takes a value from the environment`),
    dialToken: value(tokenSource('dialToken'), 'Send the bearer token in env:NAME or file:path to the hub'),
    dialCa: value(file, 'Trust these certificate authorities of the hub (PEM file) instead of the built-in ones'),
  },
);

const CLUSTER = group(
  { title: 'Several replicas (serve)', scope: 'process', verbs: ['serve'] },
  {
    store: value(
      named('url', text),
      'Share sessions with other replicas through this Redis: redis://, rediss://, redis+sentinel:// or redis+cluster:// and its address',
    ),
    advertise: value(ownOrigin, 'URL at which the other replicas reach this one, such as http://10.0.0.5:8000'),
    clusterKey: value(
      keySource,
      'Where the secret of all replicas is; with several lines, the first key encrypts and all decrypt',
    ),
    storePrefix: value(storePrefix, 'Prefix of every key in Redis, so that other programs can share it', {
      default: 'mcp-portage:',
    }),
    storeCa: value(
      file,
      'Trust these certificate authorities for Redis over TLS (PEM file) instead of the built-in ones',
    ),
    storeClientCert: value(file, 'Client certificate to present to Redis (PEM file)'),
    storeClientKey: value(file, 'Private key of that certificate (PEM file)'),
    lease: value(lease, 'Silence of a replica after which others take over its sessions with remote servers', {
      default: '15s',
    }),
    clusterLimits: flag(
      'Limit sessions, calls of a caller without a session, and processes for all replicas together instead of for each',
    ),
  },
);

const PROTOCOL = group(
  { title: 'Every server: protocol and tools', scope: 'server', verbs: USE_SERVERS },
  {
    protocol: value(
      choice('era', ['auto', 'legacy', 'modern']),
      'Era of the protocol the server speaks; auto detects it',
      { default: 'auto' },
    ),
    includeTool: list(namePattern, 'Show only tools whose names match this pattern, and refuse calls to all others', {
      verbs: ['serve', 'connect'],
    }),
    excludeTool: list(
      namePattern,
      'Hide tools whose names match this pattern and refuse calls to them; wins over --include-tool',
      { verbs: ['serve', 'connect'] },
    ),
    renameTool: list(renaming, 'Show the tool that the server calls OLD to clients as NEW', {
      verbs: ['serve', 'connect'],
      scope: 'one-server',
    }),
    describeTool: list(toolText, 'Show clients this description of the tool that the server calls NAME', {
      verbs: ['serve', 'connect'],
      scope: 'one-server',
    }),
    pinTools: value(
      file,
      'Keep hashes of the tools in this file at first sight; hide tools that change or appear later until they are accepted',
      { verbs: ['serve', 'connect'] },
    ),
  },
);

const SERVER = group(
  { title: 'Servers started as a command', scope: 'server', verbs: USE_SERVERS, targets: ['command'] },
  {
    mapHeader: list(mappedHeader, "Pass this request header to the caller's own server process, as a variable", {
      verbs: ['serve'],
    }),
    cwd: value(directory, 'Working directory of the server', {
      defaultNote: 'the current directory',
      scope: 'one-server',
    }),
    env: list(assignment, 'Set a variable for the server; NAME alone passes on its current value', {
      scope: 'one-server',
    }),
    envFrom: list(file, 'Set the variables in this file for the server, one NAME=value per line; --env wins over it', {
      scope: 'entry',
    }),
    inheritEnv: flag('Pass the whole environment to the server, not just PATH, HOME and other harmless names'),
    watch: list(
      watchedPath,
      'Restart the server when this file, this folder or a file of this pattern changes; sessions go on',
      { verbs: ['serve', 'connect'] },
    ),
    pty: flag('Run the server on a pseudo-terminal, for servers that need one; requires the package @lydell/node-pty'),
  },
);

const REPLAY = group(
  { title: 'Recorded servers (replay:)', scope: 'server', verbs: USE_SERVERS, targets: ['replay'] },
  {
    replaySpeed: value(replaySpeed, 'Speed of a replayed server: 1 as recorded, 2 twice as fast; 0 answers at once', {
      default: '0',
    }),
  },
);

const REMOTE = group(
  { title: 'Remote servers (URL)', scope: 'server', verbs: REACH_SERVERS, targets: ['url'] },
  {
    transport: value(
      choice('name', ['auto', 'streamable-http', 'sse']),
      'Transport the server speaks; auto detects it',
      { default: 'auto' },
    ),
    header: list(header, `Send this header with every request; \${NAME} takes a value from the environment`, {
      targets: ['url', 'grpc'],
      scope: 'one-server',
    }),
    headerFile: value(file, 'Send the headers in this file, one per line; # starts a comment', {
      targets: ['url', 'grpc'],
      scope: 'one-server',
    }),
    bearerTokenFile: value(file, 'Send the bearer token in this file; it is read again when it changes', {
      targets: ['url', 'grpc'],
      scope: 'one-server',
    }),
    forwardHeader: list(
      forwardedHeader,
      "Pass this header of the client's requests on to the server, renamed if written as 'Name: Other'; no others are",
      { verbs: ['serve'], targets: ['url', 'grpc'] },
    ),
    user: value(named('name', text), 'User name for the broker of the server', {
      targets: ['mqtt'],
      scope: 'one-server',
    }),
    password: value(
      passwordPlace,
      'Where the password for the broker is: a variable, or a file that is read with each connection',
      {
        targets: ['mqtt'],
        scope: 'one-server',
      },
    ),
    ca: value(file, 'Trust these certificate authorities (PEM file) instead of the built-in ones', {
      targets: ['url', 'stream', 'grpc', 'mqtt'],
    }),
    clientCert: value(file, 'Client certificate to present to the server (PEM file)', {
      targets: ['url', 'stream', 'grpc', 'mqtt'],
      scope: 'one-server',
    }),
    clientKey: value(file, 'Private key of that certificate (PEM file)', {
      targets: ['url', 'stream', 'grpc', 'mqtt'],
      scope: 'one-server',
    }),
    connectTimeout: value(duration, 'Time for name resolution, TCP and TLS; 0: no limit', {
      default: '10s',
      verbs: ['serve', 'connect'],
      targets: ['url', 'stream', 'grpc', 'mqtt'],
    }),
    firstByteTimeout: value(duration, 'Time until a response begins; 0: no limit, since calls may be long', {
      default: '0',
      verbs: ['serve', 'connect'],
    }),
    idleTimeout: value(duration, 'Silence allowed in a stream; keep-alive comments count as activity; 0: no limit', {
      default: '0',
      verbs: ['serve', 'connect'],
    }),
    callTimeout: value(duration, 'Time for one HTTP request and its whole response; 0: no limit', {
      default: '0',
      verbs: ['serve', 'connect'],
    }),
    keepAlive: value(duration, 'Ping a connection that was idle this long; 0: never', {
      default: '0',
      verbs: ['serve', 'connect'],
      targets: ['url', 'stream', 'grpc'],
    }),
  },
);

const LOGIN = group(
  { title: 'Logging in to remote servers (URL)', scope: 'server', verbs: REACH_SERVERS, targets: ['url'] },
  {
    login: value(
      choice('when', ['on-demand', 'anew', 'never']),
      'When to log in (OAuth): if the server asks for it, the same after forgetting an earlier login, or never',
      { defaultNote: 'on-demand for connect; never for other commands, or with a token' },
    ),
    exchangeToken: flag(
      "Exchange each caller's token for one of the server, at --auth-issuer, as --oauth-client-id (RFC 8693)",
      { verbs: ['serve'] },
    ),
    oauthGrant: value(
      choice('grant', ['authorization-code', 'device-code', 'client-credentials', 'jwt-bearer']),
      'Way to log in: a user in a browser here, or with a code in any browser; the client itself; or a workload',
      { defaultNote: 'authorization-code; device-code where no browser opens and it is offered' },
    ),
    oauthClientId: value(
      named('id', text),
      'Client registered with the authorization server, in place of dynamic registration',
      { scope: 'one-server' },
    ),
    oauthSecretFile: value(file, 'File with the secret of that client', { scope: 'one-server' }),
    oauthClientKey: value(file, 'Private key the client authenticates with, in place of a secret (PEM file)', {
      scope: 'one-server',
    }),
    oauthClientDocument: value(
      clientDocument,
      'URL of your client ID metadata document, used where the server supports that',
    ),
    oauthAssertionFile: value(
      file,
      'File with the JWT of this workload for jwt-bearer, or with your ID token for --oauth-idp-issuer',
      { scope: 'one-server' },
    ),
    oauthIdpIssuer: value(
      issuer,
      'Identity provider of your company, which vouches for you at the authorization server',
    ),
    oauthIdpClientId: value(named('id', text), 'Client registered with that identity provider'),
    oauthIdpSecretFile: value(file, 'File with the secret of that client, if it has one'),
    oauthIssuer: value(issuer, 'The only authorization server to trust', { defaultNote: 'the one the server names' }),
    oauthTokenEndpoint: value(tokenEndpoint, 'Where the authorization server gives tokens', {
      defaultNote: 'what its metadata says',
    }),
    oauthAuthMethod: value(
      choice('method', ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt']),
      'How the client authenticates there',
      { defaultNote: 'one that the metadata offers', scope: 'one-server' },
    ),
    oauthAssumePkce: flag(
      'Log in at a server that does not announce PKCE, which is used all the same (Entra, Cognito)',
    ),
    oauthScope: list(scopes, 'Scope to ask for, in place of those the server names', { scope: 'one-server' }),
    oauthResource: value(resource, 'Resource to ask tokens for; none leaves it out (Entra)', {
      defaultNote: 'the server, as it names itself',
      scope: 'one-server',
    }),
    oauthToken: value(
      choice('token', ['access', 'id']),
      'Token to show the server; a few want the ID token in place of the access token',
      { default: 'access' },
    ),
    oauthParam: list(
      parameter,
      'Parameter to add to the request that begins a login, such as login_hint=me@example.com',
      { scope: 'one-server' },
    ),
    oauthCallback: value(callback, 'Where the browser returns to on this machine; port 0 picks a free one', {
      default: 'http://127.0.0.1:0/callback',
    }),
    oauthBrowser: flagThatIsOn(
      'Open the browser for a login; the address is logged either way',
      'Do not open the browser for a login; the address is logged either way',
    ),
    stateDir: value(directory, 'Where logins and counts are kept, readable only by you', {
      defaultNote: '~/.mcp-portage, or where the system keeps such files',
      verbs: ['serve', 'connect', 'probe', 'report', 'login', 'logout', 'info'],
      targets: ['command', 'url', 'stream', 'grpc', 'mqtt', 'replay'],
    }),
  },
);

const SESSIONS = group(
  { title: 'Sessions (serve)', scope: 'server', verbs: ['serve'] },
  {
    isolation: value(
      choice('mode', ['session', 'shared']),
      'One server process per client session, or one shared by all clients',
      { default: 'session', targets: ['command', 'stream', 'grpc', 'mqtt'] },
    ),
    prewarm: value(count, 'Server processes kept ready for the next sessions', { default: '0', targets: ['command'] }),
    sessionTimeout: value(
      positiveDuration,
      'End a session and its calls after this long without a request or an open stream',
      { default: '30m' },
    ),
    sessionIdleTimeout: value(positiveDuration, 'End a session this long after its last connection and its last call', {
      defaultNote: '5m if the client closed its stream or never returned, else --session-timeout',
    }),
    maxSessions: value(positiveCount, 'Sessions at a time; new ones replace abandoned ones', { default: '256' }),
    maxCallerSessions: value(
      positiveCount,
      'Sessions of one caller at a time; its new ones replace its abandoned ones',
      { defaultNote: 'half of --max-sessions with several named callers, else all' },
    ),
    poolSize: value(
      positiveCount,
      'Sessions of a legacy server shared by clients that have none; a call that may be asked something gets its own',
      { defaultNote: '16 if each is a process, else 256' },
    ),
    maxChildren: value(positiveCount, 'Server processes at a time, including those that are exiting', {
      defaultNote: 'twice --max-sessions plus --pool-size',
      targets: ['command'],
    }),
    pollAfter: value(
      duration,
      'Close a response stream after this long if the client can come back for the rest; 0: never',
      { default: '0' },
    ),
  },
);

const LIMITS = group(
  { title: 'Limits of sizes, numbers and times', scope: 'server', verbs: USE_SERVERS },
  {
    maxMessageBytes: value(
      size,
      'Largest message, in either direction; what connect sends its client is limited to 10m unless this is given',
      { default: '16m' },
    ),
    maxResultBytes: value(
      resultSize,
      'Cut longer texts in results of tools, and put a note in place of larger images, blobs and structured content; 0: no limit',
      { default: '0', verbs: ['serve', 'connect'] },
    ),
    maxJsonDepth: value(jsonDepth, "Deepest nesting of arrays and objects in a client's message; at most 1000", {
      default: '1000',
      verbs: ['serve', 'connect'],
    }),
    maxHeaderBytes: value(size, 'Largest head of a request: its request line and headers', {
      default: '16k',
      verbs: ['serve'],
      scope: 'process',
    }),
    maxInFlight: value(positiveCount, 'Unanswered calls of all clients together, subscriptions included', {
      default: '4096',
      verbs: ['serve'],
      scope: 'process',
    }),
    maxSessionInFlight: value(
      positiveCount,
      'Unanswered calls of one session, or of one named caller without sessions',
      { default: '1024', verbs: ['serve'] },
    ),
    maxSessionStreams: value(
      positiveCount,
      'Open event streams of one session; every call counts, since its response may become one',
      { default: '2048', verbs: ['serve'] },
    ),
    maxReplayBytes: value(size, 'Kept per session for clients that lost a connection and resume their stream', {
      default: '5m',
      verbs: ['serve'],
    }),
    maxParkedCalls: value(
      positiveCount,
      'Calls waiting for their clients to answer a question; as many tasks besides',
      { default: '1024', verbs: ['serve'] },
    ),
    maxParkedBytes: value(size, 'Memory for such calls and tasks; as much again for results nobody has fetched', {
      default: '64m',
      verbs: ['serve'],
    }),
    requestTimeout: value(
      duration,
      'Silence allowed to one call; progress and questions to the user count as activity; 0: no limit',
      { default: '5m', verbs: ['serve', 'connect'] },
    ),
    maxCallTime: value(duration, 'Total time for one call, whatever progress it reports; 0: no limit', {
      default: '24h',
      verbs: ['serve', 'connect'],
    }),
    hangTimeout: value(
      duration,
      'Time a shared server process gets to respond to a ping after a call to it timed out; 0: never ask',
      { default: '30s', verbs: ['serve'], targets: ['command'] },
    ),
    shutdownGrace: value(
      duration,
      'Time running calls get to finish at shutdown; server processes then get as long to exit',
      { default: '4s', verbs: ['serve', 'connect'], scope: 'process' },
    ),
  },
);

const OBSERVING = group(
  { title: 'Observing: status, metrics, usage, audit and recordings', scope: 'process', verbs: ['serve'] },
  {
    status: flagThatIsOn(
      'Show who is connected and what runs at /status, to callers who may see it',
      'Do not show who is connected and what runs at /status',
    ),
    statusToken: value(
      named('env:NAME|file:PATH', tokenSource('statusToken')),
      'Token that opens /status and /metrics, and nothing else',
      { verbs: ['serve', 'report', 'top', 'view'] },
    ),
    metrics: flag('Serve Prometheus metrics at /metrics'),
    usage: flag('Count who uses what, deprecated features included, for mcp-portage report', {
      verbs: ['serve', 'connect'],
    }),
    auditFile: value(file, 'Write one line of JSON per call to this file', { verbs: ['serve', 'connect'] }),
    auditRequired: flag('Refuse calls while the audit file cannot be written', { verbs: ['serve', 'connect'] }),
    record: value(file, 'Write each message to this file as a line of JSON, with secrets hidden', {
      verbs: ['serve', 'connect'],
    }),
    recordSecrets: flag('Keep tokens, passwords and keys in the recording instead of hiding them', {
      verbs: ['serve', 'connect'],
    }),
    recordMaxMessage: value(size, 'Cut larger messages in the recording and in the live feed', {
      default: '64k',
      verbs: ['serve', 'connect'],
    }),
    recordMaxSize: value(fileSize, 'Rename the recording to FILE.1 at this size and begin another; 0: no limit', {
      default: '100m',
      verbs: ['serve', 'connect'],
    }),
    inspect: flag('Show the messages of clients and servers live, to callers who may see the status'),
  },
);

const PROBE = group(
  { title: 'Reports (probe, report, view, info)', scope: 'call', verbs: ['probe'] },
  {
    json: flag('Print JSON, for programs', { verbs: ['probe', 'report', 'view', 'info'] }),
    timeout: value(positiveDuration, 'Time limit for the whole probe', {
      defaultNote: '15s; 2m for a command, 5m with a login',
    }),
  },
);

const PIN = group(
  { title: 'Pins of tools (pin)', scope: 'call', verbs: ['pin'] },
  {
    accept: value(file, 'Accept the tools that have changed or appeared since they were pinned in this file'),
  },
);

const REPORT = group(
  { title: 'Usage (report)', scope: 'call', verbs: ['report'] },
  {
    url: value(
      named('url', text),
      'Any URL of the running bridge to ask; without it, the counts in the state directory are read',
    ),
    all: flag(
      'Report on all replicas behind the address, including those that are gone, instead of the one that answers',
      { verbs: ['report', 'top'] },
    ),
    since: value(period, 'How far back the report looks', { default: '30d' }),
  },
);

const VIEW = group(
  { title: 'Recordings (view)', scope: 'call', verbs: ['view'] },
  {
    follow: flag('Go on with what is recorded from now on, also after a rotation'),
    errors: flag('Show only calls that did not succeed'),
    method: value(namePattern, "Show only calls of this method, such as 'tools/*'"),
    client: value(namePattern, 'Show only what clients of this name sent and got'),
    server: value(namePattern, 'Show only what servers of this name sent and got'),
    full: flag('Show all messages of each call, at both sides of the bridge'),
  },
);

const SNIPPET = group(
  { title: 'Snippets (snippet)', scope: 'call', verbs: ['snippet'] },
  {
    for: value(choice('host', HOSTS), 'The host to print the snippet for; all of them unless one is named'),
  },
);

const LOGGING = group(
  { title: 'Logging', scope: 'process', verbs: BRIDGE_VERBS },
  {
    logLevel: value(
      choice('level', ['trace', 'debug', 'info', 'warn', 'error', 'silent']),
      'How much to log to stderr',
      { defaultNote: 'info; warn for probe, login and logout' },
    ),
    logFormat: value(choice('format', ['pretty', 'json']), 'Log for people or for programs', {
      defaultNote: 'pretty on a terminal, else json',
    }),
  },
);

/** The groups in the order of the help, by the words that ask for them. Words that are commands too belong to those. */
export const OPTION_GROUPS = {
  config: SERVERS,
  listen: LISTEN,
  endpoints: ENDPOINTS,
  access: ACCESS,
  hubs: HUBS,
  cluster: CLUSTER,
  protocol: PROTOCOL,
  server: SERVER,
  replay: REPLAY,
  remote: REMOTE,
  oauth: LOGIN,
  sessions: SESSIONS,
  limits: LIMITS,
  observing: OBSERVING,
  probe: PROBE,
  report: REPORT,
  view: VIEW,
  pin: PIN,
  snippet: SNIPPET,
  logging: LOGGING,
} as const satisfies Readonly<Record<string, Group & { readonly rows: Readonly<Record<string, Row>> }>>;
export type OptionGroup = keyof typeof OPTION_GROUPS;

type Rows = (typeof SERVERS)['rows'] &
  (typeof LISTEN)['rows'] &
  (typeof ENDPOINTS)['rows'] &
  (typeof ACCESS)['rows'] &
  (typeof HUBS)['rows'] &
  (typeof CLUSTER)['rows'] &
  (typeof PROTOCOL)['rows'] &
  (typeof SERVER)['rows'] &
  (typeof REPLAY)['rows'] &
  (typeof REMOTE)['rows'] &
  (typeof LOGIN)['rows'] &
  (typeof SESSIONS)['rows'] &
  (typeof LIMITS)['rows'] &
  (typeof OBSERVING)['rows'] &
  (typeof PROBE)['rows'] &
  (typeof REPORT)['rows'] &
  (typeof VIEW)['rows'] &
  (typeof PIN)['rows'] &
  (typeof SNIPPET)['rows'] &
  (typeof LOGGING)['rows'];

export type OptionName = keyof Rows;

/** The value of an option: a list, or one value, which is undefined if it is not set and has no default. */
export type OptionValue<N extends OptionName> = ValueOf<Rows[N]>;
type ValueOf<R> = R extends { readonly kind: 'list'; readonly type: ValueType<infer T> }
  ? readonly T[]
  : R extends { readonly type: ValueType<infer T> }
    ? R extends { readonly default: string }
      ? T
      : T | undefined
    : never;

/** Texts by option as written on the command line, in order. The text of a flag is `true` or `false`. */
export type CommandLineOptions = ReadonlyMap<OptionName, readonly string[]>;

/** A row with all that follows from its name and its group. */
export interface Option extends Omit<Row, 'default' | 'defaultNote' | 'off' | 'bare'>, Application {
  readonly default: string | undefined;
  readonly defaultNote: string | undefined;
  readonly bare: string | undefined;
  readonly name: OptionName;
  readonly group: OptionGroup;
  /** `--max-sessions` */
  readonly flag: string;
  /** The form that help and completion offer: `--no-sse` for a flag that is on by default, else the same as `flag`. */
  readonly offered: string;
  /** Describes what `offered` does. */
  readonly effect: string;
  /** `MCP_PORTAGE_MAX_SESSIONS` */
  readonly variable: string;
  readonly scope: OptionScope;
  readonly verbs: readonly BridgeVerb[];
}

// Written member by member: at each start, spreading rows would take longer than all else that is done with this table.
export const OPTIONS: readonly Option[] = Object.entries(OPTION_GROUPS).flatMap(([group, { rows, ...head }]) =>
  Object.entries<Row>(rows).map(([name, row]) => ({
    kind: row.kind,
    type: row.type,
    describe: row.describe,
    default: row.default,
    defaultNote: row.defaultNote,
    bare: row.bare,
    scope: row.scope ?? head.scope,
    verbs: row.verbs ?? head.verbs,
    targets: row.targets ?? head.targets,
    name: name as OptionName,
    group: group as OptionGroup,
    flag: flagOf(name),
    offered: row.off === undefined ? flagOf(name) : flagOf(name).replace('--', '--no-'),
    effect: row.off ?? row.describe,
    variable: variableOf(name),
  })),
);

/** Returns the variable, for a flag with the value that changes its default: `MCP_PORTAGE_SSE=false`. */
export function writeVariable({ kind, variable, default: standard }: Option): string {
  return kind === 'flag' ? `${variable}=${standard !== 'true'}` : variable;
}

const byName: ReadonlyMap<string, Option> = new Map(OPTIONS.map((option) => [option.name, option]));

const byFlag: ReadonlyMap<string, Option> = new Map(OPTIONS.map((option) => [option.flag, option]));

export function optionOf(name: OptionName): Option {
  return byName.get(name) as Option; // every name is in the table
}

/** @param name any text, in camel case */
export function findOption(name: string): Option | undefined {
  return byName.get(name);
}

/** @param flag any text that begins with two hyphens */
export function findFlag(flag: string): Option | undefined {
  return byFlag.get(flag);
}

/** No default depends on the place where the program runs. */
const ANYWHERE: ReadingContext = {
  resolvePath: (path) => path,
  platform: 'linux',
  variables: 'expanded',
  nameOf: (name) => name,
};

const defaults: ReadonlyMap<string, unknown> = new Map(
  OPTIONS.flatMap(({ name, type, default: written }) => {
    if (written === undefined) return [];
    const read = type.read(written, ANYWHERE);
    if (!read.ok) throw new Error(`the default of ${name} cannot be read`);
    return [[name, read.value]];
  }),
);

/** Returns undefined if the option has no default, or one that depends on other settings. */
export function defaultOf(name: OptionName): unknown {
  return defaults.get(name);
}

/**
 * A variable without a corresponding option: other users can read command lines, and shells keep them in their history.
 */
export const BEARER_TOKEN_VARIABLE = 'MCP_PORTAGE_BEARER_TOKEN';
export const BEARER_TOKEN_NOTE = 'Bearer token to send; not an option, since other users can read command lines';

/** A variable without a corresponding option, for the same reasons as `BEARER_TOKEN_VARIABLE`. */
export const CLIENT_SECRET_VARIABLE = 'MCP_PORTAGE_OAUTH_CLIENT_SECRET';
export const CLIENT_SECRET_NOTE = 'Secret of that client; not an option, since other users can read command lines';

interface VariableSpec {
  readonly group: OptionGroup;
  readonly name: string;
  readonly note: string;
  readonly verbs: readonly BridgeVerb[];
}

/** Variables without a corresponding option, with the group that they are listed in. */
export const VARIABLES: readonly VariableSpec[] = [
  { group: 'remote', name: BEARER_TOKEN_VARIABLE, note: BEARER_TOKEN_NOTE, verbs: USE_SERVERS },
  { group: 'oauth', name: CLIENT_SECRET_VARIABLE, note: CLIENT_SECRET_NOTE, verbs: REACH_SERVERS },
];
