import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { renderHelp } from '../../src/cli/help.ts';
import { isApplicable } from '../../src/cli/options/given-options.ts';
import { BRIDGE_VERBS, type OptionSpec } from '../../src/cli/options/option-spec.ts';
import { OPTIONS } from '../../src/cli/options/option-table.ts';

const HELP_AT_100_COLUMNS = `mcp-portage joins any MCP client to any MCP server, over stdio, HTTP+SSE and Streamable HTTP.

Usage
  mcp-portage [serve] [options] -- <command> [args...]  serve a stdio server over HTTP
  mcp-portage [serve] [options] <url>                   serve a remote server over HTTP
  mcp-portage [serve] --config <file> [options]         serve all servers of a file
  mcp-portage connect [options] <url>                   connect a stdio client to a remote server
  mcp-portage connect [options] -- <command> [args...]  connect a stdio client to a stdio server
  mcp-portage connect --config <file> <name>            connect a stdio client to a server of a file
  mcp-portage probe [options] <url>                     report on a remote server
  mcp-portage probe [options] -- <command> [args...]    report on a stdio server
  mcp-portage probe --config <file> [<name>...]         report on the servers of a file
  mcp-portage snippet --for <host> [<url>]              for the server at this address
  mcp-portage snippet --for <host> --config <file>      for all servers of a file
  mcp-portage report [--since <time>] [--url <url>]     report on who uses what
  mcp-portage top <url>                                 show who is connected and what runs
  mcp-portage completion bash|zsh                       for source <(...): options by the Tab key
  mcp-portage help <verb>                               only what is about this verb

Several servers
  --config <file>                      Take the servers from this file: that of Claude, Cursor, VS
                                       Code, Codex or another host, as it is
  --[no-]allow-writable-config         Take that file although others may write it, as in containers

Listening (serve)
  --host <address>                     Address to listen on [127.0.0.1]
  --port <port>                        Port to listen on; 0 picks a free one [8000]
  --tls-cert <file>                    Serve https with this certificate chain (PEM file)
  --tls-key <file>                     Private key of the certificate (PEM file)

Endpoints (serve)
  --path <path>                        Streamable HTTP endpoint [/mcp]
  --[no-]sse                           Serve HTTP+SSE, too, for old clients
  --sse-path <path>                    HTTP+SSE: the stream old clients open [/sse]
  --message-path <path>                HTTP+SSE: where old clients post [/messages]
  --sunset <date>                      Tell old clients that HTTP+SSE ends with this day (UTC) or at
                                       this time, and refuse them afterwards
  --after-sunset <what>                What old clients get after that date: refuse, serve [refuse]
  --base-url <url>                     How clients reach this process through a reverse proxy, with
                                       its path prefix

Access (serve)
  --allow-host <name>                  Host name clients may use, besides loopback names and the
                                       listening address (repeatable)
  --allow-origin <origin>              Web origin whose pages may call, with CORS (repeatable)
  --[no-]allow-anonymous               Let in whoever reaches the port, also beyond this machine;
                                       without it, that takes authentication
  --auth-token <name=source>           Let in who shows this token: where it is, env:NAME or
                                       file:path, and optionally whose, as in alice=env:NAME
                                       (repeatable)
  --auth-issuer <url>                  Let in who shows an access token (JWT) of this OAuth issuer
  --auth-audience <audience>           What this server is called in such a token (repeatable) [its
                                       URLs, if --base-url is given]
  --auth-jwks <source>                 The issuer's keys, a URL or a file [where the issuer's
                                       metadata says]
  --auth-scope <scope>                 A scope such a token needs (repeatable)

The server
  --protocol <era>                     Era of the protocol the server speaks; auto finds out: auto,
                                       legacy, modern [auto]
  --include-tool <glob>                Show only tools whose names fit this pattern, and let only
                                       those be called (repeatable)
  --exclude-tool <glob>                Hide tools whose names fit this pattern, and refuse to call
                                       them; wins over --include-tool (repeatable)

The wrapped server (command)
  --map-header <Name=VARIABLE>         Tell a caller's own server process what this header of its
                                       requests says, as a variable (repeatable)
  --cwd <directory>                    Working directory of the server [the current one]
  --env <NAME=value>                   Set a variable for the server; NAME alone copies it from here
                                       (repeatable)
  --[no-]inherit-env                   Give the server this whole environment, not just PATH, HOME
                                       and other harmless names
  --[no-]pty                           Run the server on a pseudo-terminal, for servers that need
                                       one

The remote server (URL)
  --transport <name>                   How the server is spoken to; auto finds out: auto,
                                       streamable-http, sse [auto]
  --header <Name: value>               Send this header with every request; \${NAME} takes a value
                                       from the environment (repeatable)
  --header-file <file>                 Headers in a file, one a line; # starts a comment
  --bearer-token-file <file>           Send the token in this file as a credential; read again when
                                       it changes
  --forward-header <name>              Let this header of the client's own requests pass to the
                                       server; no other does (repeatable)
  --ca <file>                          Trust these authorities (PEM file) instead of the built-in
                                       ones
  --client-cert <file>                 Certificate to show to the server (PEM file)
  --client-key <file>                  Private key of that certificate (PEM file)
  --connect-timeout <duration>         Time for name resolution, TCP and TLS; 0: no limit [10s]
  --first-byte-timeout <duration>      Time until an answer begins; 0: no limit, as a call may be
                                       long [0]
  --idle-timeout <duration>            Silence allowed in a stream, keep-alive comments count as
                                       life; 0: no limit [0]
  --call-timeout <duration>            Time for one HTTP request and all of its answer, however
                                       talkative; 0: no limit [0]
  --keep-alive <duration>              Ping a connection that was idle this long; 0: never [0]
  MCP_PORTAGE_BEARER_TOKEN             Send this token as a credential; not an option, since other
                                       users can read command lines

Logging in at the remote server (URL)
  --login <when>                       Log in when the server asks for it (OAuth), also forgetting
                                       an earlier login first, or not at all: on-demand, anew, never
                                       [on-demand for connect, never for the others or with a token]
  --oauth-grant <grant>                Who logs in: a user with a browser, or the client in its own
                                       name: authorization-code, client-credentials
                                       [authorization-code]
  --oauth-client-id <id>               A client that the authorization server knows, instead of one
                                       registered on the way
  --oauth-secret-file <file>           The secret of that client, in a file
  --oauth-client-key <file>            Private key that the client proves itself with instead of a
                                       secret (PEM file)
  --oauth-client-document <url>        Where a document of yours describes the client; used where
                                       that is supported
  --oauth-issuer <url>                 The only authorization server to trust [whichever the server
                                       names]
  --oauth-scope <scope>                A scope to ask for instead of those that the server names
                                       (repeatable)
  --oauth-callback <url>               Where the browser comes back to on this machine; port 0 picks
                                       a free one [http://127.0.0.1:0/callback]
  --[no-]oauth-browser                 Open the browser for a login; the address to open is in the
                                       log either way
  --state-dir <directory>              Where logins and counts are kept, readable for you alone
                                       [~/.mcp-portage, or where the system keeps such things]
  MCP_PORTAGE_OAUTH_CLIENT_SECRET      The secret of that client; not an option, since other users
                                       can read command lines

Sessions (serve)
  --isolation <mode>                   One server process per client session, or one shared by all:
                                       session, shared [session]
  --prewarm <count>                    Server processes kept started ahead of the next sessions [0]
  --session-timeout <duration>         End a session after this long without a request or an open
                                       stream, calls included [30m]
  --session-idle-timeout <duration>    End a session this long after its last connection and call
                                       [5m where the client closed its stream or never returned,
                                       else --session-timeout]
  --max-sessions <count>               Most sessions at a time; abandoned ones make room for new
                                       ones [256]
  --max-caller-sessions <count>        Most sessions of one caller at a time; its own abandoned ones
                                       make room [half of --max-sessions where callers have several
                                       names, else all]
  --pool-size <count>                  Sessions of a legacy server kept for clients that have none;
                                       a call that can be asked something has one to itself [16 if
                                       each is a process, else 256]
  --max-children <count>               Start no further server processes beyond this many, those
                                       that are ending included [twice --max-sessions, and
                                       --pool-size]
  --poll-after <duration>              Close a stream this old where the client can come back for
                                       the rest; 0: never [0]

Limits
  --max-message-bytes <size>           Largest single message, either way [16m]
  --max-json-depth <levels>            Deepest nesting of arrays and objects in a client's message;
                                       at most 1000 [1000]
  --max-header-bytes <size>            Largest head of a request: its line and all of its headers
                                       [16k]
  --max-in-flight <count>              Unanswered calls of all clients together; subscriptions count
                                       [4096]
  --max-session-in-flight <count>      Unanswered calls of one session, or of one named caller that
                                       has no sessions [1024]
  --max-session-streams <count>        Open event streams of one session; a call counts, as its
                                       answer may become one [2048]
  --max-replay-bytes <size>            Kept of each session for clients that lost a connection and
                                       come back for the rest [5m]
  --max-parked-calls <count>           Calls that wait until their clients were asked something; as
                                       many tasks besides [1024]
  --max-parked-bytes <size>            Held by such calls and tasks, and as much again by outcomes
                                       nobody has come back for [64m]
  --request-timeout <duration>         Silence allowed to one call (progress and questions to the
                                       user count as life); 0: no limit [5m]
  --max-call-time <duration>           Time for one call in all, whatever progress it reports; 0: no
                                       limit [24h]
  --hang-timeout <duration>            Time to show life for a process that several clients share,
                                       once a call was given up; 0: never asked [30s]
  --shutdown-grace <duration>          Time running calls get to finish at shutdown; then server
                                       processes get as much to end [4s]

What is seen of it
  --[no-]status                        Show who is connected and what runs at /status, to whoever
                                       may look
  --status-token <env:NAME|file:PATH>  Let in to /status and /metrics who shows this token, which
                                       opens nothing else
  --[no-]metrics                       Count calls for Prometheus, at /metrics
  --[no-]usage                         Count who uses what, and what of it is deprecated, for
                                       mcp-portage report
  --audit-file <file>                  Write a line of JSON for each call to this file
  --[no-]audit-required                Refuse calls while that file cannot be written

The report (probe)
  --[no-]json                          Print the report as JSON
  --timeout <duration>                 Time for everything the probe does [15s; 2m for a command, 5m
                                       with a login]

The report (report)
  --url <url>                          The running bridge to ask, by any address of it; without it,
                                       what is in the state directory counts
  --since <duration>                   How far the report looks back [30d]

For a host (snippet)
  --for <host>                         The host that what is printed is for: claude-code,
                                       claude-desktop, cursor, vscode, windsurf, gemini, codex,
                                       opencode

Logging
  --log-level <level>                  How much to log, on stderr: trace, debug, info, warn, error,
                                       silent [info; for probe warn]
  --log-format <format>                Lines for people or for programs: pretty, json [pretty on a
                                       terminal, else json]

Other
  -h, --help                           Show this help
  -v, --version                        Show the version

Examples
  mcp-portage -- npx -y @modelcontextprotocol/server-filesystem .
                                                            serve the files of this directory
  mcp-portage --isolation shared -- node server.js          one server process for all clients
  mcp-portage --port 9000 --env API_KEY -- uvx some-server  pass one variable to the server
  mcp-portage https://old.example/sse                       let new clients use an old server
  mcp-portage --config .mcp.json                            serve what Claude Code uses here
  mcp-portage connect https://example.com/mcp               for a client that speaks stdio only
  mcp-portage connect --bearer-token-file token https://example.com/mcp
                                                            the same, with a credential
  mcp-portage probe --json https://example.com/mcp          the report for scripts
  mcp-portage snippet --for cursor http://127.0.0.1:8000/mcp
                                                            for the settings of Cursor
  mcp-portage report --since 30d --json                     for scripts; exits with 0 when HTTP+SSE
                                                            can go

Every option can come from the environment: --max-sessions is MCP_PORTAGE_MAX_SESSIONS; lists are
separated by commas, headers by line breaks. Durations are 500ms, 30s, 5m or 2h, a bare number is
seconds. Sizes are 64k or 16m, a bare number is bytes.
`;

const help = (columns: number) => renderHelp({ columns, verb: undefined });

test('the help is this', (t) => {
  t.is(help(100), HELP_AT_100_COLUMNS);
});

test('the help names every option', (t) => {
  for (const { name } of OPTIONS) t.regex(help(100), new RegExp(`^  --(\\[no-\\])?${name}\\b`, 'm'));
});

test('the help says why the token is no option', (t) => {
  const unfolded = help(100).replace(/\n {10,}/g, ' ');
  t.regex(unfolded, /^ {2}MCP_PORTAGE_BEARER_TOKEN .*not an option, since other users can read command lines$/m);
});

for (const verb of BRIDGE_VERBS) {
  test(`the help of ${verb} has its own options and no others`, (t) => {
    const text = renderHelp({ columns: 100, verb });
    t.regex(text, new RegExp(`^mcp-portage ${verb}: `));
    for (const option of OPTIONS as readonly OptionSpec[]) {
      const isThere = new RegExp(`^  --(\\[no-\\])?${option.name}\\b(?!-)`, 'm').test(text);
      t.is(isThere, isApplicable(option, { verb, target: 'any' }), option.name);
    }
  });
}

test('the commands of the help are accepted', (t) => {
  const commands = help(110).match(/^ {2}mcp-portage .*?(?= {2,}|$)/gm) ?? [];
  const examples = commands.filter((command) => !/[[<|]/.test(command)).map((command) => command.trim().split(' '));
  t.true(examples.length >= 5);
  for (const [, ...argv] of examples) t.is(parseCommandLine(argv).kind, 'bridge', argv.join(' '));
});

test('the help fits narrow terminals and does not sprawl over wide ones', (t) => {
  const widest = (columns: number) =>
    Math.max(
      ...help(columns)
        .split('\n')
        .map((line) => line.length),
    );
  t.true(widest(80) <= 80);
  t.true(widest(300) <= 110);
  t.notThrows(() => help(0));
});
