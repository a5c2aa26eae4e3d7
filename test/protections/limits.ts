import type { Protection } from './protection.ts';

const BODY = { file: 'src/http/read-body.ts', tests: ['test/http/read-body.test.ts'] } as const;
const POST = { file: 'src/downstream/read-post.ts' } as const;
const SOCKETS = { file: 'src/downstream/http-server.ts', tests: ['test/downstream/slow-clients.test.ts'] } as const;
const SESSIONS = { file: 'src/relay/session-registry.ts', tests: ['test/relay/session-registry.test.ts'] } as const;
const CALLS = { file: 'src/relay/call-registry.ts', tests: ['test/relay/call-registry.test.ts'] } as const;
const ENDINGS = { file: 'src/relay/call-endings.ts', tests: ['test/relay/call-endings.test.ts'] } as const;
const RELAY = { file: 'src/relay/relay.ts' } as const;
const PARKED = {
  file: 'src/eras/modern-to-legacy/parked-calls.ts',
  tests: ['test/eras/modern-to-legacy/parked-calls.test.ts'],
} as const;
const ROUNDS = {
  file: 'src/eras/modern-to-legacy/parked-call.ts',
  tests: ['test/eras/modern-to-legacy/parked-call.test.ts'],
} as const;
const OUTCOMES = {
  file: 'src/eras/modern-to-legacy/kept-outcomes.ts',
  tests: ['test/eras/modern-to-legacy/kept-outcomes.test.ts'],
} as const;
const POOL = { file: 'src/relay/legacy-pool.ts', tests: ['test/relay/legacy-pool.test.ts'] } as const;
const SUBSCRIBED = { file: 'src/mcp/subscribed-uris.ts', tests: ['test/mcp/subscribed-uris.test.ts'] } as const;
const REPLAY = { file: 'src/relay/replay-buffer.ts', tests: ['test/relay/replay-buffer.test.ts'] } as const;
const WAITING = { file: 'src/downstream/waiting-room.ts', tests: ['test/downstream/waiting-room.test.ts'] } as const;
const WRITER = {
  file: 'src/downstream/response-writer.ts',
  tests: ['test/downstream/response-writer.test.ts'],
} as const;
const GATE = { file: 'src/downstream/turn-gate.ts', tests: ['test/downstream/turn-gate.test.ts'] } as const;
const HELD = { file: 'src/relay/shared/held-messages.ts' } as const;

/** The rows of the table in docs/security.md, in its order. */
export const LIMITS: readonly Protection[] = [
  {
    promise: 'bytes of a body are limited',
    ...BODY,
    code: 'if (length > maxMessageBytes) return refuse(tooLarge(maxMessageBytes));',
  },
  {
    promise: 'a body that is declared too large is not read',
    ...BODY,
    code: "Number(request.headers['content-length'] ?? 0) > maxMessageBytes",
    without: 'false',
  },
  {
    promise: 'bytes of a line are limited',
    file: 'src/wire/ndjson.ts',
    tests: ['test/wire/ndjson.test.ts'],
    code: 'this.#pending.byteLength + part.length <= this.#maxLineBytes',
    without: 'true',
  },
  {
    promise: 'bytes of an event are limited',
    file: 'src/wire/sse-decode.ts',
    tests: ['test/wire/sse-decode.test.ts'],
    code: 'return this.#eventLength > this.#maxEventBytes;',
    without: 'return false;',
  },
  {
    promise: 'bytes of an answer in JSON are limited',
    file: 'src/upstream/remote/answer-reader.ts',
    tests: ['test/upstream/streamable-stateless/failures.test.ts'],
    title: '*over the limit*',
    code: 'if (this.#byteLength <= this.#maxBytes) return',
    without: 'if (this.#byteLength > 0) return',
  },
  {
    promise: 'JSON of clients nests so deep and no deeper',
    ...POST,
    tests: ['test/downstream/streamable-session/refusals.test.ts'],
    code: 'maxDepth: ',
    without: 'maxDepth: 1e9 + ',
  },
  {
    promise: 'messages in an array are limited',
    file: 'src/wire/read-message.ts',
    tests: ['test/wire/read-message.test.ts'],
    code: 'if (items.length === maxBatch) return',
    without: 'if (items.length < 0) return',
  },
  {
    promise: 'bytes of headers are limited',
    ...SOCKETS,
    code: 'maxHeaderSize: ',
    without: 'maxHeaderSize: 8 * ',
  },
  { promise: 'connections are limited', ...SOCKETS, code: 'this.#server.maxConnections = limits.maxConnections;' },
  {
    promise: 'the time for a head is limited',
    ...SOCKETS,
    title: 'a head that comes a byte at a time*',
    code: 'headersTimeout: limits.headersTimeoutMs,',
  },
  {
    promise: 'the time for a whole request is limited',
    ...SOCKETS,
    title: 'a body that comes a byte at a time*',
    code: 'requestTimeout: limits.requestTimeoutMs,',
  },
  {
    promise: 'unfinished bodies together are limited',
    file: 'src/http/body-budget.ts',
    tests: ['test/http/read-body.test.ts'],
    code: 'if (this.#bytes + bytes > this.#maxBytes) return false;',
  },
  { promise: 'sessions are limited', ...SESSIONS, code: 'this.#entries.size >= maxSessions', without: 'false' },
  {
    promise: 'sessions of a caller are limited',
    ...SESSIONS,
    code: 'maxPerCaller < maxSessions && this.#countOf(principal) >= maxPerCaller',
    without: 'false',
  },
  {
    promise: 'a session without its client ends after a while',
    ...SESSIONS,
    code: 'nowMs - entry.lastSeenMs >= this.#options.sessionTimeoutMs',
    without: 'false',
  },
  {
    promise: 'unanswered calls without a session are limited',
    ...CALLS,
    code: "if (this.#openCalls.isFull) throw busy(this.#openCalls.limit, 'here');",
  },
  {
    promise: 'unanswered calls of all sessions together are limited',
    ...RELAY,
    tests: ['test/relay/session-registry.test.ts'],
    code: 'this.#openCalls.isFull && exchange.method !== INITIALIZE',
    without: 'false',
  },
  {
    promise: 'unanswered calls of a session are limited',
    ...RELAY,
    tests: ['test/relay/relay-routing.test.ts'],
    code: 'this.#exchanges.size >= this.#maxOpenExchanges',
    without: 'false',
  },
  {
    promise: 'unanswered calls of a caller without a session are limited',
    ...CALLS,
    code: '(this.#perPrincipal.get(principal) ?? 0) >= this.#maxPerCaller',
    without: 'false',
  },
  {
    promise: 'a session has one GET stream',
    file: 'src/downstream/streamable-session/resumable-stream.ts',
    tests: ['test/downstream/streamable-session/get-stream.test.ts'],
    code: 'previous?.end();',
  },
  {
    promise: 'a call that is silent for too long fails',
    ...ENDINGS,
    code: 'nowMs - lastActiveMs >= requestTimeoutMs',
    without: 'false',
  },
  {
    promise: 'a call that takes too long fails, whatever progress it reports',
    ...ENDINGS,
    code: 'nowMs - openedAtMs >= maxCallMs',
    without: 'false',
  },
  {
    promise: 'calls of sessions are looked at in time',
    ...RELAY,
    tests: ['test/relay/relay-time.test.ts'],
    code: 'overdue(exchange, nowMs, this.#options)',
    without: 'overdue(exchange, 0, this.#options)',
  },
  {
    promise: 'calls without a session are looked at in time',
    ...CALLS,
    code: 'call.sweep(nowMs, this.#options);',
    without: 'call.sweep(0, this.#options);',
  },
  {
    promise: 'the length of a call to a remote server can be limited',
    file: 'src/http/phase-timer.ts',
    tests: ['test/http/client-limits.test.ts'],
    title: 'a whole call has a limit of its own*',
    code: 'if (limits.callMs > 0) this.#cancelCall =',
    without: 'if (limits.callMs < 0) this.#cancelCall =',
  },
  {
    promise: 'questions of a server to one client are limited',
    ...RELAY,
    tests: ['test/relay/relay-questions.test.ts'],
    code: 'if (this.#questions.isFull) {',
    without: 'if (this.#questions.isFull === undefined) {',
  },
  {
    promise: 'SEC-07: waiting calls of a caller are limited',
    ...PARKED,
    tests: ['test/eras/modern-to-legacy/input.test.ts'],
    title: 'SEC-07*',
    code: 'share.calls >= perPrincipal || ',
  },
  { promise: 'waiting calls together are limited', ...PARKED, code: ' || this.#byId.size >= total' },
  {
    promise: 'bytes of waiting calls of a caller are limited',
    ...PARKED,
    code: 'share.bytes + bytes <= maxBytes / 2 && ',
  },
  {
    promise: 'bytes of waiting calls together are limited',
    ...PARKED,
    code: ' && this.#bytes + bytes <= maxBytes',
  },
  {
    promise: 'bytes of outcomes that are kept are limited',
    ...OUTCOMES,
    code: 'this.#bytes > 0 && this.#bytes + outcome.bytes > this.#maxBytes',
    without: 'false',
  },
  {
    promise: 'a round of questions ends after a while',
    ...ROUNDS,
    code: 'Math.min(nowMs + PARK_MS, this.#deadlineMs)',
    without: 'this.#deadlineMs',
  },
  {
    promise: 'a call ends after a while, however many rounds it has',
    ...ROUNDS,
    code: 'Math.min(nowMs + PARK_MS, this.#deadlineMs)',
    without: 'nowMs + PARK_MS',
  },
  {
    promise: 'an outcome is kept for a while only',
    ...ROUNDS,
    code: 'clock.after(RETENTION_MS, () => this.#forget())',
    without: '() => {}',
  },
  {
    promise: 'subscriptions before a legacy server are limited',
    file: 'src/eras/modern-to-legacy/dialer.ts',
    tests: ['test/eras/modern-to-legacy/listen.test.ts'],
    code: 'if (this.#listening >= MAX_LISTENING) return false;',
  },
  {
    promise: 'subscriptions at a shared modern server are limited',
    file: 'src/relay/shared-modern/from-modern-seats.ts',
    tests: ['test/relay/shared-modern/modern-subscriptions.test.ts'],
    code: 'isListen && this.#calls.subscriptions >= MAX_SUBSCRIPTIONS',
    without: 'false',
  },
  {
    promise: 'ways to the server for notifications are limited',
    file: 'src/relay/caller-links.ts',
    tests: ['test/relay/caller-links.test.ts'],
    code: 'this.#links.size > MAX_CALLER_LINKS && ',
    without: 'false && ',
  },
  {
    promise: 'pooled sessions of a caller are limited',
    ...POOL,
    code: 'if (own.length >= this.#limits.perPrincipal) this.#evict(own, this.#limits.perPrincipal);',
  },
  {
    promise: 'pooled sessions together are limited',
    ...POOL,
    code: 'if (this.#sessions.size >= this.#limits.total) this.#evict([...this.#sessions.keys()], this.#limits.total);',
  },
  {
    promise: 'a pooled session without calls ends after a while',
    ...POOL,
    tests: ['test/eras/modern-to-legacy/calls.test.ts'],
    code: 'this.#limits.idleMs, () => this.#end(session)',
    without: 'this.#limits.idleMs, () => {}',
  },
  {
    promise: 'one caller gets a part of the pool',
    file: 'src/bridge/join-eras.ts',
    tests: ['test/bridge/join-eras.test.ts'],
    code: 'Math.min(total, LEGACY_POOL_LIMITS.perPrincipal)',
    without: 'total',
  },
  {
    promise: 'server processes are limited, those that are ending included',
    file: 'src/upstream/child-limit.ts',
    tests: ['test/upstream/child-limit.test.ts'],
    code: 'void gone.then(() => {\n      this.#count -= 1;\n    });',
    without: 'void gone;\n    this.#count -= 1;',
  },
  {
    promise: 'each process that is started counts',
    file: 'src/upstream/stdio.ts',
    tests: ['test/upstream/stdio.test.ts'],
    title: 'starts no more processes than it is told*',
    code: 'this.#limit.add(child.gone);',
  },
  {
    promise: 'resources a client has subscribed to are limited where the bridge remembers them',
    ...SUBSCRIBED,
    code: 'this.#uris.size >= MAX_SUBSCRIBED || ',
  },
  {
    promise: 'so are their URIs',
    ...SUBSCRIBED,
    code: ' || this.#length + uri.length > MAX_SUBSCRIBED_LENGTH',
  },
  {
    promise: 'callers of whom processes are told are limited',
    file: 'src/relay/dialer-by-environment.ts',
    tests: ['test/relay/dialer-by-environment.test.ts'],
    code: 'if (this.#entries.size >= MAX_DIALERS) this.#makeRoom();',
  },
  {
    promise: 'events kept for a client that comes back are limited',
    ...REPLAY,
    code: 'this.#count - maxEvents)',
    without: '0)',
  },
  { promise: 'bytes kept for a client that comes back are limited', ...REPLAY, code: 'this.#bytes <= maxBytes && ' },
  {
    promise: 'the time events are kept for is limited',
    ...REPLAY,
    code: 'storedAtMs >= nowMs - maxAgeMs',
    without: 'true',
  },
  {
    promise: 'messages that wait for a client without a stream are limited',
    ...WAITING,
    code: 'this.#waiting.length > MAX_WAITING || ',
  },
  {
    promise: 'bytes that wait for a client without a stream are limited',
    ...WAITING,
    code: ' || this.#bytes > MAX_WAITING_BYTES',
  },
  {
    promise: 'a response says that it is full when much of it is unread',
    ...WRITER,
    code: 'if (this.queuedBytes >= FULL_BYTES) this.#isFull = true;',
  },
  {
    promise: 'bytes unread by a client whose server cannot wait are limited',
    ...WRITER,
    code: 'this.queuedBytes > MAX_QUEUED_BYTES + bytes.length',
    without: 'false',
  },
  {
    promise: 'a client that reads nothing for too long is let go',
    ...WRITER,
    code: 'nowMs - this.#takenAtMs >= STALL_MS',
    without: 'false',
  },
  {
    promise: 'a peer that is gone without a word is found out',
    file: 'src/downstream/event-stream.ts',
    tests: ['test/downstream/slow-clients.test.ts'],
    title: 'a peer that is gone*',
    code: 'nowMs - this.#lastWriteMs >= KEEP_ALIVE_MS',
    without: 'false',
  },
  {
    promise: 'messages held back for a full server are limited',
    ...GATE,
    code: 'this.#waiting.length >= MAX_WAITING_TURNS || ',
  },
  {
    promise: 'bytes held back for a full server are limited',
    ...GATE,
    code: 'this.#heldBytes < MAX_HELD_BYTES',
    without: 'true',
  },
  {
    promise: 'bytes of messages that were being read when their server filled up are limited',
    ...GATE,
    code: 'this.#heldBytes + bytes <= MAX_BURST_BYTES',
    without: 'true',
  },
  {
    promise: 'modern requests that no server takes stay unread',
    file: 'src/downstream/streamable-stateless/backlog.ts',
    tests: ['test/downstream/streamable-stateless/leaving.test.ts'],
    title: '*stay unread*',
    code: "if (this.#bytes >= MAX_BACKLOG_BYTES) this.gate.close('server');",
  },
  {
    promise: 'messages held back while a shared server starts are limited',
    ...HELD,
    tests: ['test/relay/shared/shared-waiting.test.ts'],
    code: 'this.#held.length >= MAX_HELD || ',
  },
  {
    promise: 'bytes held back while a shared server starts are limited',
    ...HELD,
    tests: ['test/relay/shared/held-messages.test.ts'],
    code: ' || this.#bytes >= MAX_HELD_BYTES',
  },
];
