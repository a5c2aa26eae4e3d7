/** Where each limit of docs/reference/limits.md is tested, by its name there. */
export const LIMIT_TESTS: Readonly<Record<string, readonly string[]>> = {
  'size of a message': [
    'test/http/server/read-body.test.ts',
    'test/wire/ndjson.test.ts',
    'test/upstream/server-messages.test.ts',
    'test/downstream/websocket/abuse.test.ts',
    'test/faults/connections.test.ts',
  ],
  'line to the client of `connect`': ['test/downstream/stdio-long-lines.test.ts'],
  'notifications before the answer to `initialize`': ['test/relay/relay-handshake.test.ts'],
  'depth of nested JSON': ['test/cli/serve-hostile-clients.test.ts'],
  "JSON values in a client's message, including nested ones (messages of servers may have any number)": [
    'test/wire/json/check-json.test.ts',
    'test/wire/read-message.test.ts',
  ],
  'members of a message, its payload and `_meta`, added up (the content of arguments and results does not count)': [
    'test/wire/json/outline.test.ts',
    'test/wire/work.test.ts',
  ],
  'values in what the bridge parses into objects: capabilities, a filter, a schema, a task, an error': [
    'test/mcp/vocabulary/payload.test.ts',
    'test/mcp/classify/request-metadata.test.ts',
    'test/mcp/classify/tool-list.test.ts',
  ],
  "characters of a tool's name, with `--include-tool` or `--exclude-tool`": ['test/bridge/tool-patterns.test.ts'],
  'items of one list (tools, content blocks, prompt messages) that are examined one by one': [
    'test/wire/json/array-items.test.ts',
  ],
  'requests in one `input_required`; responses in one retry': [
    'test/mcp/classify/input-required.test.ts',
    'test/mcp/classify/input-responses.test.ts',
  ],
  'messages in a batch': ['test/downstream/streamable-session/'],
  'size of the responses to a batch that wait for the rest of it; on a pipe, for all batches together': [
    'test/downstream/stdio/endpoint.test.ts',
    'test/downstream/streamable-session/batch.test.ts',
  ],
  'size of request headers': ['test/downstream/slow-clients.test.ts'],
  connections: ['test/downstream/slow-clients.test.ts'],
  'time for a request head, and for the TLS handshake before it': ['test/downstream/slow-clients.test.ts'],
  'time for a whole request': ['test/downstream/slow-clients.test.ts'],
  "requests that wait for an issuer's keys; tokens that are being verified": [
    'test/http/auth/jwt-verifier.test.ts',
    'test/http/auth/unknown-keys.test.ts',
  ],
  "how often an unknown key makes the bridge fetch an issuer's keys": [
    'test/http/auth/key-source.test.ts',
    'test/http/auth/unknown-keys.test.ts',
  ],
  'unknown key ids that are remembered; their characters, added up': ['test/http/auth/key-source.test.ts'],
  'messages that are being received (request bodies, WebSocket messages, lines of byte streams), of all servers together; half of that per caller. Each of several servers has a part that others cannot take':
    [
      'test/http/server/read-body.test.ts',
      'test/cli/serve-hostile-clients.test.ts',
      'test/downstream/duplex/greedy-clients.test.ts',
    ],
  'WebSocket connections; half of that per caller': ['test/downstream/websocket/admission.test.ts'],
  'fragments of a WebSocket message': ['test/downstream/websocket/abuse.test.ts'],
  'messages of one client on a pipe, a byte stream or a WebSocket that are taken before others have a turn': [
    'test/downstream/duplex/flooding-clients.test.ts',
  ],
  'bytes that wait to be sent to a WebSocket peer; beyond that, pongs are left out': [
    'test/http/websocket/connection.test.ts',
    'test/downstream/websocket/abuse.test.ts',
  ],
  'time after which a silent WebSocket peer is pinged; pings in a row without an answer': [
    'test/http/websocket/connection.test.ts',
  ],
  'connections to one address of `--stream`': ['test/downstream/byte-stream/endpoint.test.ts'],
  'time for the first message on a byte stream; silence while it has no session': [
    'test/downstream/byte-stream/endpoint.test.ts',
  ],
  'time that a client on a byte stream may read nothing while bytes wait for it': [
    'test/downstream/byte-stream/endpoint.test.ts',
  ],
  'requests that a replica forwards to others at the same time, including open streams': [
    'test/replicas/running/faults.test.ts',
  ],
  'requests on one link from another replica; bytes of a body on their way there that its reader has not read': [
    'test/replicas/forwarding/link/links.test.ts',
    'test/replicas/forwarding/link/hostile-peers.test.ts',
  ],
  'bytes that wait to be sent on a link: until bodies wait; until new requests are refused; until the link is cut': [
    'test/replicas/forwarding/link/links.test.ts',
    'test/replicas/forwarding/link/hostile-peers.test.ts',
  ],
  'time to open a link; time until it has to carry something; time until an unused one is closed': [
    'test/replicas/forwarding/link/links.test.ts',
    'test/replicas/forwarding/link/hostile-peers.test.ts',
  ],
  'bytes of a request that are kept until the replica with its session responds, so that it can be sent elsewhere': [
    'test/replicas/forwarding/forwarder.test.ts',
  ],
  'requests that wait to learn whether a silent replica is gone; how long each waits': [
    'test/replicas/running/killed-replicas.test.ts',
  ],
  'time for a command to the store; commands that wait': ['test/replicas/store/redis/redis-store.test.ts'],
  "stored messages of a session's streams; bytes that wait to be stored": ['test/replicas/running/faults.test.ts'],
  "messages of a session's streams that are not stored yet, as their calls may be over soon; how long they may wait": [
    'test/replicas/stored/session-replay.test.ts',
  ],
  'how long the first message of a stream waits until another replica could go on with it': [
    'test/replicas/stored/session-replay.test.ts',
  ],
  'with `--cluster-limits`, for all replicas together: sessions, sessions of a caller, calls of a caller, processes of a server':
    ['test/replicas/limits/shared-limit.test.ts', 'test/replicas/running/limits.test.ts'],
  'callers whose exchanged tokens are kept; characters of all these tokens': ['test/http/login/exchange-token.test.ts'],
  'callers for whose limits a replica holds a share': ['test/replicas/limits/cluster-limits.test.ts'],
  'share of a common limit that a replica takes at a time': ['test/replicas/limits/shared-limit.test.ts'],
  'replicas that are listed; replicas that are asked for an overview of all, and how many of them at a time': [
    'test/replicas/forwarding/replica-queries.test.ts',
  ],
  "time and size of a replica's answer for such an overview; time until the last replica is asked": [
    'test/replicas/forwarding/replica-queries.test.ts',
    'test/replicas/running/looking.test.ts',
  ],
  'usage counts in the store; bridge runs whose last write is remembered': [
    'test/replicas/stored/shared-usage.test.ts',
  ],
  'time after which a silent replica is considered gone': ['test/replicas/ownership/leases.test.ts'],
  sessions: [
    'test/relay/sessions/session-registry.test.ts',
    'test/relay/sessions/abandoned-sessions.test.ts',
    'test/cli/serve-abandoned-sessions.test.ts',
  ],
  'sessions of a caller': [
    'test/relay/sessions/session-registry.test.ts',
    'test/relay/sessions/abandoned-sessions.test.ts',
  ],
  'time that a session lives without its client, even with open calls': [
    'test/relay/sessions/session-registry.test.ts',
  ],
  'the same without an open call, after its client closed its stream or never returned after `initialize`': [
    'test/relay/sessions/session-registry.test.ts',
    'test/downstream/streamable-session/session.test.ts',
  ],
  'unanswered calls of all clients': [
    'test/relay/call-registry.test.ts',
    'test/relay/sessions/session-registry.test.ts',
  ],
  'size of the requests of all unanswered calls, where only requests over 16 KiB count': [
    'test/relay/calls.test.ts',
    'test/relay/sessions/session-registry.test.ts',
  ],
  'unanswered calls of a session, or of a named caller without sessions': [
    'test/relay/relay-routing.test.ts',
    'test/cli/serve-hostile-clients.test.ts',
  ],
  'size of an `initialize` request, which is kept with its session': ['test/relay/relay-handshake.test.ts'],
  'capabilities of a client as JSON, where eras are translated': [
    'test/eras/legacy-to-modern/handshake.test.ts',
    'test/eras/modern-to-legacy/pool/legacy-pool.test.ts',
    'test/eras/modern-to-legacy/client-requests.test.ts',
  ],
  'other information about a legacy client that a modern server gets with each request': [
    'test/eras/legacy-to-modern/handshake.test.ts',
  ],
  'information about a server that the bridge keeps': [
    'test/relay/shared/legacy/shared-handshake.test.ts',
    'test/eras/legacy-to-modern/handshake.test.ts',
  ],
  'event streams of a session, including calls that may become streams; one of them may be opened by GET': [
    'test/downstream/streamable-session/stream-limit.test.ts',
    'test/downstream/streamable-session/get-stream.test.ts',
  ],
  'time without a sign of life from the server during a call': [
    'test/relay/relay-time.test.ts',
    'test/relay/call-registry.test.ts',
  ],
  'duration of a call': ['test/relay/calls.test.ts', 'test/cli/serve-endless-calls.test.ts'],
  'open questions of a server to one client': ['test/relay/relay-questions.test.ts'],
  "characters of such a question's id": [
    'test/relay/relay-questions.test.ts',
    'test/relay/shared/legacy/shared-questions.test.ts',
  ],
  'questions of a server that wait until its client has finished the handshake': [
    'test/relay/shared/legacy/shared-questions.test.ts',
    'test/eras/legacy-to-modern/rounds.test.ts',
  ],
  'questions of a modern server that a legacy client is asked at the same time, per call': [
    'test/eras/legacy-to-modern/rounds.test.ts',
  ],
  'size of the answers that wait for the rest of a round, and of the state that the server wants back; half of that per session':
    ['test/eras/legacy-to-modern/rounds.test.ts'],
  'calls that wait for their client (`input_required`), and as many tasks; half of that per caller': [
    'test/eras/modern-to-legacy/questions/parked-calls.test.ts',
    'test/eras/modern-to-legacy/tasks/hosted-tasks.test.ts',
  ],
  'questions of a server at the same time, per waiting call': [
    'test/eras/modern-to-legacy/questions/parked-call.test.ts',
  ],
  'notifications about a waiting call that are kept while its client is asked': [
    'test/eras/modern-to-legacy/kept-notices.test.ts',
  ],
  'size of waiting calls and tasks (requests, questions, notifications); half of that per caller': [
    'test/eras/modern-to-legacy/questions/parked-calls.test.ts',
    'test/eras/modern-to-legacy/questions/parked-call.test.ts',
    'test/eras/modern-to-legacy/missed-notices.test.ts',
    'test/eras/modern-to-legacy/tasks/hosted-tasks.test.ts',
  ],
  'size of the results of waiting calls and tasks that their clients have not fetched yet': [
    'test/eras/modern-to-legacy/kept-outcomes.test.ts',
  ],
  'text in the status of a task; id of a task': [
    'test/eras/modern-to-legacy/tasks/hosted-tasks.test.ts',
    'test/eras/legacy-to-modern/tasks.test.ts',
  ],
  'names chosen by a server that the bridge remembers for a session or call: completed elicitations, events and changes that might be repeated, questions of a task':
    [
      'test/collections/bounded-collections.test.ts',
      'test/eras/modern-to-legacy/required-elicitations.test.ts',
      'test/relay/shared/legacy/server-questions.test.ts',
      'test/eras/legacy-to-modern/legacy-results.test.ts',
      'test/eras/legacy-to-modern/tasks.test.ts',
      'test/upstream/server-messages.test.ts',
      'test/eras/legacy-to-modern/changes.test.ts',
    ],
  'tools whose requirements are remembered, per caller (of up to 256), or per session': [
    'test/relay/tool-catalog.test.ts',
    'test/upstream/streamable-stateless/tool-headers.test.ts',
    'test/downstream/streamable-stateless/listed-tools.test.ts',
  ],
  'characters of the id of a URL elicitation for whose completion a call waits': [
    'test/eras/modern-to-legacy/questions/url-elicitations.test.ts',
  ],
  'time for one round of questions; for the whole call; to fetch its result': [
    'test/eras/modern-to-legacy/questions/parked-call.test.ts',
  ],
  'subscriptions of modern clients at a legacy server; half of that per caller': [
    'test/eras/modern-to-legacy/listen.test.ts',
  ],
  'notifications that wait until a subscription is acknowledged': ['test/eras/modern-to-legacy/listen.test.ts'],
  'requests for roots that wait for a call, per session of a legacy server': [
    'test/eras/modern-to-legacy/questions/roots-questions.test.ts',
  ],
  'size of the roots remembered for the next request, per session of a legacy server': [
    'test/eras/modern-to-legacy/questions/roots-questions.test.ts',
  ],
  'sessions of a legacy server for clients without sessions; half of that per caller': [
    'test/eras/modern-to-legacy/pool/legacy-pool.test.ts',
  ],
  'calls that wait for such a session; half of that per caller': [
    'test/eras/modern-to-legacy/pool/legacy-pool.test.ts',
  ],
  'time that a call waits for such a session': ['test/eras/modern-to-legacy/pool/legacy-pool.test.ts'],
  "characters of a modern client's name, title and version that a legacy server gets": [
    'test/eras/modern-to-legacy/calls.test.ts',
  ],
  'questions of a legacy server that wait until it is clear which client they are for, per session; how long': [
    'test/eras/modern-to-legacy/whose-question.test.ts',
  ],
  'abandoned calls that are remembered, per session of a legacy server': [
    'test/relay/shared/legacy/attribution.test.ts',
  ],
  'time that an abandoned call, or one of a client without a connection, keeps a shared server from asking other clients':
    ['test/relay/shared/legacy/shared-questions.test.ts', 'test/relay/shared/legacy/lost-clients.test.ts'],
  'server processes, including those that are exiting': [
    'test/upstream/stdio/child-limit.test.ts',
    'test/upstream/stdio/connector.test.ts',
    'test/cli/serve-abandoned-sessions.test.ts',
  ],
  'links for notifications outside of calls, one per caller; time that an unused one is kept': [
    'test/relay/caller-links.test.ts',
  ],
  'such notifications that the server has not read, per caller': [
    'test/relay/caller-links.test.ts',
    'test/eras/modern-to-legacy/client-requests.test.ts',
  ],
  'size of the `initialize` parameters kept for opening another session with the server': [
    'test/relay/sessions/session-state.test.ts',
    'test/upstream/streamable-session/renewal.test.ts',
  ],
  'characters of a stored session': ['test/relay/sessions/session-state.test.ts'],
  'resource subscriptions of a client that the bridge remembers; size of their URIs': [
    'test/mcp/vocabulary/subscribed-uris.test.ts',
    'test/relay/shared/legacy/shared-subscriptions.test.ts',
  ],
  'callers at the same time with `--map-header`': ['test/upstream/stdio/dialer-by-environment.test.ts'],
  'events kept for clients that resume a stream': ['test/downstream/streamable-session/resumption.test.ts'],
  'messages that wait for a client without a stream': ['test/downstream/streamable-session/undelivered-queue.test.ts'],
  'data that a client has not read': [
    'test/downstream/backpressure.test.ts',
    'test/downstream/duplex/greedy-clients.test.ts',
    'test/faults/carried-clients.test.ts',
  ],
  'time that a client may read nothing, even of a refusal': [
    'test/downstream/backpressure.test.ts',
    'test/downstream/listener/open-connections.test.ts',
  ],
  'time after which a silent event stream is checked': ['test/downstream/slow-clients.test.ts'],
  'data held back while a server reads nothing, per session; of what was being received': [
    'test/downstream/backpressure.test.ts',
    'test/downstream/http/turn-gate.test.ts',
  ],
  "data read ahead from a client on a pipe, a byte stream or a WebSocket while its server reads nothing, so that the client's end is noticed":
    ['test/downstream/duplex/connection-peer.test.ts', 'test/faults/carried-clients.test.ts'],
  "answers to a server's own requests that it does not read": [
    'test/upstream/server-messages.test.ts',
    'test/upstream/stdio/connector.test.ts',
  ],
  'messages held back while a server is being detected, per client': ['test/upstream/detect/detecting-link.test.ts'],
  'messages held back while a connection is being restored, per client on a pipe': [
    'test/relay/sessions/lost-connections.test.ts',
  ],
  'messages held back while a modern server is being discovered, per legacy client': [
    'test/eras/legacy-to-modern/handshake.test.ts',
  ],
  'characters of a bearer token, a refresh token or an assertion': [
    'test/http/client/credentials.test.ts',
    'test/http/login/login-failures.test.ts',
    'test/http/login/workload.test.ts',
  ],
  'authorization servers that a server may name; how many of them are asked': ['test/http/login/metadata.test.ts'],
  "characters of a login page's address": ['test/http/login/login-failures.test.ts'],
  'time that a process waits for another one that renews the same login; time after which an untouched lock is broken':
    ['test/http/login/login-lock.test.ts'],
  'time for which a refresh is repeated that fails for a reason that passes, and a call waits for a code to be entered':
    ['test/http/login/login-refresh.test.ts'],
  'time for a login in a browser, and with a code; pause after a failed one': [
    'test/http/login/login-failures.test.ts',
  ],
  'logins for additional scopes; renewals of credentials for one request': ['test/http/login/login-discovery.test.ts'],
  'characters of a nonce for proofs; origins whose nonces are kept; repetitions of a request for a nonce': [
    'test/http/login/token-binding.test.ts',
    'test/http/login/bound-tokens.test.ts',
  ],
  'size of a document of an authorization server; time to fetch it': ['test/http/login/address-guard.test.ts'],
  'size of requests that were canceled before a shared server read them': [
    'test/relay/shared/withdrawn-requests.test.ts',
  ],
  'messages held back while a shared server starts': ['test/relay/shared/legacy/shared-waiting.test.ts'],
  'handshake that is sent to prewarmed processes ahead of their clients': [
    'test/upstream/resilience/prepared-connections.test.ts',
  ],
  'messages of a server to which nobody listens yet (prewarmed, or being asked what it speaks)': [
    'test/upstream/connection.test.ts',
  ],
  "time for a request of the bridge's own to a remote server (does it still know a session, or open a new one)": [
    'test/upstream/streamable-session/renewal.test.ts',
  ],
  'time for the handshake of a restored connection, for a client on a pipe': [
    'test/relay/sessions/lost-connections.test.ts',
  ],
  'responses that an HTTP+SSE server leaves open, per session; size of the messages they answer': [
    'test/upstream/http-sse/link.test.ts',
  ],
  'streams that a remote server leaves open after its response, per session; size of the requests they began with': [
    'test/upstream/streamable-session/answers.test.ts',
  ],
  "readers of the status page's events at the same time": ['test/observe/status/status-stream.test.ts'],
  'clients and ended calls on the status page; open calls': ['test/observe/status/activity.test.ts'],
  'label sets of calls in the metrics, per server and in total': ['test/observe/metrics/metrics.test.ts'],
  'clients told apart in the usage report; days': ['test/observe/usage/usage-table.test.ts'],
  'clients that the log names as users of a transport with an announced end, per day': [
    'test/observe/sunset-log.test.ts',
  ],
};
