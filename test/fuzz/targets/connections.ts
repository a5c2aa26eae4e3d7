/** Connections that both ends keep, under whatever a client may send on them. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import fc from 'fast-check';
import { WebSocket } from 'ws';
import type { SessionRegistry } from '../../../src/relay/sessions/session-registry.ts';
import { openStreamBridge } from '../../downstream/byte-stream/stream-bridge.ts';
import { modern, modernCall } from '../../downstream/streamable-stateless/modern-posts.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import { ANY_METHOD, type FakeServer } from '../../support/fake-server.ts';
import { type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import { call, cancellation, initialize, notification } from '../../support/legacy-clients.ts';
import { LineClient } from '../../support/line-client.ts';
import { waitFor } from '../../support/wait-for.ts';
import { frame, OPCODES } from '../../support/websocket-frames.ts';
import { anyMessage, createRandom } from '../../wire/json-text.ts';
import { anySeed, havoc, pieces } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

const MAX_MESSAGE_BYTES = 4096;

const usual = fc.constantFrom<unknown>(
  ...[
    initialize(),
    call(1),
    call(1),
    notification('notifications/initialized'),
    cancellation(1),
    [call(2), call(3)],
    [],
  ],
  ...[modernCall(1), modern(2, 'server/discover'), modern(3, 'subscriptions/listen', { notifications: {} })],
  ...[modern(4, 'tools/list'), modern(5, 'initialize'), { jsonrpc: '2.0', id: 1, result: {} }],
);
const message = fc.oneof(
  { weight: 6, arbitrary: usual.map((value) => JSON.stringify(value)) },
  { weight: 2, arbitrary: anyMessage({ newlines: false }).map(({ text }) => text) },
  { weight: 1, arbitrary: fc.nat(2 * MAX_MESSAGE_BYTES).map((length) => `{"x":"${'x'.repeat(length)}"}`) },
);
const ending = fc.constantFrom('end' as const, 'reset' as const, 'stay' as const);
const maybe = { weight: 9, arbitrary: fc.constant(undefined) };

// ---- WebSocket

const anyFrame = fc.record({
  payload: message,
  opcode: fc.oneof(
    { weight: 8, arbitrary: fc.constant<number>(OPCODES.text) },
    { weight: 4, arbitrary: fc.constantFrom(...Object.values(OPCODES)) },
    { weight: 1, arbitrary: fc.nat(15) },
  ),
  fin: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)),
  reserved: fc.oneof(maybe, fc.nat(7)),
  masked: fc.oneof(maybe, fc.constant(false)),
  length: fc.oneof(maybe, fc.constantFrom(0, 125, 65_535, 2 ** 31, 2 ** 62)),
});
const upgradeLine = fc.constantFrom(
  ...[
    'Sec-WebSocket-Version: 8',
    'Sec-WebSocket-Key: short',
    'Sec-WebSocket-Protocol: mcp',
    'Sec-WebSocket-Protocol: ,',
  ],
  ...[
    'Sec-WebSocket-Protocol: mqtt',
    'Sec-WebSocket-Extensions: permessage-deflate',
    'Upgrade: h2c',
    'Connection: close',
  ],
  ...['Origin: http://evil.test', 'Host: evil.test', 'Content-Length: 5', 'Transfer-Encoding: chunked', 'X: \u0001'],
);
const webSocketAttack = fc.record({
  verb: fc.oneof({ weight: 5, arbitrary: fc.constant('GET') }, fc.constantFrom('POST', 'HEAD', 'CONNECT')),
  path: fc.oneof({ weight: 5, arbitrary: fc.constant('/ws') }, fc.constantFrom('/ws/', '/mcp', '/', '//ws', '*')),
  lines: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(upgradeLine, { maxLength: 3 })),
  frames: fc.array(anyFrame, { maxLength: 6 }),
  damage: fc.constantFrom('none' as const, 'none' as const, 'frames' as const, 'all' as const),
  seed: anySeed,
  ending,
});
type WebSocketAttack = typeof webSocketAttack extends fc.Arbitrary<infer Kind> ? Kind : never;

const HANDSHAKE = [
  ...['Host: 127.0.0.1', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

function bytesOf({ verb, path, lines, frames, damage, seed }: WebSocketAttack): Buffer {
  const head = Buffer.from([`${verb} ${path} HTTP/1.1`, ...HANDSHAKE, ...lines, '', ''].join('\r\n'));
  const all = frames.map(({ payload, opcode, fin, reserved, masked, length }) =>
    frame(payload, {
      opcode,
      fin,
      ...(reserved !== undefined && { reserved }),
      ...(masked !== undefined && { masked }),
      ...(length !== undefined && { length }),
    }),
  );
  const body = Buffer.concat(all);
  if (damage === 'frames') return Buffer.concat([head, havoc(body, seed)]);
  return damage === 'all' ? havoc(Buffer.concat([head, body]), seed) : Buffer.concat([head, body]);
}

// ---- what both have in common

interface Honest {
  /** Calls with this name, and has the answer that names it. */
  ask(name: string): Promise<string>;
}

const ends: (() => unknown)[] = [];
let count = 0;

/** Nothing of a test is needed but its end. */
const untilTheEnd = () => ({ teardown: (end: () => unknown) => void ends.push(end) }) as unknown as ExecutionContext;

async function endAll(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

/** Answers calls with the name of what was called. */
function answerCalls({ scripts }: FakeServer): void {
  scripts.set('tools/call', (asked, connected) => {
    const { params } = asked.json() as { params?: { name?: unknown } };
    connected.answer(asked, { resultType: 'complete', name: params?.name });
  });
}

async function isAnswered({ ask }: Honest): Promise<void> {
  const name = `honest-${++count}`;
  const text = await ask(name);
  insist(text.includes(`"name":"${name}"`), () => `${text} for ${name}`);
}

interface Listener {
  readonly sessions: SessionRegistry;
  readonly clock: FakeClock;
}

type Place = { readonly port: number; readonly host: string } | { readonly path: string };

interface Attacker {
  readonly socket: Socket;
  received: string;
}

async function attack(at: Place, bytes: Buffer, how: Pick<WebSocketAttack, 'seed' | 'ending'>) {
  const socket = connect(at);
  const attacker: Attacker = { socket, received: '' };
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    attacker.received += chunk.toString('latin1');
  });
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  const random = createRandom(how.seed);
  for (const piece of pieces(bytes, how.seed)) {
    if (socket.destroyed) break;
    socket.write(piece);
    if (random() < 0.1) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  if (how.ending === 'end') socket.end();
  // Only TCP knows resets.
  if (how.ending === 'reset') 'path' in at ? socket.destroy() : socket.resetAndDestroy();
  return attacker;
}

/** Nothing is left of attackers but the session of the one who is honest. */
async function areForgotten(attackers: readonly Attacker[], { sessions, clock }: Listener): Promise<void> {
  for (const { socket } of attackers) socket.destroy();
  const hasEnded = (): boolean => {
    clock.advance(10);
    return sessions.size === 1;
  };
  await waitFor(hasEnded, { message: () => `the end of ${sessions.size - 1} sessions` });
}

function nothingFailed(lines: readonly string[]): void {
  const failures = lines.filter((line) => line.includes('failed internally') || line.includes('"level":60'));
  insist(failures.length === 0, () => failures.join('\n'));
}

// ---- the targets

let harness: HttpHarness;
let overWebSocket: Honest;

export const webSockets = fuzzTarget({
  name: 'web-sockets',
  promise: 'whatever is sent for a WebSocket and on it, an honest client is answered, and nothing fails or stays',
  runs: 40,
  input: fc.array(webSocketAttack, { minLength: 1, maxLength: 5 }),
  open: async () => {
    harness = await startHttpHarness(untilTheEnd(), { maxMessageBytes: MAX_MESSAGE_BYTES });
    answerCalls(harness.server);
    const socket = new WebSocket(`ws://127.0.0.1:${harness.port}/ws`, 'mcp');
    ends.push(() => socket.terminate());
    await once(socket, 'open');
    const ask = async (asked: object): Promise<string> => {
      socket.send(JSON.stringify(asked));
      const [data] = await once(socket, 'message');
      return String(data);
    };
    await ask(initialize());
    overWebSocket = { ask: (name) => ask(call(1, name)) };
  },
  close: endAll,
  holds: async (attacks) => {
    const attackers = await Promise.all(
      attacks.map((one) => attack({ port: harness.port, host: '127.0.0.1' }, bytesOf(one), one)),
    );
    await isAnswered(overWebSocket);
    await areForgotten(attackers, harness);
    for (const { received } of attackers) insist(!/^HTTP\/1\.1 50[0-24-9]/m.test(received), () => received);
    nothingFailed(harness.logLines);
    (harness.logLines as string[]).length = 0;
  },
});

const lineAttack = fc.record({
  lines: fc.array(message, { maxLength: 10 }),
  isDamaged: fc.boolean(),
  seed: anySeed,
  ending,
});

let streams: Awaited<ReturnType<typeof openStreamBridge>>;
let overLines: Honest;
let place: Place;

export const byteStreams = fuzzTarget({
  name: 'byte-streams',
  promise: 'whatever is sent as lines, an honest client is answered, and nothing fails or stays',
  runs: 40,
  input: fc.array(lineAttack, { minLength: 1, maxLength: 5 }),
  open: async () => {
    const options = { maxMessageBytes: MAX_MESSAGE_BYTES };
    if (process.platform === 'win32') {
      streams = await openStreamBridge(untilTheEnd(), options);
      place = { port: streams.port, host: '127.0.0.1' };
    } else {
      // What is no JSON ends the connection on a port; on a socket everything that follows is looked at, too.
      const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-fuzz-'));
      ends.push(() => rmSync(folder, { recursive: true }));
      const path = join(folder, 'mcp.sock');
      streams = await openStreamBridge(untilTheEnd(), { ...options, address: { kind: 'socket', path, mode: 0o600 } });
      place = { path };
    }
    answerCalls(streams.server);
    // Whoever has left its side is waited for as long as its calls are open.
    streams.server.scripts.set(ANY_METHOD, (asked, connected) => connected.answer(asked));
    const client = await LineClient.connect(place);
    ends.push(() => client.socket.destroy());
    const ask = (asked: object): Promise<string> => {
      client.write(asked);
      return client.next();
    };
    await ask(initialize());
    overLines = { ask: (name) => ask(call(1, name)) };
  },
  close: endAll,
  holds: async (attacks) => {
    const attackers = await Promise.all(
      attacks.map((one) => {
        const bytes = Buffer.from(`${one.lines.join('\n')}\n`);
        return attack(place, one.isDamaged ? havoc(bytes, one.seed) : bytes, one);
      }),
    );
    await isAnswered(overLines);
    await areForgotten(attackers, streams);
    nothingFailed(streams.entries.map((entry) => JSON.stringify(entry)));
    (streams.entries as unknown[]).length = 0;
  },
});
