import type { Protection } from './protection.ts';

const REDIRECTS = {
  file: 'src/http/redirects.ts',
  tests: ['test/http/client-redirects.test.ts'],
  title: 'SEC-02*',
} as const;
const ENDPOINT = {
  file: 'src/upstream/http-sse/endpoint-url.ts',
  tests: ['test/upstream/http-sse/endpoint.test.ts'],
} as const;
const VALUE = { file: 'src/mcp/header-value.ts', tests: ['test/mcp/header-value.test.ts'] } as const;
const ANNOTATIONS = { file: 'src/mcp/header-annotations.ts', tests: ['test/mcp/header-annotations.test.ts'] } as const;
const EXCHANGE = { file: 'src/http/http-exchange.ts', tests: ['test/http/client.test.ts'] } as const;
const RENEWAL = { tests: ['test/upstream/streamable-session/renewal.test.ts'] } as const;

/** Servers over HTTP: where messages and credentials go, and what an answer may do. */
export const UPSTREAM: readonly Protection[] = [
  {
    promise: 'SEC-02: a redirect to another origin is not followed',
    ...REDIRECTS,
    code: 'target.origin !== url.origin',
    without: 'false',
  },
  { promise: 'redirects in a circle are given up', ...REDIRECTS, code: 'hops >= MAX_REDIRECTS', without: 'false' },
  {
    promise: 'a redirect cannot smuggle credentials into the URL',
    file: 'src/http/redirects.ts',
    tests: ['test/http/redirects.test.ts'],
    code: "target.username = '';\n  target.password = '';",
  },
  {
    promise: 'an endpoint event names an endpoint of the same origin',
    ...ENDPOINT,
    code: 'if (endpoint.origin === streamUrl.origin) return endpoint;',
    without: 'if (endpoint.origin !== undefined) return endpoint;',
  },
  {
    promise: 'an endpoint event cannot smuggle credentials into the URL',
    ...ENDPOINT,
    tests: ['test/upstream/http-sse/endpoint-url.test.ts'],
    code: "endpoint.username = '';\n  endpoint.password = '';",
  },
  {
    promise: 'a server that never says where to post is given up',
    file: 'src/upstream/http-sse/link.ts',
    tests: ['test/upstream/http-sse/endpoint.test.ts'],
    title: 'a server that never says*',
    code: 'http.afterLimit(ENDPOINT_TIMEOUT_MS, () => this.#endpointTimedOut())',
    without: '() => {}',
  },
  {
    promise: 'a session id that could not be sent back is none',
    file: 'src/upstream/remote/session-key.ts',
    tests: ['test/upstream/remote/session-key.test.ts'],
    code: "typeof value === 'string' && /^[\\x21-\\x7e]{1,4096}$/.test(value)",
    without: "typeof value === 'string'",
  },
  {
    promise: 'SEC-01: text of a message cannot end a header',
    ...VALUE,
    code: 'const isPlain = PLAIN.test(text) && ',
    without: 'const isPlain = ',
  },
  {
    promise: 'a header that mirrors a message is limited',
    ...VALUE,
    code: 'length > MAX_HEADER_BYTES',
    without: 'false',
  },
  {
    promise: 'a request whose headers would be cut or misread is refused here',
    file: 'src/upstream/streamable-stateless/request-call.ts',
    tests: ['test/upstream/streamable-stateless/headers.test.ts'],
    code: 'if (fault !== undefined) return this.#refuse(unfitHeaders(fault));',
  },
  {
    promise: 'a header that a schema names is a token',
    ...ANNOTATIONS,
    code: "typeof name !== 'string' || !TOKEN.test(name)",
    without: "typeof name !== 'string'",
  },
  { promise: 'so much of a schema is looked at and no more', ...ANNOTATIONS, code: ' || ++this.#nodes > MAX_NODES' },
  {
    promise: 'events of a long-lived stream are limited',
    file: 'src/upstream/remote/event-stream.ts',
    tests: ['test/upstream/remote/event-stream.test.ts'],
    title: 'the limit is that of the message*',
    code: 'maxMessageBytes + FIELDS_BYTES',
    without: 'Number.POSITIVE_INFINITY',
  },
  {
    promise: 'a message over the limit fails its call, whatever else its event has',
    file: 'src/upstream/remote/stream-messages.ts',
    tests: ['test/upstream/remote/stream-messages.test.ts'],
    code: 'if (data.length <= this.#options.maxMessageBytes) return',
    without: 'if (data.length > 0) return',
  },
  {
    promise: 'what a server says in an error is printable',
    file: 'src/upstream/remote/refusal.ts',
    tests: ['test/upstream/remote/refusal.test.ts'],
    code: 'toPrintable(said, MAX_SHOWN_LENGTH)',
    without: 'said',
  },
  {
    promise: 'compressed answers nobody asked for are refused',
    ...EXCHANGE,
    code: "encoding !== undefined && encoding.toLowerCase() !== 'identity'",
    without: 'false',
  },
  {
    promise: 'a request that may have been processed is not repeated',
    ...EXCHANGE,
    code: "return this.#request.isRepeatable || this.#state === 'sending';",
    without: 'return true;',
  },
  {
    promise: 'a certificate nobody vouches for is refused',
    file: 'src/http/agents.ts',
    tests: ['test/http/client-tls.test.ts'],
    code: 'new HttpsAgent({ ...POOL, ',
    without: 'new HttpsAgent({ ...POOL, rejectUnauthorized: false, ',
  },
  {
    promise: 'cookies of a server are limited',
    file: 'src/http/cookies.ts',
    tests: ['test/http/cookies.test.ts'],
    code: 'this.#cookies.size < MAX_COOKIES || this.#cookies.has(key)',
    without: 'true',
  },
  {
    promise: 'a cookie goes back to nobody but the origin that set it',
    file: 'src/http/cookies.ts',
    tests: ['test/http/cookies.test.ts'],
    code: 'origin === url.origin && ',
  },
  {
    promise: 'the answer to a withdrawn call goes nowhere',
    file: 'src/upstream/remote/delivery.ts',
    tests: ['test/upstream/remote/delivery.test.ts'],
    code: 'if (frame.isResponse && exchange !== undefined && !isOpen) return;',
  },
  {
    promise: 'questions of a session that is gone are withdrawn',
    file: 'src/upstream/remote/delivery.ts',
    ...RENEWAL,
    title: 'questions of the old session*',
    code: 'for (const requestId of withdrawn) this.message(',
    without: 'for (const requestId of [] as typeof withdrawn) this.message(',
  },
  {
    promise: 'a header a proxy goes by says what the body says',
    file: 'src/mcp/validate-modern.ts',
    tests: ['test/downstream/streamable-stateless/conformance.test.ts'],
    code: 'if (mismatch !== undefined) return { httpStatus: 400, code: HEADER_MISMATCH, message: mismatch };',
  },
  {
    promise: 'a name that occurs twice is refused where a header repeats it',
    file: 'src/mcp/standard-headers.ts',
    tests: ['test/mcp/standard-headers.test.ts'],
    code: "if (name.kind === 'unclear') return",
    without: "if (name.kind === 'unclear') return undefined; else if (value === null) return",
  },
];
