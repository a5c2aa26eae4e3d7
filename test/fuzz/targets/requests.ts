import type { ExecutionContext } from 'ava';
import fc from 'fast-check';
import type { SessionDialer } from '../../../src/relay/ports.ts';
import { resultFrame } from '../../../src/wire/write-message.ts';
import { modern, modernCall, postModern } from '../../downstream/streamable-stateless/modern-posts.ts';
import { FakeLink } from '../../support/fake-peers.ts';
import { type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import {
  call,
  initialize,
  notification,
  openStreamable,
  type StreamableSession,
} from '../../support/legacy-clients.ts';
import { RawSocket } from '../../support/raw-socket.ts';
import { waitFor } from '../../support/wait-for.ts';
import { anyMessage, createRandom } from '../../wire/json-text.ts';
import { anySeed, havoc, pieces } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

const SESSION_TIMEOUT_MS = 60_000;
const MAX_SESSIONS = 200;

/** Answers every request at once with the name of what was called. */
const echoing: SessionDialer = {
  name: 'echoing',
  dial(listener) {
    const link = new FakeLink();
    link.onSend = ({ frame }) => {
      if (frame.kind !== 'request') return;
      const { params } = frame.json() as { params?: { name?: unknown } };
      listener.fromServer(resultFrame(frame.id ?? 0, { resultType: 'complete', name: params?.name }));
    };
    return link;
  },
  readiness: () => ({ state: 'ready' }),
  close: async () => {},
  killNow() {},
};

// ---- what comes over the sockets

const legacyBody = fc.oneof(
  fc.constantFrom<unknown>(initialize(), call(1), notification('notifications/initialized'), [call(2), call(3)], []),
  fc.constantFrom<unknown>(
    { jsonrpc: '2.0', id: 1, result: {} },
    notification('notifications/cancelled', { requestId: 1 }),
  ),
);
const modernBody = fc.constantFrom<unknown>(
  ...[modernCall(1), modern(2, 'server/discover'), modern(3, 'subscriptions/listen', { notifications: {} })],
  ...[modern(4, 'tools/list'), modern(5, 'vendor/x'), modern(6, 'initialize'), modern(7, 'tools/call')],
);
const body = fc.oneof(
  { weight: 4, arbitrary: legacyBody.map((value) => JSON.stringify(value)) },
  { weight: 4, arbitrary: modernBody.map((value) => JSON.stringify(value)) },
  { weight: 2, arbitrary: anyMessage({ newlines: true }).map(({ text }) => text) },
);
const headerLine = fc.constantFrom(
  ...['Content-Type: application/json', 'Content-Type: text/plain', 'Content-Type: application/json; charset=utf-16'],
  ...['Accept: application/json, text/event-stream', 'Accept: text/event-stream', 'Accept: */*', 'Accept:'],
  ...['MCP-Protocol-Version: 2026-07-28', 'MCP-Protocol-Version: 2025-11-25', 'MCP-Protocol-Version: v9'],
  ...['Mcp-Method: tools/call', 'Mcp-Method: tools/list', 'Mcp-Name: work', 'Mcp-Name: =?base64?eA==?='],
  ...['Mcp-Session-Id: SESSION', 'Mcp-Session-Id: no', 'Mcp-Session-Id: SESSION, SESSION', 'Last-Event-ID: 1-1'],
  ...['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked, identity', 'Content-Length: 7', 'Content-Length: -1'],
  ...['Expect: 100-continue', 'Connection: close', 'Connection: upgrade', 'Upgrade: h2c', 'Origin: http://evil.test'],
  ...['Host: evil.test', 'Host: 127.0.0.1', ' folded', 'Mcp-Param-X: 1', `X-Long: ${'x'.repeat(9000)}`, 'no colon'],
);
const target = fc.constantFrom(
  '/mcp',
  '/mcp',
  '/mcp',
  '/mcp',
  '/sse',
  '/messages',
  '/messages?sessionId=no',
  '/',
  '//mcp',
  '*',
);
const verb = fc.constantFrom('POST', 'POST', 'POST', 'POST', 'GET', 'DELETE', 'OPTIONS', 'PUT', 'CONNECT', 'HEAD');
const framing = fc.constantFrom(
  'length' as const,
  'length' as const,
  'chunked' as const,
  'short' as const,
  'none' as const,
);

interface RequestParts {
  readonly verb: string;
  readonly target: string;
  readonly usual: boolean;
  readonly lines: readonly string[];
  readonly body: string;
  readonly framing: 'length' | 'chunked' | 'short' | 'none';
}

const request = fc.record<RequestParts>({
  verb,
  target,
  usual: fc.boolean(),
  lines: fc.array(headerLine, { maxLength: 5 }),
  body,
  framing,
});
const connection = fc.record({
  requests: fc.array(request, { minLength: 1, maxLength: 3 }),
  seed: anySeed,
  isDamaged: fc.boolean(),
  ending: fc.constantFrom('end' as const, 'reset' as const, 'stay' as const),
});
type Connection = typeof connection extends fc.Arbitrary<infer Kind> ? Kind : never;

const USUAL = ['Host: 127.0.0.1', 'Content-Type: application/json', 'Accept: application/json, text/event-stream'];

function textOf({ verb, target, usual, lines, body, framing }: RequestParts, session: string): string {
  const length = Buffer.byteLength(body);
  const own = {
    length: [`Content-Length: ${length}`],
    short: [`Content-Length: ${Math.floor(length / 2)}`],
    chunked: ['Transfer-Encoding: chunked'],
    none: [],
  }[framing];
  const head = [`${verb} ${target} HTTP/1.1`, ...(usual ? USUAL : []), ...lines, ...own].join('\r\n');
  const sent = framing === 'chunked' ? `${length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body;
  return `${head}\r\n\r\n${sent}`.replaceAll('SESSION', session);
}

// ---- the listener and its honest clients

let harness: HttpHarness;
let honest: StreamableSession;
/** Its id is known to attackers. */
let victim: StreamableSession;
let ends: (() => unknown)[] = [];
let count = 0;

async function open(): Promise<void> {
  ends = [];
  // Nothing of a test is needed but its end.
  const t = { teardown: (end: () => unknown) => void ends.push(end) } as unknown as ExecutionContext;
  harness = await startHttpHarness(t, {
    modernDialer: echoing,
    maxSessions: MAX_SESSIONS,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    maxMessageBytes: 4096,
  });
  harness.server.scripts.set('tools/call', (asked, connected) => {
    const { params } = asked.json() as { params?: { name?: unknown } };
    connected.answer(asked, { name: params?.name });
  });
  honest = await openStreamable(harness);
  victim = await openStreamable(harness);
}

async function close(): Promise<void> {
  for (const session of [honest, victim]) await (await session.delete()).text();
  // Streams of attackers count as long as the server has not heard of their end.
  const hasEnded = (): boolean => {
    harness.clock.advance(2 * SESSION_TIMEOUT_MS);
    return harness.sessions.size === 0;
  };
  await waitFor(hasEnded, { message: () => `the end of ${harness.sessions.size} sessions` }).finally(async () => {
    for (const end of ends) await end();
  });
}

async function attack({ requests, seed, isDamaged, ending }: Connection): Promise<RawSocket> {
  const socket = (await RawSocket.connect(harness.port)).read();
  const text = Buffer.from(requests.map((parts) => textOf(parts, victim.id)).join(''));
  const random = createRandom(seed);
  for (const piece of pieces(isDamaged ? havoc(text, seed) : text, seed)) {
    if (socket.isClosed) break;
    socket.socket.write(piece);
    if (random() < 0.1) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  if (ending === 'end') socket.socket.end();
  if (ending === 'reset') socket.socket.resetAndDestroy();
  return socket;
}

/** Whatever others send meanwhile: each of these gets its own answer. */
async function askHonestly(): Promise<void> {
  const name = `honest-${++count}`;
  const [legacy, current] = await Promise.all([
    // Under ids that attackers use as well.
    honest.post(call(1, name)),
    postModern(harness, modernCall(1, name)),
  ]);
  for (const answer of [legacy, current]) {
    const text = await answer.text();
    insist(answer.status === 200 && text.includes(`"name":"${name}"`), () => `${answer.status} ${text} for ${name}`);
  }
}

export const requests = fuzzTarget({
  name: 'requests',
  promise: 'whatever is sent to the sockets, honest clients of both eras are answered, and nothing fails or stays',
  runs: 40,
  input: fc.array(connection, { minLength: 1, maxLength: 5 }),
  open,
  close,
  holds: async (connections) => {
    const attacks = connections.map(attack);
    await askHonestly();
    const sockets = await Promise.all(attacks);
    await askHonestly();
    for (const { socket } of sockets) socket.destroy();
    await waitFor(() => harness.modernCalls.size === 0, { message: 'the end of all calls' });
    for (const { received } of sockets) insist(!/^HTTP\/1\.1 50[0-24-9]/m.test(received), () => received);
    const failures = harness.logLines.filter(
      (line) => line.includes('failed internally') || line.includes('"level":60'),
    );
    insist(failures.length === 0, () => failures.join('\n'));
    (harness.logLines as string[]).length = 0;
    if (harness.sessions.size > MAX_SESSIONS / 2) await startAnew();
  },
});

/** Time ends the sessions that attackers have opened. */
async function startAnew(): Promise<void> {
  await close();
  await open();
}
