/** Where each limit of docs/reference/limits.md is tested, and the constants in the source that set it, by its name there. */
export const LIMITS_IN_SOURCE: Readonly<
  Record<string, { readonly constants: readonly string[]; readonly tests: readonly string[] }>
> = {
  'size of a message': {
    constants: [],
    tests: [
      'test/http/server/read-body.test.ts',
      'test/wire/ndjson.test.ts',
      'test/upstream/server-messages.test.ts',
      'test/downstream/websocket/abuse.test.ts',
      'test/faults/connections.test.ts',
    ],
  },
  'depth of nested JSON': { constants: [], tests: ['test/cli/serve-hostile-clients.test.ts'] },
  'size of request headers': { constants: [], tests: ['test/downstream/slow-clients.test.ts'] },
  "each text, image, blob and the structured content of a tool's result": {
    constants: [],
    tests: ['test/mcp/translate/limit-results.test.ts', 'test/cli/limited-results.test.ts'],
  },
  sessions: {
    constants: [],
    tests: [
      'test/relay/sessions/session-registry.test.ts',
      'test/relay/sessions/abandoned-sessions.test.ts',
      'test/cli/serve-abandoned-sessions.test.ts',
    ],
  },
  'sessions of a caller': {
    constants: [],
    tests: ['test/relay/sessions/session-registry.test.ts', 'test/relay/sessions/abandoned-sessions.test.ts'],
  },
  'WebSocket connections; half per caller': { constants: [], tests: ['test/downstream/websocket/admission.test.ts'] },
  'gRPC streams; half per caller': { constants: [], tests: ['test/downstream/grpc/endpoint.test.ts'] },
  'life of a session without its client': { constants: [], tests: ['test/relay/sessions/session-registry.test.ts'] },
  'life of a session without calls, whose client closed its stream or never returned after `initialize`': {
    constants: [],
    tests: ['test/relay/sessions/session-registry.test.ts', 'test/downstream/streamable-session/session.test.ts'],
  },
  'unanswered calls of all clients': {
    constants: [],
    tests: ['test/relay/call-registry.test.ts', 'test/relay/sessions/session-registry.test.ts'],
  },
  'unanswered calls of a session, or of a named caller without one': {
    constants: [],
    tests: ['test/relay/relay-routing.test.ts', 'test/cli/serve-hostile-clients.test.ts'],
  },
  'event streams of a session and calls that may become one; one may be a GET': {
    constants: [],
    tests: [
      'test/downstream/streamable-session/stream-limit.test.ts',
      'test/downstream/streamable-session/get-stream.test.ts',
    ],
  },
  'silence of the server during a call': {
    constants: [],
    tests: ['test/relay/relay-time.test.ts', 'test/relay/call-registry.test.ts'],
  },
  'duration of a call': { constants: [], tests: ['test/relay/calls.test.ts', 'test/cli/serve-endless-calls.test.ts'] },
  'calls that wait for their client (`input_required`), and as many tasks; half per caller': {
    constants: [],
    tests: [
      'test/eras/modern-to-legacy/questions/parked-calls.test.ts',
      'test/eras/modern-to-legacy/tasks/hosted-tasks.test.ts',
    ],
  },
  'size of waiting calls and tasks; half per caller': {
    constants: [],
    tests: [
      'test/eras/modern-to-legacy/questions/parked-calls.test.ts',
      'test/eras/modern-to-legacy/questions/parked-call.test.ts',
      'test/eras/modern-to-legacy/missed-notices.test.ts',
      'test/eras/modern-to-legacy/tasks/hosted-tasks.test.ts',
    ],
  },
  'size of unfetched results of waiting calls and tasks': {
    constants: [],
    tests: ['test/eras/modern-to-legacy/kept-outcomes.test.ts'],
  },
  'sessions of a legacy server for modern clients; half per caller': {
    constants: ['LEGACY_POOL_LIMITS'],
    tests: ['test/eras/modern-to-legacy/pool/legacy-pool.test.ts'],
  },
  'server processes, including exiting ones': {
    constants: [],
    tests: [
      'test/upstream/stdio/child-limit.test.ts',
      'test/upstream/stdio/connector.test.ts',
      'test/cli/serve-abandoned-sessions.test.ts',
    ],
  },
  'events kept for resuming a stream': {
    constants: ['REPLAY_LIMITS'],
    tests: ['test/downstream/streamable-session/resumption.test.ts'],
  },
  'data of a session whose server reads nothing; of what is being received': {
    constants: ['MAX_HELD_BYTES', 'MAX_WAITING_TURNS', 'MAX_BURST_BYTES'],
    tests: ['test/downstream/backpressure.test.ts', 'test/downstream/http/turn-gate.test.ts'],
  },
  'handshake of a restored connection, for a client on a pipe': {
    constants: [],
    tests: ['test/relay/sessions/lost-connections.test.ts'],
  },
  'silence of a replica': { constants: [], tests: ['test/replicas/ownership/leases.test.ts'] },
  'with `--cluster-limits`, of all replicas: sessions; of a caller; its calls; processes of a server': {
    constants: [],
    tests: ['test/replicas/limits/shared-limit.test.ts', 'test/replicas/running/limits.test.ts'],
  },
  'messages being received; half per caller, a part for each server': {
    constants: ['BODIES_AT_A_TIME', 'FREE_BODY_BYTES'],
    tests: [
      'test/http/server/read-body.test.ts',
      'test/cli/serve-hostile-clients.test.ts',
      'test/downstream/duplex/greedy-clients.test.ts',
    ],
  },
  "JSON values in a client's message": {
    constants: ['CLIENT_LIMITS'],
    tests: ['test/wire/json/check-json.test.ts', 'test/wire/read-message.test.ts'],
  },
  'members of a message, its payload and `_meta`, without arguments and results': {
    constants: ['MAX_MEMBERS'],
    tests: ['test/wire/json/outline.test.ts', 'test/wire/work.test.ts'],
  },
  'values in capabilities, filters, schemas, tasks, errors; in a list of tools': {
    constants: ['MAX_PARSED_VALUES', 'MAX_LISTED_VALUES'],
    tests: [
      'test/mcp/vocabulary/payload.test.ts',
      'test/mcp/classify/request-metadata.test.ts',
      'test/mcp/classify/tool-list.test.ts',
    ],
  },
  'items of a list (tools, content, messages)': {
    constants: ['MAX_ITEMS'],
    tests: ['test/wire/json/array-items.test.ts'],
  },
  "characters of a tool's name, with a tool filter (`--include-tool`, `--exclude-tool`)": {
    constants: ['MAX_TOOL_NAME_LENGTH'],
    tests: ['test/config/tool-choice.test.ts'],
  },
  'with `--pin-tools`: tools of a server; tools that wait to be accepted; messages that wait for a list': {
    constants: ['MAX_PINNED_TOOLS', 'MAX_WAITING_TOOLS', 'HELD_LIMITS', 'LIST_TIMEOUT_MS'],
    tests: ['test/pins/pins.test.ts', 'test/pins/pin-guard.test.ts'],
  },
  'with `--watch`: messages that wait for the next process, per connection': {
    constants: ['RESTART_LIMITS'],
    tests: ['test/upstream/stdio/replacing/replaceable-carrier.test.ts'],
  },
  'messages in a batch': { constants: ['CLIENT_LIMITS'], tests: ['test/downstream/streamable-session/'] },
  'size of responses to a batch that wait for others; on a pipe, of all batches': {
    constants: ['MAX_COLLECTED_BYTES'],
    tests: ['test/downstream/stdio/endpoint.test.ts', 'test/downstream/streamable-session/batch.test.ts'],
  },
  'size of an `initialize` request': {
    constants: ['MAX_INITIALIZE_BYTES'],
    tests: ['test/relay/relay-handshake.test.ts'],
  },
  'line to the client of `connect`, unless `--max-message-bytes` is given': {
    constants: ['MAX_LINE_BYTES'],
    tests: ['test/downstream/stdio-long-lines.test.ts'],
  },
  'notifications before the answer to `initialize`': {
    constants: ['EARLY_LIMITS'],
    tests: ['test/relay/relay-handshake.test.ts'],
  },
  'messages of a client on a pipe, byte stream or WebSocket in one turn': {
    constants: ['MESSAGES_PER_TURN'],
    tests: ['test/downstream/duplex/flooding-clients.test.ts'],
  },
  connections: { constants: ['SOCKET_LIMITS'], tests: ['test/downstream/slow-clients.test.ts'] },
  'time for the TLS handshake and a request head; for a whole request': {
    constants: ['SOCKET_LIMITS'],
    tests: ['test/downstream/slow-clients.test.ts'],
  },
  'data that a client has not read': {
    constants: ['FULL_BYTES', 'HIGH_WATER_BYTES', 'MAX_QUEUED_BYTES'],
    tests: [
      'test/downstream/backpressure.test.ts',
      'test/downstream/duplex/greedy-clients.test.ts',
      'test/faults/carried-clients.test.ts',
    ],
  },
  'time that a client may read nothing': {
    constants: ['STALL_MS'],
    tests: ['test/downstream/backpressure.test.ts', 'test/downstream/listener/open-connections.test.ts'],
  },
  'silence of an event stream': { constants: ['KEEP_ALIVE_MS'], tests: ['test/downstream/slow-clients.test.ts'] },
  'messages for a client without a stream': {
    constants: ['MAX_WAITING_BYTES'],
    tests: ['test/downstream/streamable-session/undelivered-queue.test.ts'],
  },
  'data of a client on a pipe, byte stream or WebSocket whose server reads nothing': {
    constants: ['MAX_AHEAD_BYTES'],
    tests: ['test/downstream/duplex/connection-peer.test.ts', 'test/faults/carried-clients.test.ts'],
  },
  'fragments of a WebSocket message': { constants: [], tests: ['test/downstream/websocket/abuse.test.ts'] },
  'bytes that wait for a WebSocket peer': {
    constants: ['HIGH_WATER_BYTES'],
    tests: ['test/http/websocket/connection.test.ts', 'test/downstream/websocket/abuse.test.ts'],
  },
  'MQTT: messages without an acknowledgment, to the broker; from it': {
    constants: ['MAX_IN_FLIGHT', 'RECEIVE_MAXIMUM'],
    tests: ['test/mqtt/connection.test.ts'],
  },
  'MQTT: bytes of a paused connection that are read ahead; header of a message': {
    constants: ['MAX_HEADER_BYTES'],
    tests: ['test/mqtt/connection.test.ts', 'test/mqtt/packet-splitter.test.ts'],
  },
  'MQTT: instances of a server; their answer to the first request, of one and of all': {
    constants: ['MAX_INSTANCES', 'ANSWER_MS', 'ALL_ANSWERS_MS'],
    tests: ['test/upstream/mqtt/carrier.test.ts'],
  },
  'MQTT: bytes of an id, of a server name': {
    constants: ['MAX_ID_BYTES', 'MAX_NAME_BYTES'],
    tests: ['test/mqtt/names.test.ts', 'test/downstream/mqtt/endpoint.test.ts'],
  },
  'silence of a WebSocket peer until it is pinged; unanswered pings': {
    constants: ['PING_MS', 'MAX_MISSED_PINGS'],
    tests: ['test/http/websocket/connection.test.ts'],
  },
  'byte streams: connections to one address; time for the first message; silence without a session; time without reading':
    {
      constants: ['MAX_CONNECTIONS', 'FIRST_MESSAGE_MS', 'IDLE_MS', 'STALL_MS'],
      tests: ['test/downstream/byte-stream/endpoint.test.ts'],
    },
  'gRPC: connections to one port; streams of one; time for the first stream; silence without one; watchers of health': {
    constants: ['MAX_CONNECTIONS', 'MAX_STREAMS_PER_CONNECTION', 'FIRST_STREAM_MS', 'IDLE_MS', 'MAX_WATCHERS'],
    tests: ['test/downstream/grpc/abuse.test.ts', 'test/downstream/grpc/admission.test.ts'],
  },
  'silence of a gRPC client until it is pinged; unanswered pings; time without reading': {
    constants: ['PING_MS', 'MAX_MISSED_PINGS', 'STALL_MS'],
    tests: ['test/downstream/grpc/abuse.test.ts', 'test/downstream/grpc/endpoint.test.ts'],
  },
  'size of unanswered requests over 16 KiB': {
    constants: ['MAX_OPEN_BYTES'],
    tests: ['test/relay/calls.test.ts', 'test/relay/sessions/session-registry.test.ts'],
  },
  'resource subscriptions of a client; their URIs': {
    constants: ['MAX_SUBSCRIBED', 'MAX_SUBSCRIBED_LENGTH'],
    tests: ['test/mcp/vocabulary/subscribed-uris.test.ts', 'test/relay/shared/legacy/shared-subscriptions.test.ts'],
  },
  'simultaneous callers with `--map-header`': {
    constants: ['MAX_DIALERS'],
    tests: ['test/upstream/stdio/dialer-by-environment.test.ts'],
  },
  'callers whose notifications outside of calls have a link; unused link': {
    constants: ['MAX_CALLER_LINKS', 'IDLE_LINK_MS'],
    tests: ['test/relay/caller-links.test.ts'],
  },
  'notifications outside of calls that the server has not read, per caller': {
    constants: ['MAX_KEPT_NOTIFICATIONS', 'MAX_KEPT_NOTIFICATION_BYTES'],
    tests: ['test/relay/caller-links.test.ts', 'test/eras/modern-to-legacy/client-requests.test.ts'],
  },
  '`initialize` parameters kept for another session with the server': {
    constants: ['MAX_KEPT_INITIALIZE_BYTES'],
    tests: ['test/relay/sessions/session-state.test.ts', 'test/upstream/streamable-session/renewal.test.ts'],
  },
  'characters of a stored session': {
    constants: ['MAX_STORED_LENGTH'],
    tests: ['test/relay/sessions/session-state.test.ts'],
  },
  "requests that wait for an issuer's keys; tokens being verified": {
    constants: ['MAX_WAITING', 'MAX_CHECKING'],
    tests: ['test/http/auth/jwt-verifier.test.ts', 'test/http/auth/unknown-keys.test.ts'],
  },
  "fetches of an issuer's keys for an unknown key; unknown key ids that are remembered; their characters": {
    constants: ['UNKNOWN_KEY_PAUSE_MS', 'UNKNOWN_KEYS'],
    tests: ['test/http/auth/key-source.test.ts', 'test/http/auth/unknown-keys.test.ts'],
  },
  'capabilities of a client as JSON': {
    constants: ['MAX_CAPABILITIES_LENGTH', 'MAX_CAPABILITIES_BYTES'],
    tests: [
      'test/eras/legacy-to-modern/handshake.test.ts',
      'test/eras/modern-to-legacy/pool/legacy-pool.test.ts',
      'test/eras/modern-to-legacy/client-requests.test.ts',
    ],
  },
  'characters of other information about a client': {
    constants: ['MAX_INFO_LENGTH'],
    tests: ['test/eras/legacy-to-modern/handshake.test.ts', 'test/eras/modern-to-legacy/calls.test.ts'],
  },
  'information about a server': {
    constants: ['MAX_INITIALIZE_RESULT_BYTES', 'MAX_DISCOVERY_BYTES'],
    tests: ['test/relay/shared/legacy/shared-handshake.test.ts', 'test/eras/legacy-to-modern/handshake.test.ts'],
  },
  'requests in one `input_required`; responses in one retry': {
    constants: ['MAX_REQUESTS', 'MAX_RESPONSES'],
    tests: ['test/mcp/classify/input-required.test.ts', 'test/mcp/classify/input-responses.test.ts'],
  },
  'simultaneous questions to a legacy client, per call': {
    constants: ['MAX_ASKED_AT_ONCE'],
    tests: ['test/eras/legacy-to-modern/rounds.test.ts'],
  },
  "size of answers that wait for others, and of the server's state; half per session": {
    constants: ['HELD_LIMITS'],
    tests: ['test/eras/legacy-to-modern/rounds.test.ts'],
  },
  'simultaneous questions to a modern client, per call': {
    constants: ['MAX_ASKED_AT_ONCE'],
    tests: ['test/eras/modern-to-legacy/questions/parked-call.test.ts'],
  },
  'notifications of a call while its modern client is asked': {
    constants: ['MAX_KEPT_NOTICES', 'MAX_KEPT_NOTICE_BYTES'],
    tests: ['test/eras/modern-to-legacy/kept-notices.test.ts'],
  },
  'text in the status of a task; its id': {
    constants: ['MAX_STATUS_TEXT', 'MAX_TASK_ID_LENGTH'],
    tests: ['test/eras/modern-to-legacy/tasks/hosted-tasks.test.ts', 'test/eras/legacy-to-modern/tasks.test.ts'],
  },
  "names that a server chooses: elicitations, events, changes, a task's questions": {
    constants: [
      'COMPLETED_LIMITS',
      'ELICITATION_LIMITS',
      'WRAPPED_LIMITS',
      'GIVEN_LIMITS',
      'KEPT_LIMITS',
      'MAX_COMPARED',
      'MAX_COMPARED_BYTES',
    ],
    tests: [
      'test/collections/bounded-collections.test.ts',
      'test/eras/modern-to-legacy/required-elicitations.test.ts',
      'test/relay/shared/legacy/server-questions.test.ts',
      'test/eras/legacy-to-modern/legacy-results.test.ts',
      'test/eras/legacy-to-modern/tasks.test.ts',
      'test/upstream/server-messages.test.ts',
      'test/eras/legacy-to-modern/changes.test.ts',
    ],
  },
  'tools whose requirements are remembered, per session or caller (of up to 256)': {
    constants: ['TOOL_LIMITS'],
    tests: [
      'test/relay/tool-catalog.test.ts',
      'test/upstream/streamable-stateless/tool-headers.test.ts',
      'test/downstream/streamable-stateless/listed-tools.test.ts',
    ],
  },
  'characters of the id of an awaited URL elicitation': {
    constants: ['MAX_AWAITED_ID_LENGTH'],
    tests: ['test/eras/modern-to-legacy/questions/url-elicitations.test.ts'],
  },
  'time for a round of questions to a modern client; for the call; to fetch its result': {
    constants: ['PARK_MS', 'MAX_ASKING_MS', 'RETENTION_MS'],
    tests: ['test/eras/modern-to-legacy/questions/parked-call.test.ts'],
  },
  'subscriptions of modern clients at a legacy server; half per caller': {
    constants: ['MAX_LISTENING'],
    tests: ['test/eras/modern-to-legacy/listen.test.ts'],
  },
  'notifications before a subscription is acknowledged': {
    constants: ['MAX_EARLY', 'MAX_EARLY_BYTES'],
    tests: ['test/eras/modern-to-legacy/listen.test.ts'],
  },
  'in a session of a legacy server: requests for roots that wait for a call; remembered roots': {
    constants: ['MAX_HELD_ROOTS', 'MAX_HELD_ROOTS_BYTES'],
    tests: ['test/eras/modern-to-legacy/questions/roots-questions.test.ts'],
  },
  'calls that wait for a session of a legacy server, half per caller; how long': {
    constants: ['LEGACY_POOL_LIMITS', 'LEASE_WAIT_MS'],
    tests: ['test/eras/modern-to-legacy/pool/legacy-pool.test.ts'],
  },
  'questions of a legacy server whose client is unclear, per session; how long': {
    constants: ['MAX_UNCLEAR', 'MAX_UNCLEAR_BYTES', 'UNCLEAR_HOLD_MS'],
    tests: ['test/eras/modern-to-legacy/whose-question.test.ts'],
  },
  'abandoned calls, per session of a legacy server': {
    constants: ['MAX_ABANDONED'],
    tests: ['test/relay/shared/legacy/attribution.test.ts'],
  },
  'open questions of a server to one client; characters of an id': {
    constants: ['MAX_OPEN_QUESTIONS', 'MAX_QUESTION_ID_LENGTH'],
    tests: ['test/relay/relay-questions.test.ts', 'test/relay/shared/legacy/shared-questions.test.ts'],
  },
  "questions before a client's handshake is finished": {
    constants: ['MAX_WAITING', 'MAX_WAITING_BYTES'],
    tests: ['test/relay/shared/legacy/shared-questions.test.ts', 'test/eras/legacy-to-modern/rounds.test.ts'],
  },
  'time that a call of a client that has left keeps a shared server from asking others': {
    constants: ['ABANDONED_MS'],
    tests: ['test/relay/shared/legacy/shared-questions.test.ts', 'test/relay/shared/legacy/lost-clients.test.ts'],
  },
  'answers that a server does not read': {
    constants: ['MAX_UNTAKEN', 'MAX_UNTAKEN_BYTES'],
    tests: ['test/upstream/server-messages.test.ts', 'test/upstream/stdio/connector.test.ts'],
  },
  'size of canceled requests that a shared server has not read': {
    constants: ['MAX_WITHDRAWN_BYTES'],
    tests: ['test/relay/shared/withdrawn-requests.test.ts'],
  },
  'messages of a client while its server is detected; discovered as modern; connected again (on a pipe)': {
    constants: ['MAX_HELD', 'MAX_HELD_BYTES', 'MAX_WAITING', 'MAX_WAITING_BYTES'],
    tests: [
      'test/upstream/detect/detecting-link.test.ts',
      'test/eras/legacy-to-modern/handshake.test.ts',
      'test/relay/sessions/lost-connections.test.ts',
    ],
  },
  'messages while a shared server starts': {
    constants: ['MAX_HELD', 'MAX_HELD_BYTES'],
    tests: ['test/relay/shared/legacy/shared-waiting.test.ts'],
  },
  'handshake that prewarmed processes get ahead': {
    constants: ['MAX_HANDSHAKE_BYTES'],
    tests: ['test/upstream/resilience/prepared-connections.test.ts'],
  },
  'messages of a server that is prewarmed or being detected': {
    constants: ['MAX_UNHEARD', 'MAX_UNHEARD_BYTES'],
    tests: ['test/upstream/connection.test.ts'],
  },
  "time for mcp-portage's own request to a remote server: whether it knows a session, or for a new one": {
    constants: ['OWN_CALL_MS'],
    tests: ['test/upstream/streamable-session/renewal.test.ts'],
  },
  'responses that a server leaves open, per session, and their requests: HTTP+SSE; Streamable HTTP': {
    constants: ['LINGERING_LIMITS'],
    tests: ['test/upstream/http-sse/link.test.ts', 'test/upstream/streamable-session/answers.test.ts'],
  },
  "characters of a bearer token, refresh token or assertion; of a login page's address": {
    constants: ['MAX_TOKEN_LENGTH', 'MAX_PAGE_LENGTH'],
    tests: [
      'test/http/client/credentials.test.ts',
      'test/http/login/login-failures.test.ts',
      'test/http/login/workload.test.ts',
    ],
  },
  'authorization servers that a server names; that are asked': {
    constants: ['MAX_NAMED_SERVERS', 'MAX_AUTHORIZATION_SERVERS'],
    tests: ['test/http/login/metadata.test.ts'],
  },
  'document of an authorization server; time to fetch it': {
    constants: ['MAX_BODY_BYTES', 'FETCH_TIMEOUT_MS'],
    tests: ['test/http/login/address-guard.test.ts'],
  },
  'time for a login in a browser; with a code; pause after a failed one': {
    constants: ['LOGIN_TIMEOUT_MS', 'MAX_CODE_LIFE_MS', 'FAILURE_PAUSE_MS'],
    tests: ['test/http/login/login-failures.test.ts'],
  },
  'wait for another process that renews the same login; age of its untouched lock': {
    constants: ['MAX_LOCK_WAIT_MS', 'STALE_LOCK_MS'],
    tests: ['test/http/login/login-lock.test.ts'],
  },
  'time for repeated refreshes, and for a call until a code is entered': {
    constants: ['PATIENCE_MS'],
    tests: ['test/http/login/login-refresh.test.ts'],
  },
  'logins for additional scopes; renewals of credentials for one request': {
    constants: ['MAX_STEP_UPS', 'MAX_RENEWALS'],
    tests: ['test/http/login/login-discovery.test.ts'],
  },
  'characters of a nonce for proofs; origins with nonces; repetitions for a nonce': {
    constants: ['MAX_NONCE_LENGTH', 'MAX_ORIGINS'],
    tests: ['test/http/login/token-binding.test.ts', 'test/http/login/bound-tokens.test.ts'],
  },
  'callers with exchanged tokens; characters of all tokens': {
    constants: ['MAX_CALLERS', 'MAX_KEPT_CHARACTERS'],
    tests: ['test/http/login/exchange-token.test.ts'],
  },
  'requests and streams that a replica forwards': {
    constants: ['MAX_FORWARDED'],
    tests: ['test/replicas/running/faults.test.ts'],
  },
  'requests on a link from another replica; unread bytes of a body': {
    constants: ['MAX_STREAMS', 'WINDOW_BYTES'],
    tests: ['test/replicas/forwarding/link/links.test.ts', 'test/replicas/forwarding/link/hostile-peers.test.ts'],
  },
  'bytes that wait on a link': {
    constants: ['FULL_BYTES', 'BUSY_BYTES', 'MAX_UNSENT_BYTES'],
    tests: ['test/replicas/forwarding/link/links.test.ts', 'test/replicas/forwarding/link/hostile-peers.test.ts'],
  },
  'time to open a link; until it carries something; unused': {
    constants: ['OPEN_TIMEOUT_MS', 'PROOF_TIMEOUT_MS', 'IDLE_LINK_MS'],
    tests: ['test/replicas/forwarding/link/links.test.ts', 'test/replicas/forwarding/link/hostile-peers.test.ts'],
  },
  'bytes of a forwarded request that are kept': {
    constants: ['MAX_KEPT_BYTES'],
    tests: ['test/replicas/forwarding/forwarder.test.ts'],
  },
  'requests that wait for a silent replica; how long': {
    constants: ['MAX_WAITING', 'WAITED_LEASES'],
    tests: ['test/replicas/running/killed-replicas.test.ts'],
  },
  'time for a command to the store; waiting commands': {
    constants: ['COMMAND_TIMEOUT_MS', 'MAX_PENDING'],
    tests: ['test/replicas/store/redis/redis-store.test.ts'],
  },
  "stored messages of a session's streams; bytes that wait to be stored": {
    constants: ['MAX_REPLAY_ENTRIES', 'MAX_WAITING_BYTES'],
    tests: ['test/replicas/running/faults.test.ts'],
  },
  "messages of a session's streams that are not stored; how long; how long the first one waits for it": {
    constants: ['MAX_YOUNG_BYTES', 'YOUNG_MS', 'MAX_WAIT_MS'],
    tests: ['test/replicas/stored/session-replay.test.ts'],
  },
  'callers for whose limits a replica holds a share': {
    constants: ['MAX_LIMITS'],
    tests: ['test/replicas/limits/cluster-limits.test.ts'],
  },
  'share of a common limit taken at a time': {
    constants: ['BLOCKS', 'MAX_BLOCK'],
    tests: ['test/replicas/limits/shared-limit.test.ts'],
  },
  'replicas that are listed; asked for an overview; at a time': {
    constants: ['MAX_MEMBERS', 'MAX_ASKED', 'MAX_AT_ONCE'],
    tests: ['test/replicas/forwarding/replica-queries.test.ts'],
  },
  "time and size of a replica's answer for an overview; time until the last is asked": {
    constants: ['ANSWER_MS', 'MAX_ANSWER_BYTES', 'ALL_MS'],
    tests: ['test/replicas/forwarding/replica-queries.test.ts', 'test/replicas/running/looking.test.ts'],
  },
  'usage counts in the store; bridge runs that are remembered': {
    constants: ['MAX_ROWS', 'MAX_DAY_COUNTS', 'MAX_RUNS'],
    tests: ['test/replicas/stored/shared-usage.test.ts'],
  },
  'readers of `/status/events`': { constants: ['MAX_WATCHERS'], tests: ['test/observe/status/status-stream.test.ts'] },
  'clients and ended calls on the status page; open calls': {
    constants: ['MAX_LISTED_CLIENTS', 'MAX_RECENT_CALLS', 'MAX_LISTED_OPEN_CALLS'],
    tests: ['test/observe/status/activity.test.ts'],
  },
  "lines of stderr on a server's page, and their characters; restarts; tools": {
    constants: ['MAX_STDERR_LINES', 'MAX_TEXT_LENGTH', 'MAX_RESTARTS', 'MAX_TOOLS'],
    tests: ['test/observe/status/server-records.test.ts'],
  },
  'label sets of calls in the metrics, per server; in total': {
    constants: ['MAX_OPERATIONS'],
    tests: ['test/observe/metrics/metrics.test.ts'],
  },
  'clients in the usage report; days': {
    constants: ['MAX_ROWS', 'MAX_DAYS'],
    tests: ['test/observe/usage/usage-table.test.ts'],
  },
  'clients that the log names for a transport with an announced end, per day': {
    constants: ['MAX_CLIENTS'],
    tests: ['test/observe/sunset-log.test.ts'],
  },
};
