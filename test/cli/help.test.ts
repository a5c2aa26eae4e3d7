import test from 'ava';
import { renderHelp } from '../../src/cli/help.ts';
import { OPTIONS } from '../../src/cli/options.ts';

const HELP_AT_100_COLUMNS = `mcp-portage gives any stdio MCP server an HTTP face, for Streamable HTTP and HTTP+SSE clients.

Usage
  mcp-portage [serve] [options] -- <command> [args...]
  mcp-portage completion bash|zsh

Listening
  --host <address>              Address to listen on [127.0.0.1]
  --port <port>                 Port to listen on; 0 picks a free one [8000]
  --tls-cert <file>             Serve https with this certificate chain (PEM file)
  --tls-key <file>              Private key of the certificate (PEM file)

Endpoints
  --path <path>                 Streamable HTTP endpoint [/mcp]
  --sse-path <path>             HTTP+SSE: the stream old clients open [/sse]
  --message-path <path>         HTTP+SSE: where old clients post [/messages]
  --base-url <url>              How clients reach this process through a reverse proxy, with its
                                path prefix

Access
  --allow-host <name>           Host name clients may use, besides loopback names and the listening
                                address (repeatable)
  --allow-origin <origin>       Web origin whose pages may call, with CORS (repeatable)

The wrapped server
  --cwd <directory>             Working directory of the server [the current one]
  --env <NAME=value>            Set a variable for the server; NAME alone copies it from here
                                (repeatable)
  --[no-]inherit-env            Give the server this whole environment, not just PATH, HOME and
                                other harmless names
  --[no-]pty                    Run the server on a pseudo-terminal, for servers that need one

Sessions
  --isolation <mode>            One server process per client session, or one shared by all:
                                session, shared [session]
  --prewarm <count>             Server processes kept started ahead of the next sessions [0]
  --session-timeout <duration>  End a session after this long without a request or an open stream
                                [30m]
  --max-sessions <count>        Refuse further sessions beyond this many [256]

Limits
  --max-message-bytes <size>    Largest single message, either way [16m]
  --request-timeout <duration>  Silence allowed to one call (progress and questions to the user
                                count as life); 0: no limit [5m]
  --shutdown-grace <duration>   Time running calls get to finish at shutdown [5s]

Logging
  --log-level <level>           How much to log, on stderr: trace, debug, info, warn, error, silent
                                [info]
  --log-format <format>         Lines for people or for programs: pretty, json [pretty on a
                                terminal, else json]

Other
  -h, --help                    Show this help
  -v, --version                 Show the version

Examples
  mcp-portage -- npx -y @modelcontextprotocol/server-filesystem .
                                                            serve the files of this directory
  mcp-portage --isolation shared -- node server.js          one server process for all clients
  mcp-portage --port 9000 --env API_KEY -- uvx some-server  hand one variable on to the server
  source <(mcp-portage completion bash)                     complete options with the Tab key

Every option can come from the environment: --max-sessions is MCP_PORTAGE_MAX_SESSIONS; lists are
separated by commas. Durations are 500ms, 30s, 5m or 2h, a bare number is seconds. Sizes are 64k or
16m, a bare number is bytes.
`;

test('the help is this', (t) => {
  t.is(renderHelp(100), HELP_AT_100_COLUMNS);
});

test('the help names every option', (t) => {
  for (const { name } of OPTIONS) t.regex(renderHelp(100), new RegExp(`^  --(\\[no-\\])?${name}\\b`, 'm'));
});

test('the help fits narrow terminals and does not sprawl over wide ones', (t) => {
  const widest = (columns: number) =>
    Math.max(
      ...renderHelp(columns)
        .split('\n')
        .map((line) => line.length),
    );
  t.true(widest(80) <= 80);
  t.true(widest(300) <= 110);
  t.notThrows(() => renderHelp(0));
});
