/** Options that do not exist, with those to use in their place. The module is loaded with the first mistake. */
import { BEARER_TOKEN_VARIABLE, CLIENT_SECRET_VARIABLE } from './options/option-table.ts';

export const BY_URL =
  'give the URL without an option: mcp-portage connect <url> for a stdio client, mcp-portage serve <url> for HTTP clients.';
const TOKEN = `credentials do not belong on the command line, where other users can read them: set ${BEARER_TOKEN_VARIABLE}, or use --bearer-token-file.`;
const SECRET = `secrets do not belong on the command line, where other users can read them: set ${CLIENT_SECRET_VARIABLE}, or use --oauth-secret-file.`;
const BEHIND = 'the command goes after `--`, with its arguments: mcp-portage -- <command> [args...]';
const BOTH_TRANSPORTS = 'leave it out: Streamable HTTP and HTTP+SSE are both served, on one port.';
const SERVERS_IN_FILE =
  'use --config FILE: it takes the file of your host as it is, and serves each server below its name.';
const EVENT_STORE =
  'use --max-replay-bytes: events are always kept for clients that resume a stream, up to that many bytes.';
const TUNNEL = 'run a tunnel beside it, and name the host that clients use with --allow-host.';
const TOKEN_ENDPOINT = 'the server says where tokens are given; if that is wrong, use --oauth-token-endpoint.';
const IN_BACKGROUND = 'leave it out: a service manager such as systemd runs it in the background.';
const PASSWORD = 'clients show a token, which --auth-token names; what a remote server wants is sent with --header.';
const PROXY = 'set HTTPS_PROXY or HTTP_PROXY, and NO_PROXY for what is reached without it.';
const PREFIX = 'use --path for the whole path here; --base-url names the prefix that a proxy in front takes off.';
const ALWAYS_VERIFIED = 'certificates are always verified; --ca FILE names the authority that issued your own.';

/**
 * Options in the quick starts of supergateway, of two programs called mcp-proxy, and of mcp-remote that are different
 * here.
 */
const OPTIONS_OF_OTHER_BRIDGES: Readonly<Record<string, string>> = {
  sse: BY_URL,
  'streamable-http': BY_URL,
  'output-transport': BOTH_TRANSPORTS,
  stateful: 'leave it out: sessions are always kept where the protocol has them.',
  'streamable-http-path': 'use --path.',
  'oauth2-bearer': TOKEN,
  cors: 'name the origins that may call: --allow-origin https://app.example.com',
  'health-endpoint': 'leave it out: /healthz and /readyz are always there.',
  shell:
    'leave it out: the command is started without a shell, `.cmd` files on Windows included. For shell syntax: mcp-portage -- sh -c "..."',
  'sse-port': 'use --port.',
  'sse-host': 'use --host.',
  'pass-environment': 'use --inherit-env.',
  'named-server': SERVERS_IN_FILE,
  'named-server-config': SERVERS_IN_FILE,
  headers: "use --header, once for each: --header 'Name: value'",
  'allow-http': 'leave it out: http URLs are accepted as they are.',
  'ignore-tool': 'use --exclude-tool, once for each pattern.',
  'api-key': 'use --auth-token env:NAME; clients send the key as a bearer token.',
  server: BOTH_TRANSPORTS,
  stateless: 'leave it out: clients that keep no session are served beside those that do.',
  endpoint: 'use --path.',
  'stream-endpoint': 'use --path.',
  'sse-endpoint': 'use --sse-path.',
  modern: 'leave it out: clients of both eras are served.',
  'upstream-protocol': 'leave it out: what the server speaks is detected. To pin it, use --protocol.',
  'protocol-version': 'leave it out: clients and servers agree on a revision by themselves.',
  'max-body-size': 'use --max-message-bytes.',
  'graceful-shutdown-timeout': 'use --shutdown-grace.',
  'event-store': EVENT_STORE,
  'no-event-store': EVENT_STORE,
  'event-store-max-events': EVENT_STORE,
  tunnel: TUNNEL,
  'tunnel-subdomain': TUNNEL,
  'cors-add-allowed-header': 'leave it out: pages that may call may send any header.',
  'expose-header': 'leave it out: pages that may call can read the headers they need.',
  'verify-ssl': ALWAYS_VERIFIED,
  'no-verify-ssl': ALWAYS_VERIFIED,
  'enable-proxy': 'leave it out: HTTP_PROXY, HTTPS_PROXY and NO_PROXY are followed where they are set.',
  'static-oauth-client-info': `use --oauth-client-id; ${SECRET}`,
  'static-oauth-client-metadata': 'use --oauth-scope and --oauth-callback.',
  'client-metadata-url': 'use --oauth-client-document.',
  'auth-timeout': 'leave it out: a login may take four minutes, one with a code as long as the code lasts.',
  'token-url': TOKEN_ENDPOINT,
  'token-endpoint': TOKEN_ENDPOINT,
  resource: 'the server names its resource; if its authorization server refuses that, use --oauth-resource <uri>.',
  'disable-resource-parameter': 'use --oauth-resource none.',
  'authorize-param': 'use --oauth-param, once for each: --oauth-param audience=https://api.example.com',
  'use-id-token': 'use --oauth-token id.',
  'client-credentials': 'use --oauth-grant client-credentials.',
  'device-code': 'use --oauth-grant device-code.',
  'callback-path': 'use --oauth-callback, with the whole URL.',
  'ping-interval': 'use --keep-alive.',
  'headers-timeout': 'use --first-byte-timeout.',
  'body-timeout': 'use --idle-timeout.',
};

/** Options that users of various other programs may type out of habit. */
const HABITS: Readonly<Record<string, string>> = {
  url: BY_URL,
  command: BEHIND,
  cmd: BEHIND,
  args: BEHIND,
  'config-file': SERVERS_IN_FILE,
  'mcp-config': SERVERS_IN_FILE,
  token: TOKEN,
  'bearer-token': TOKEN,
  'client-secret': SECRET,
  'oauth-client-secret': SECRET,
  'client-id': 'use --oauth-client-id.',
  scope: 'use --oauth-scope.',
  scopes: 'use --oauth-scope.',
  audience: 'use --oauth-param audience=https://api.example.com',
  'redirect-uri': 'use --oauth-callback, with the whole URL.',
  'callback-url': 'use --oauth-callback.',
  'callback-port': 'use --oauth-callback, with the whole URL.',
  verbose: 'use --log-level debug.',
  debug: 'use --log-level debug.',
  quiet: 'use --log-level error.',
  silent: 'use --log-level silent.',
  'env-file': 'use --env-from FILE, since Node.js takes the other name for an option of its own.',
  daemon: IN_BACKGROUND,
  background: IN_BACKGROUND,
  detach: IN_BACKGROUND,
  reload: 'leave it out: the file of --config is read again when it changes.',
  restart: 'leave it out: a server that has exited is started again for the next client.',
  username: PASSWORD,
  proxy: PROXY,
  'http-proxy': PROXY,
  'https-proxy': PROXY,
  'log-file': 'leave it out: the log is written to stderr, as in mcp-portage ... 2> FILE',
  tools: 'use --include-tool, once for each pattern.',
  'allowed-tools': 'use --include-tool, once for each pattern.',
  'max-connections': 'use --max-sessions.',
  'max-clients': 'use --max-sessions.',
  prefix: PREFIX,
  'base-path': PREFIX,
  'root-path': PREFIX,
  bind: 'use --host and --port.',
  address: 'use --host and --port.',
  listen: 'use --host and --port.',
  insecure: ALWAYS_VERIFIED,
};

const LETTERS: Readonly<Record<string, string>> = {
  H: "use --header 'Name: value'.",
  e: 'use --env NAME=value.',
  p: 'use --port.',
  c: SERVERS_IN_FILE,
  f: SERVERS_IN_FILE,
  k: ALWAYS_VERIFIED,
};

export const ANSWERS: ReadonlyMap<string, string> = new Map(Object.entries({ ...OPTIONS_OF_OTHER_BRIDGES, ...HABITS }));
export const LETTER_ANSWERS: ReadonlyMap<string, string> = new Map(Object.entries(LETTERS));
