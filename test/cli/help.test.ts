import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { renderHelp } from '../../src/cli/help/help.ts';
import { GROUP_TOPICS, type HelpTopic, parseHelpTopic } from '../../src/cli/help/topic.ts';
import { isApplicable } from '../../src/cli/options/applicable.ts';
import { BRIDGE_VERBS, OPTION_GROUPS, OPTIONS, type Option } from '../../src/cli/options/option-table.ts';
import { ERROR_CODES } from '../../src/errors.ts';

const OVERVIEW_AT_80_COLUMNS = `mcp-portage joins any MCP client to any MCP server, over stdio, HTTP+SSE and
Streamable HTTP.

Usage
  mcp-portage -- <command> [args...]  Serve a stdio server over HTTP
  mcp-portage <url>                   Serve a remote server to every client
  mcp-portage --config <file>         Serve all servers of a file
  mcp-portage connect <url>           Connect a stdio client to a server
  mcp-portage probe <url>             Show what a server speaks

Common options
  --port <port>                       Port to listen on [8000]
  --env <NAME=value>                  Set or pass on a variable for the server
  --isolation <mode>                  One server process per session, or shared
  --auth-token <name=source>          Require a bearer token
  --log-level <level>                 How much to log to stderr [info]

More commands
  snippet        Print the configuration of a host for what is served
  report         Report who uses what, and whether HTTP+SSE can go
  top, view      Show a running bridge in the terminal, or recorded messages
  login, logout  Log in to a remote server ahead of time, and out again
  completion     Print a completion script for bash, zsh or fish

Help
  mcp-portage help <command>          Show a command and its most used options
  mcp-portage help groups|all         List the groups of options, or show all
  mcp-portage help <ERR_...>          Explain an error
`;

const OVERVIEW_AT_60_COLUMNS = `mcp-portage joins any MCP client to any MCP server, over
stdio, HTTP+SSE and Streamable HTTP.

Usage
  mcp-portage -- <command> [args...]
                    Serve a stdio server over HTTP
  mcp-portage <url>
                    Serve a remote server to every client
  mcp-portage --config <file>
                    Serve all servers of a file
  mcp-portage connect <url>
                    Connect a stdio client to a server
  mcp-portage probe <url>
                    Show what a server speaks

Common options
  --port <port>     Port to listen on [8000]
  --env <NAME=value>
                    Set or pass on a variable for the server
  --isolation <mode>
                    One server process per session, or
                    shared
  --auth-token <name=source>
                    Require a bearer token
  --log-level <level>
                    How much to log to stderr [info]

More commands
  snippet        Print the configuration of a host for what
                 is served
  report         Report who uses what, and whether HTTP+SSE
                 can go
  top, view      Show a running bridge in the terminal, or
                 recorded messages
  login, logout  Log in to a remote server ahead of time,
                 and out again
  completion     Print a completion script for bash, zsh or
                 fish

Help
  mcp-portage help <command>
                    Show a command and its most used options
  mcp-portage help groups|all
                    List the groups of options, or show all
  mcp-portage help <ERR_...>
                    Explain an error
`;

const HELP_AT_100_COLUMNS = `mcp-portage joins any MCP client to any MCP server, over stdio, HTTP+SSE and Streamable HTTP.

Usage
  mcp-portage [serve] [options] -- <command> [args...]  serve a stdio server over HTTP
  mcp-portage [serve] [options] <url>                   serve a remote server over HTTP
  mcp-portage [serve] --config <file> [options]         serve all servers of a file
  mcp-portage connect [options] <url>                   connect a stdio client to a remote server
  mcp-portage connect [options] -- <command> [args...]  connect a stdio client to a stdio server
  mcp-portage connect --config <file> [<name>...]       connect a stdio client to servers of a file,
                                                        several as one
  mcp-portage probe [options] <url>                     report on a remote server
  mcp-portage probe [options] -- <command> [args...]    report on a stdio server
  mcp-portage probe --config <file> [<name>...]         report on the servers of a file
  mcp-portage snippet [--for <host>] [<url>]            for the server at this address
  mcp-portage snippet [--for <host>] --config <file>    for all servers of a file
  mcp-portage report [--since <time>] [--url <url>]     report on who uses what
  mcp-portage top <url>                                 show who is connected and what runs
  mcp-portage view [options] <file>                     show what --record wrote to this file
  mcp-portage view [options] <url>                      follow a bridge that was started with
                                                        --inspect
  mcp-portage login [options] <url>                     log in to a remote server
  mcp-portage login --config <file> [<name>...]         log in to the servers of a file
  mcp-portage login --status                            list the logins that are kept
  mcp-portage logout [options] <url>                    forget the login for a remote server
  mcp-portage pin <file>                                show what is pinned, and what differs
  mcp-portage pin --accept <file> [<tool>...]           accept these tools, or all that differ
  mcp-portage info [--json]                             show versions, files of hosts, and where
                                                        state is kept
  mcp-portage completion bash|zsh|fish                  print a completion script for this shell
  mcp-portage help <command>                            show what a command does, and its most used
                                                        options
  mcp-portage help [<command>] <group>                  show a group of options
  mcp-portage help groups                               list the groups of options
  mcp-portage help <ERR_...>                            explain an error by its code
  mcp-portage help all                                  show everything

Configuration file
  --config <file>                      Read the servers from this file; the configuration of Claude,
                                       Cursor, VS Code, Codex or another host works as it is
  --allow-writable-config              Accept that file even if other users can write to it, as in
                                       some containers
  --strict-config                      Refuse that file if the entry of any server is wrong, instead
                                       of leaving that server out
  --aggregate[=<what>]                 Serve the servers of a file also as one; with search, clients
                                       search for its tools instead of listing them: true, search,
                                       false [false; true for connect with several servers]

Listening (serve)
  --host <address>                     Address to listen on [127.0.0.1]
  --port <port>                        Port to listen on; 0 picks a free one [8000]
  --socket <path>                      Serve HTTP at this Unix socket (on Windows a named pipe); in
                                       place of a port unless one is given as well (repeatable)
  --socket-mode <mode>                 File mode of that socket, which decides who may connect
                                       [0600]
  --stream <address>                   Serve newline-delimited JSON at tcp://host:port or
                                       unix:///path, with name= before it if there are several
                                       servers (repeatable)
  --grpc <address>                     Serve gRPC (mcp.transport.v1.Mcp) at host:port, with name=
                                       before it if there are several servers; in place of a port
                                       unless one is given as well (repeatable)
  --tls-cert <file>                    Serve https with this certificate chain (PEM file)
  --tls-key <file>                     Private key of the certificate (PEM file)

Endpoints (serve)
  --path <path>                        Streamable HTTP endpoint [/mcp]
  --no-sse                             Do not serve HTTP+SSE, for older clients
  --sse-path <path>                    HTTP+SSE: where older clients open their stream [/sse]
  --message-path <path>                HTTP+SSE: where older clients post messages [/messages]
  --sunset <date>                      Tell older clients that HTTP+SSE ends after this day (UTC) or
                                       at this time, then refuse them
  --after-sunset <what>                What happens to older clients after that date: refuse, serve
                                       [refuse]
  --no-ws                              Do not serve WebSocket
  --ws-path <path>                     WebSocket endpoint [/ws]
  --base-url <url>                     Public URL of this process behind a reverse proxy, with its
                                       path prefix

Access (serve)
  --allow-host <name>                  Host name clients may use, besides loopback names and the
                                       listening address (repeatable)
  --allow-origin <origin>              Web origin whose pages may call, by CORS (repeatable)
  --allow-anonymous                    Serve everybody who can reach the port, even from other
                                       machines; otherwise those must authenticate
  --auth-token <name=source>           Accept requests with the bearer token in env:NAME or
                                       file:path; alice=env:NAME also names its owner (repeatable)
  --auth-issuer <url>                  Accept access tokens (JWT) of this OAuth issuer
  --auth-audience <audience>           Audience those tokens must have (repeatable) [its own URLs,
                                       if --base-url is given]
  --auth-jwks <source>                 Keys of that issuer: a URL or a file [from the issuer's
                                       metadata]
  --auth-scope <scope>                 Scope those tokens must have (repeatable)

Calling hubs (serve)
  --dial <url>                         Connect to this WebSocket or MQTT URL and serve the clients
                                       there, as from behind a router; env:NAME or file:path holds a
                                       URL that contains a key or password (repeatable)
  --dial-header <Name: value>          Send this header to the hub; \${NAME} takes a value from the
                                       environment (repeatable)
  --dial-token <source>                Send the bearer token in env:NAME or file:path to the hub
  --dial-ca <file>                     Trust these certificate authorities of the hub (PEM file)
                                       instead of the built-in ones

Several replicas (serve)
  --store <url>                        Share sessions with other replicas through this Redis:
                                       redis://, rediss://, redis+sentinel:// or redis+cluster://
                                       and its address
  --advertise <url>                    URL at which the other replicas reach this one, such as
                                       http://10.0.0.5:8000
  --cluster-key <env:NAME|file:PATH>   Where the secret of all replicas is; with several lines, the
                                       first key encrypts and all decrypt
  --store-prefix <text>                Prefix of every key in Redis, so that other programs can
                                       share it [mcp-portage:]
  --store-ca <file>                    Trust these certificate authorities for Redis over TLS (PEM
                                       file) instead of the built-in ones
  --store-client-cert <file>           Client certificate to present to Redis (PEM file)
  --store-client-key <file>            Private key of that certificate (PEM file)
  --lease <duration>                   Silence of a replica after which others take over its
                                       sessions with remote servers [15s]
  --cluster-limits                     Limit sessions, calls of a caller without a session, and
                                       processes for all replicas together instead of for each

Every server: protocol and tools
  --protocol <era>                     Era of the protocol the server speaks; auto detects it: auto,
                                       legacy, modern [auto]
  --include-tool <glob>                Show only tools whose names match this pattern, and refuse
                                       calls to all others (repeatable)
  --exclude-tool <glob>                Hide tools whose names match this pattern and refuse calls to
                                       them; wins over --include-tool (repeatable)
  --rename-tool <OLD=NEW>              Show the tool that the server calls OLD to clients as NEW
                                       (repeatable)
  --describe-tool <NAME=TEXT>          Show clients this description of the tool that the server
                                       calls NAME (repeatable)
  --pin-tools <file>                   Keep hashes of the tools in this file at first sight; hide
                                       tools that change or appear later until they are accepted

Servers started as a command
  --map-header <Name=VARIABLE>         Pass this request header to the caller's own server process,
                                       as a variable (repeatable)
  --cwd <directory>                    Working directory of the server [the current directory]
  --env <NAME=value>                   Set a variable for the server; NAME alone passes on its
                                       current value (repeatable)
  --env-from <file>                    Set the variables in this file for the server, one NAME=value
                                       per line; --env wins over it (repeatable)
  --inherit-env                        Pass the whole environment to the server, not just PATH, HOME
                                       and other harmless names
  --watch <path|glob>                  Restart the server when this file, this folder or a file of
                                       this pattern changes; sessions go on (repeatable)
  --pty                                Run the server on a pseudo-terminal, for servers that need
                                       one; requires the package @lydell/node-pty

Recorded servers (replay:)
  --replay-speed <factor>              Speed of a replayed server: 1 as recorded, 2 twice as fast; 0
                                       answers at once [0]

Remote servers (URL)
  --transport <name>                   Transport the server speaks; auto detects it: auto,
                                       streamable-http, sse [auto]
  --header <Name: value>               Send this header with every request; \${NAME} takes a value
                                       from the environment (repeatable)
  --header-file <file>                 Send the headers in this file, one per line; # starts a
                                       comment
  --bearer-token-file <file>           Send the bearer token in this file; it is read again when it
                                       changes
  --forward-header <name>              Pass this header of the client's requests on to the server,
                                       renamed if written as 'Name: Other'; no others are
                                       (repeatable)
  --user <name>                        User name for the broker of the server
  --password <env:NAME|file:PATH>      Where the password for the broker is: a variable, or a file
                                       that is read with each connection
  --ca <file>                          Trust these certificate authorities (PEM file) instead of the
                                       built-in ones
  --client-cert <file>                 Client certificate to present to the server (PEM file)
  --client-key <file>                  Private key of that certificate (PEM file)
  --connect-timeout <duration>         Time for name resolution, TCP and TLS; 0: no limit [10s]
  --first-byte-timeout <duration>      Time until a response begins; 0: no limit, since calls may be
                                       long [0]
  --idle-timeout <duration>            Silence allowed in a stream; keep-alive comments count as
                                       activity; 0: no limit [0]
  --call-timeout <duration>            Time for one HTTP request and its whole response; 0: no limit
                                       [0]
  --keep-alive <duration>              Ping a connection that was idle this long; 0: never [0]
  MCP_PORTAGE_BEARER_TOKEN             Bearer token to send; not an option, since other users can
                                       read command lines

Logging in to remote servers (URL)
  --login <when>                       When to log in (OAuth): if the server asks for it, the same
                                       after forgetting an earlier login, or never: on-demand, anew,
                                       never [on-demand for connect; never for other commands, or
                                       with a token]
  --exchange-token                     Exchange each caller's token for one of the server, at
                                       --auth-issuer, as --oauth-client-id (RFC 8693)
  --oauth-grant <grant>                Way to log in: a user in a browser here, or with a code in
                                       any browser; the client itself; or a workload:
                                       authorization-code, device-code, client-credentials,
                                       jwt-bearer [authorization-code; device-code where no browser
                                       opens and it is offered]
  --oauth-client-id <id>               Client registered with the authorization server, in place of
                                       dynamic registration
  --oauth-secret-file <file>           File with the secret of that client
  --oauth-client-key <file>            Private key the client authenticates with, in place of a
                                       secret (PEM file)
  --oauth-client-document <url>        URL of your client ID metadata document, used where the
                                       server supports that
  --oauth-assertion-file <file>        File with the JWT of this workload for jwt-bearer, or with
                                       your ID token for --oauth-idp-issuer
  --oauth-idp-issuer <url>             Identity provider of your company, which vouches for you at
                                       the authorization server
  --oauth-idp-client-id <id>           Client registered with that identity provider
  --oauth-idp-secret-file <file>       File with the secret of that client, if it has one
  --oauth-issuer <url>                 The only authorization server to trust [the one the server
                                       names]
  --oauth-token-endpoint <url>         Where the authorization server gives tokens [what its
                                       metadata says]
  --oauth-auth-method <method>         How the client authenticates there: none,
                                       client_secret_basic, client_secret_post, private_key_jwt [one
                                       that the metadata offers]
  --oauth-assume-pkce                  Log in at a server that does not announce PKCE, which is used
                                       all the same (Entra, Cognito)
  --oauth-scope <scope>                Scope to ask for, in place of those the server names
                                       (repeatable)
  --oauth-resource <uri>               Resource to ask tokens for; none leaves it out (Entra) [the
                                       server, as it names itself]
  --oauth-token <token>                Token to show the server; a few want the ID token in place of
                                       the access token: access, id [access]
  --oauth-param <name=value>           Parameter to add to the request that begins a login, such as
                                       login_hint=me@example.com (repeatable)
  --oauth-callback <url>               Where the browser returns to on this machine; port 0 picks a
                                       free one [http://127.0.0.1:0/callback]
  --no-oauth-browser                   Do not open the browser for a login; the address is logged
                                       either way
  --state-dir <directory>              Where logins and counts are kept, readable only by you
                                       [~/.mcp-portage, or where the system keeps such files]
  MCP_PORTAGE_OAUTH_CLIENT_SECRET      Secret of that client; not an option, since other users can
                                       read command lines

Sessions (serve)
  --isolation <mode>                   One server process per client session, or one shared by all
                                       clients: session, shared [session]
  --prewarm <count>                    Server processes kept ready for the next sessions [0]
  --session-timeout <duration>         End a session and its calls after this long without a request
                                       or an open stream [30m]
  --session-idle-timeout <duration>    End a session this long after its last connection and its
                                       last call [5m if the client closed its stream or never
                                       returned, else --session-timeout]
  --max-sessions <count>               Sessions at a time; new ones replace abandoned ones [256]
  --max-caller-sessions <count>        Sessions of one caller at a time; its new ones replace its
                                       abandoned ones [half of --max-sessions with several named
                                       callers, else all]
  --pool-size <count>                  Sessions of a legacy server shared by clients that have none;
                                       a call that may be asked something gets its own [16 if each
                                       is a process, else 256]
  --max-children <count>               Server processes at a time, including those that are exiting
                                       [twice --max-sessions plus --pool-size]
  --poll-after <duration>              Close a response stream after this long if the client can
                                       come back for the rest; 0: never [0]

Limits of sizes, numbers and times
  --max-message-bytes <size>           Largest message, in either direction; what connect sends its
                                       client is limited to 10m unless this is given [16m]
  --max-result-bytes <size>            Cut longer texts in results of tools, and put a note in place
                                       of larger images, blobs and structured content; 0: no limit
                                       [0]
  --max-json-depth <levels>            Deepest nesting of arrays and objects in a client's message;
                                       at most 1000 [1000]
  --max-header-bytes <size>            Largest head of a request: its request line and headers [16k]
  --max-in-flight <count>              Unanswered calls of all clients together, subscriptions
                                       included [4096]
  --max-session-in-flight <count>      Unanswered calls of one session, or of one named caller
                                       without sessions [1024]
  --max-session-streams <count>        Open event streams of one session; every call counts, since
                                       its response may become one [2048]
  --max-replay-bytes <size>            Kept per session for clients that lost a connection and
                                       resume their stream [5m]
  --max-parked-calls <count>           Calls waiting for their clients to answer a question; as many
                                       tasks besides [1024]
  --max-parked-bytes <size>            Memory for such calls and tasks; as much again for results
                                       nobody has fetched [64m]
  --request-timeout <duration>         Silence allowed to one call; progress and questions to the
                                       user count as activity; 0: no limit [5m]
  --max-call-time <duration>           Total time for one call, whatever progress it reports; 0: no
                                       limit [24h]
  --hang-timeout <duration>            Time a shared server process gets to respond to a ping after
                                       a call to it timed out; 0: never ask [30s]
  --shutdown-grace <duration>          Time running calls get to finish at shutdown; server
                                       processes then get as long to exit [4s]

Observing: status, metrics, usage, audit and recordings
  --no-status                          Do not show who is connected and what runs at /status
  --status-token <env:NAME|file:PATH>  Token that opens /status and /metrics, and nothing else
  --metrics                            Serve Prometheus metrics at /metrics
  --usage                              Count who uses what, deprecated features included, for
                                       mcp-portage report
  --audit-file <file>                  Write one line of JSON per call to this file
  --audit-required                     Refuse calls while the audit file cannot be written
  --record <file>                      Write each message to this file as a line of JSON, with
                                       secrets hidden
  --record-secrets                     Keep tokens, passwords and keys in the recording instead of
                                       hiding them
  --record-max-message <size>          Cut larger messages in the recording and in the live feed
                                       [64k]
  --record-max-size <size>             Rename the recording to FILE.1 at this size and begin
                                       another; 0: no limit [100m]
  --inspect                            Show the messages of clients and servers live, to callers who
                                       may see the status

Reports (probe, report, view, info)
  --json                               Print JSON, for programs
  --timeout <duration>                 Time limit for the whole probe [15s; 2m for a command, 5m
                                       with a login]

Usage (report)
  --url <url>                          Any URL of the running bridge to ask; without it, the counts
                                       in the state directory are read
  --all                                Report on all replicas behind the address, including those
                                       that are gone, instead of the one that answers
  --since <duration>                   How far back the report looks [30d]

Recordings (view)
  --follow                             Go on with what is recorded from now on, also after a
                                       rotation
  --errors                             Show only calls that did not succeed
  --method <glob>                      Show only calls of this method, such as 'tools/*'
  --client <glob>                      Show only what clients of this name sent and got
  --server <glob>                      Show only what servers of this name sent and got
  --full                               Show all messages of each call, at both sides of the bridge

Pins of tools (pin)
  --accept <file>                      Accept the tools that have changed or appeared since they
                                       were pinned in this file

Snippets (snippet)
  --for <host>                         The host to print the snippet for; all of them unless one is
                                       named: claude-code, claude-desktop, cursor, vscode, windsurf,
                                       gemini, codex, copilot-cli, opencode

Logging
  --log-level <level>                  How much to log to stderr: trace, debug, info, warn, error,
                                       silent [info; warn for probe, login and logout]
  --log-format <format>                Log for people or for programs: pretty, json [pretty on a
                                       terminal, else json]

Other
  -h, --help                           Show help on the command
  -v, --version                        Show the version

Examples
  mcp-portage -- npx -y @modelcontextprotocol/server-filesystem .
                                                            serve the files of this directory
  mcp-portage --isolation shared -- node server.js          one server process for all clients
  mcp-portage --port 9000 --env KEY -- uvx mcp-server-time  pass one variable to the server
  mcp-portage https://old.example/sse                       let new clients use an old server
  mcp-portage --config .mcp.json                            serve what Claude Code uses here
  mcp-portage --config .mcp.json --aggregate                the same, with one address for all
  mcp-portage connect https://example.com/mcp               for a client that only speaks stdio
  mcp-portage connect --bearer-token-file token https://example.com/mcp
                                                            the same, with a bearer token
  mcp-portage probe --json https://example.com/mcp          the report for scripts
  mcp-portage snippet --for cursor http://127.0.0.1:8000/mcp
                                                            for the settings of Cursor
  mcp-portage report --since 30d --json                     for scripts; exits with 0 when HTTP+SSE
                                                            can go
  mcp-portage view --errors session.jsonl                   what went wrong
  mcp-portage view --full --method 'tools/*' session.jsonl  calls of tools with all messages

Every option can come from the environment: --max-sessions is MCP_PORTAGE_MAX_SESSIONS, --no-sse is
MCP_PORTAGE_SSE=false; lists are separated by commas, headers by line breaks. Durations are 500ms,
30s, 5m or 2h, a bare number is seconds. Sizes are 64k or 16m, a bare number is bytes.
`;

const OVERVIEW: HelpTopic = { kind: 'overview' };
const ALL: HelpTopic = { kind: 'all' };

/** Every page there is. */
const TOPICS: readonly HelpTopic[] = [
  OVERVIEW,
  ALL,
  ...BRIDGE_VERBS.map((verb) => ({ kind: 'verb', verb }) as const),
  { kind: 'groups' },
  { kind: 'error', code: 'ERR_UPSTREAM_AUTH' },
  ...GROUP_TOPICS.map((group) => ({ kind: 'group', group, verb: undefined }) as const),
];

const help = (columns: number, topic: HelpTopic = ALL) => renderHelp({ topic, columns, color: false });

const parseTopic = (...words: readonly string[]): HelpTopic => parseHelpTopic(words);

const showsOption = (text: string, { offered }: Option) => new RegExp(`^  ${offered}\\b(?!-)`, 'm').test(text);

const asPattern = (text: string) => text.replaceAll(/[()]/g, '\\$&');

const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length));

test('the overview is this, on one screen', (t) => {
  t.is(help(80, OVERVIEW), OVERVIEW_AT_80_COLUMNS);
  t.true(OVERVIEW_AT_80_COLUMNS.split('\n').length <= 29);
});

test('the overview folds in a narrow terminal', (t) => {
  t.is(help(60, OVERVIEW), OVERVIEW_AT_60_COLUMNS);
});

test('the help on everything is this', (t) => {
  t.is(help(100), HELP_AT_100_COLUMNS);
});

test('the help names every option', (t) => {
  for (const option of OPTIONS) t.true(showsOption(help(100), option), option.name);
});

test('the help says why the token is no option', (t) => {
  const unfolded = help(100).replace(/\n {10,}/g, ' ');
  t.regex(unfolded, /^ {2}MCP_PORTAGE_BEARER_TOKEN .*not an option, since other users can read command lines$/m);
});

for (const verb of BRIDGE_VERBS) {
  test(`the help of ${verb} leads with its own options, and names the groups of all others`, (t) => {
    const text = help(110, { kind: 'verb', verb });
    t.regex(text, new RegExp(`^mcp-portage ${verb}: `));
    const groups = / <group>, for (.*)$/.exec(text.replaceAll(/\s+/g, ' ').trim())?.[1]?.split(', ') ?? [];
    for (const option of OPTIONS) {
      const isThere = showsOption(text, option);
      if (!isApplicable(option, { verb, target: 'any' })) t.false(isThere, option.name);
      else t.true(isThere || groups.includes(option.group), option.name);
    }
    const own = OPTIONS.filter((option) => showsOption(text, option));
    t.true(own.length > 0);
    for (const group of groups) {
      t.true(
        OPTIONS.some((option) => option.group === group && option.verbs.includes(verb) && !own.includes(option)),
        group,
      );
    }
  });
}

test('the help of snippet and that of probe fit on a screen of 24 lines, with the next prompt below', (t) => {
  for (const verb of ['snippet', 'probe'] as const)
    t.true(help(80, { kind: 'verb', verb }).split('\n').length <= 24, verb);
});

test('the help of a verb is the same as its --help', (t) => {
  for (const verb of BRIDGE_VERBS) {
    t.deepEqual(parseCommandLine(['help', verb]), parseCommandLine([verb, '--help']));
    t.deepEqual(parseCommandLine(['help', verb]), parseCommandLine([verb, '-h', 'https://example.com/mcp']));
  }
});

test('the groups are listed with what they are about', (t) => {
  const text = help(80, { kind: 'groups' });
  for (const group of GROUP_TOPICS)
    t.regex(text, new RegExp(`^  ${group} +${asPattern(OPTION_GROUPS[group].title)}$`, 'm'));
});

test('every group has a page, unless a command of its name has all of its options', (t) => {
  for (const [group, verb] of [
    ['probe', 'probe'],
    ['report', 'report'],
    ['view', 'view'],
    ['pin', 'pin'],
    ['snippet', 'snippet'],
  ] as const) {
    t.false(GROUP_TOPICS.includes(group));
    const text = help(100, { kind: 'verb', verb });
    for (const option of OPTIONS.filter((each) => each.group === group)) t.true(showsOption(text, option), option.name);
  }
  t.is(GROUP_TOPICS.length, Object.keys(OPTION_GROUPS).length - 5);
});

test('the help of a group names only what the command takes that stands before it', (t) => {
  const text = help(100, parseTopic('probe', 'remote'));
  t.true(text.includes('  --header <'));
  t.true(text.includes('  MCP_PORTAGE_BEARER_TOKEN '));
  t.false(text.includes('--forward-header'));
  t.false(help(100, parseTopic('login', 'remote')).includes('MCP_PORTAGE_BEARER_TOKEN'));
  t.is(help(100, parseTopic('top', 'hubs')), 'mcp-portage top takes no options of the group hubs.\n');
});

test('the help on every error has its heading and whole sentences, without the marks of Markdown', (t) => {
  for (const code of Object.keys(ERROR_CODES)) {
    const text = help(80, parseTopic(code));
    t.regex(text, new RegExp(`^${code}\n\nSeen as: .+\n\n[A-Z][^]+[.)]\n$`), code);
    t.notRegex(text, /`|\*\*|\]\(|^#|^\|/m, code);
    t.true(widest(text) <= 80, code);
  }
});

test('a list in the help on an error keeps its items apart', (t) => {
  const text = help(80, parseTopic('ERR_UPSTREAM_AUTH'));
  t.regex(
    text,
    /\n- Nobody logged in within four minutes\. [^\n]+\n {2}next call asks again\.\n- A code has to be entered/,
  );
});

test('a topic that does not exist is refused, with the nearest one', (t) => {
  t.throws(() => parseTopic('limit'), { message: /^There is no help on "limit"\. Did you mean limits\? Topics are / });
  t.throws(() => parseTopic('serve', 'acess'), { message: /^There is no help on "acess"\. Did you mean access\? / });
});

test('the help of a group has its options and no others', (t) => {
  for (const group of GROUP_TOPICS) {
    const text = help(100, { kind: 'group', group, verb: undefined });
    t.true(text.startsWith(`${OPTION_GROUPS[group].title}\n`));
    for (const option of OPTIONS) t.is(showsOption(text, option), option.group === group, option.name);
  }
});

test('the commands of the help are accepted', (t) => {
  const commands = `${help(110)}${help(80, OVERVIEW)}`.match(/^ {2}mcp-portage .*?(?= {2,}|$)/gm) ?? [];
  const examples = commands.filter((command) => !/[[<|]/.test(command)).map((command) => command.trim().split(' '));
  t.true(examples.length >= 5);
  for (const [, ...argv] of examples) {
    const own = argv[0] === 'help' || argv[0] === 'view' ? argv[0] : 'bridge';
    const kind = argv.includes('--status') ? 'logins' : own;
    t.is(parseCommandLine(argv).kind, kind, argv.join(' '));
  }
});

test('the help fits narrow terminals and does not sprawl over wide ones', (t) => {
  for (const topic of TOPICS) {
    const title = JSON.stringify(topic);
    t.true(widest(help(60, topic)) <= 60, title);
    t.true(widest(help(80, topic)) <= 80, title);
    t.true(widest(help(300, topic)) <= 110, title);
    t.notThrows(() => help(0, topic));
  }
  t.true(widest(help(300, OVERVIEW)) <= 80);
});

test('colors change nothing but the looks', (t) => {
  for (const topic of TOPICS) {
    const colored = renderHelp({ topic, columns: 80, color: true });
    t.true(colored.includes('\u001b[1m'), JSON.stringify(topic));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colors are control characters.
    t.is(colored.replaceAll(/\u001b\[\d+m/g, ''), help(80, topic));
  }
});
