/**
 * The files of dist/, and when each of them is loaded. Reading and evaluating code is most of a start, so code that few starts
 * need is kept apart from code that all need. docs/internals/decisions/0001-one-bundle.md says more.
 */

/**
 * Each part is a file of its name, with the modules and folders that it lists. Other modules belong to the first part that imports
 * them. A part is loaded with the first use of one of its modules, so that a module may not use one of a later part at its top
 * level, such as in `extends`. `test/start/loaded-files.test.ts` says which parts a start may load.
 */
export const PARTS = {
  // Every start: arguments are parsed.
  cli: [
    'src/http/websocket/url.ts',
    'src/mqtt/names.ts',
    'src/process/command-name.ts',
    'src/process/shown-arguments.ts',
    'src/program.ts',
  ],
  // Every bridge, before it listens.
  bridge: [
    'src/bridge.ts',
    'src/cli/system-deps.ts',
    'src/cli/v8-tuning.ts',
    'src/downstream/http/read-post.ts',
    'src/downstream/http/response-writer.ts',
    'src/downstream/stdio/stray-client.ts',
    'src/downstream/streamable-session/endpoint.ts',
    'src/downstream/streamable-stateless/call-lane.ts',
    'src/downstream/streamable-stateless/endpoint.ts',
    'src/log.ts',
    'src/mqtt/show-address.ts',
    'src/mcp/classify/request-metadata.ts',
    'src/process/resolve-command.ts',
    'src/process/supervisor.ts',
    'src/relay/call-registry.ts',
    'src/relay/caller-links.ts',
    'src/relay/calls.ts',
    'src/relay/dialer-adapters.ts',
    'src/relay/observer.ts',
    'src/relay/sessions/abandoned-sessions.ts',
    'src/relay/sessions/session-registry.ts',
    'src/upstream/answer-ids.ts',
    'src/upstream/connection.ts',
    'src/upstream/detect/awaited-server.ts',
    'src/upstream/detect/connection-dialer.ts',
    'src/upstream/detect/detecting-link.ts',
    'src/upstream/detect/opened-connections.ts',
    'src/upstream/name-target.ts',
    'src/upstream/resilience/life-check.ts',
    'src/upstream/resilience/trials.ts',
    'src/upstream/stdio/child-limit.ts',
    'src/upstream/stdio/connector.ts',
    'src/wire/ndjson.ts',
  ],
  // Every client.
  clients: [
    'src/bridge/connect-stdio.ts',
    'src/downstream/duplex/',
    'src/downstream/http/',
    'src/downstream/stdio/',
    'src/downstream/streamable-session/',
    'src/downstream/streamable-stateless/',
    'src/mcp/classify/',
    'src/mcp/translate/',
    'src/process/',
    'src/relay/',
    // Clients of shared servers, which users of pooled sessions extend.
    'src/relay/shared/legacy/legacy-client.ts',
    'src/relay/shared/shared-client.ts',
    'src/upstream/',
    'src/wire/',
  ],
  // Clients of another era than the server's.
  eras: ['src/eras/'],
  // A server that several clients share.
  shared: ['src/relay/shared/'],
  // Several servers as one.
  aggregate: ['src/aggregate/', 'src/bridge/stdio-members.ts'],
  // Tools that are found, not listed.
  search: ['src/aggregate/search/tool-search.ts', 'src/aggregate/search/tool-index.ts'],
  // Servers at URLs.
  remote: [
    'src/http/client/',
    'src/upstream/detect/url-dialer.ts',
    'src/upstream/http-sse/',
    'src/upstream/remote/',
    'src/upstream/streamable-session/',
    'src/upstream/streamable-stateless/',
  ],
  sockets: [
    'src/downstream/websocket/connection.ts',
    'src/http/websocket/',
    'src/upstream/byte-stream/',
    'src/upstream/websocket/',
  ],
  // Recorded servers.
  replay: ['src/upstream/replay/'],
  // Servers whose files are watched.
  watch: ['src/upstream/stdio/replacing/', 'src/watch/'],
  // gRPC, in either direction.
  grpc: ['src/bridge/grpc-listener.ts', 'src/downstream/grpc/', 'src/grpc/', 'src/upstream/grpc/'],
  // Servers and clients at brokers.
  mqtt: ['src/bridge/mqtt-hub.ts', 'src/downstream/mqtt/', 'src/mqtt/', 'src/upstream/mqtt/'],
  replicas: ['src/replicas/'],
  // Files that several processes share: logins and pins.
  'shared-files': ['src/io/file-lock.ts', 'src/io/replace-file.ts'],
  pins: ['src/cli/pins.ts', 'src/mcp/classify/tool-definition.ts', 'src/pins/'],
  login: ['src/http/auth/jwt-verifier.ts', 'src/http/auth/key-source.ts', 'src/http/login/'],
  // Configuration files, by their format.
  'config-file': ['src/cli/config-file/'],
  'entry-schema': ['src/cli/config-file/entry-schema.ts'],
  'json-tree': ['src/cli/config-file/json-tree.ts'],
  'toml-tree': ['src/cli/config-file/toml-tree.ts'],
  'yaml-tree': ['src/cli/config-file/yaml-tree.ts'],
  // What few bridges are told to write.
  observe: ['src/observe/audit/', 'src/observe/metrics/', 'src/observe/usage/'],
  recording: ['src/recording/'],
  traces: ['src/observe/traces/'],
  'status-page': ['src/observe/status/page/'],
  // Other verbs.
  help: ['src/cli/completion.ts', 'src/cli/help/', 'src/cli/mistaken-options.ts'],
  'error-help': ['src/cli/help/error-help.ts'],
  probe: ['src/cli/aggregate-command.ts', 'src/probe/'],
  top: ['src/observe/top/'],
  info: ['src/cli/info/', 'src/cli/config-file/count-servers.ts'],
  view: ['src/observe/view/'],
  'library-functions': ['src/library/'],
  // Bridges that call hubs, and those that read their configuration again.
  seldom: [
    'src/bridge/hub-call.ts',
    'src/bridge/web-socket-hub.ts',
    'src/cli/looking.ts',
    'src/cli/parse/looking.ts',
    'src/cli/reload.ts',
    'src/probe/clients.ts',
  ],
};

/** Parts that are loaded together with each part that uses them and comes after them. */
export const BASE = ['cli', 'bridge', 'clients'];

/** Packages that are imported dynamically, and become files of their own. */
export const PACKAGES = ['got', 'ioredis', 'oauth4webapi', 'prom-client', 'ws'];

/** Modules of Node that are loaded with their first use. Most starts do without them. */
export const DEFERRED_BUILTINS = [
  'child_process',
  'crypto',
  'dns',
  'fs/promises',
  'http2',
  'https',
  'os',
  'readline',
  'timers/promises',
  'tls',
  'v8',
  'zlib',
];
