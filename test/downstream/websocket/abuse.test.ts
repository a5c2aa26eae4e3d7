/** What the Autobahn test suite looks at, as far as a server of JSON-RPC is asked for it, and what wears a server out. */
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { WebSocket } from 'ws';
import { CLOSE_TIMEOUT_MS } from '../../../src/http/websocket/connection.ts';
import { type HttpHarness, seriousLines, startHttpHarness } from '../../support/http-harness.ts';
import { initialize, textOf } from '../../support/legacy-clients.ts';
import { RawSocket } from '../../support/raw-socket.ts';
import { waitFor } from '../../support/wait-for.ts';
import { closeFrameIn, frame, OPCODES, openRawWebSocket } from '../../support/websocket-frames.ts';

const MAX_MESSAGE_BYTES = 64 * 1024;
/** How these frames begin, in characters of one byte. */
const [PING, PONG] = ['\u0089', '\u008a'];
const INITIALIZE = textOf(initialize());

const start = (t: ExecutionContext) => startHttpHarness(t, { maxMessageBytes: MAX_MESSAGE_BYTES });

/** Others are served all the same. */
async function isStillServed({ port }: HttpHarness): Promise<boolean> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, 'mcp');
  await once(socket, 'open');
  socket.send(INITIALIZE);
  const [data] = await once(socket, 'message');
  socket.close();
  await once(socket, 'close');
  return /"protocolVersion"/.test(String(data));
}

interface Abuse {
  readonly what: string;
  readonly sent: readonly Buffer[];
  readonly code: number;
}

const INVALID_UTF8 = Buffer.from([0x22, 0xce, 0xba, 0xe1, 0xbd, 0xb9, 0xed, 0xa0, 0x80, 0x22]);

const ABUSES: readonly Abuse[] = [
  { what: 'a frame without a mask', sent: [frame(INITIALIZE, { masked: false })], code: 1002 },
  { what: 'the reserved bit of compression', sent: [frame(INITIALIZE, { reserved: 4 })], code: 1002 },
  { what: 'the second reserved bit', sent: [frame(INITIALIZE, { reserved: 2 })], code: 1002 },
  { what: 'the third reserved bit', sent: [frame(INITIALIZE, { reserved: 1 })], code: 1002 },
  { what: 'an opcode that is reserved for data', sent: [frame('x', { opcode: 3 })], code: 1002 },
  { what: 'an opcode that is reserved for control', sent: [frame('x', { opcode: 11 })], code: 1002 },
  { what: 'a continuation of nothing', sent: [frame('x', { opcode: OPCODES.continuation })], code: 1002 },
  { what: 'a message within another', sent: [frame('{', { fin: false }), frame('{}')], code: 1002 },
  { what: 'a ping in fragments', sent: [frame('x', { opcode: OPCODES.ping, fin: false })], code: 1002 },
  { what: 'a ping that is too long', sent: [frame('x'.repeat(126), { opcode: OPCODES.ping })], code: 1002 },
  { what: 'a close frame of one byte', sent: [frame('x', { opcode: OPCODES.close })], code: 1002 },
  {
    what: 'a close code that nobody may send',
    sent: [frame(Buffer.of(0x03, 0xed), { opcode: OPCODES.close })],
    code: 1002,
  },
  {
    what: 'words of the end that are not UTF-8',
    sent: [frame(Buffer.of(3, 232, 0xff), { opcode: OPCODES.close })],
    code: 1007,
  },
  { what: 'text that is not UTF-8', sent: [frame(INVALID_UTF8)], code: 1007 },
  {
    what: 'text whose fragments are not UTF-8 together',
    sent: [frame('"', { fin: false }), frame(Buffer.of(0xed, 0xa0, 0x80, 0x22), { opcode: OPCODES.continuation })],
    code: 1007,
  },
  { what: 'a binary message that is not UTF-8', sent: [frame(INVALID_UTF8, { opcode: OPCODES.binary })], code: 1003 },
  { what: 'a message over the limit', sent: [frame('x'.repeat(MAX_MESSAGE_BYTES + 1))], code: 1009 },
  { what: 'a length over the limit, with nothing behind it', sent: [frame('', { length: 2 ** 40 })], code: 1009 },
  { what: 'a length that no number holds', sent: [frame('', { length: 2 ** 62 })], code: 1009 },
  {
    what: 'fragments that are over the limit together',
    sent: [frame('x'.repeat(MAX_MESSAGE_BYTES), { fin: false }), frame('x', { opcode: OPCODES.continuation })],
    code: 1009,
  },
  {
    what: 'so many fragments that they take more memory than all messages may',
    sent: [
      frame('[', { fin: false }),
      ...Array.from({ length: 20_000 }, () => frame('1', { fin: false, opcode: OPCODES.continuation })),
    ],
    code: 1013,
  },
];

for (const { what, sent, code } of ABUSES) {
  test(`ends a connection that brings ${what} with ${code}`, async (t) => {
    const harness = await start(t);
    const raw = await openRawWebSocket(harness.port);
    raw.socket.write(Buffer.concat(sent));
    await waitFor(() => closeFrameIn(raw.received) !== undefined, { message: 'a close frame' });
    t.is(closeFrameIn(raw.received)?.code, code);
    // Whoever does not agree to the end is not waited for long.
    harness.clock.advance(CLOSE_TIMEOUT_MS);
    await raw.all();
    t.is(harness.sessions.size, 0);
    t.true(await isStillServed(harness));
  });
}

test('ends a connection that brings more fragments than anybody needs with 1008, where there is memory for them', async (t) => {
  const raw = await openRawWebSocket((await startHttpHarness(t)).port);
  const fragment = frame('1', { fin: false, opcode: OPCODES.continuation });
  raw.socket.write(Buffer.concat([frame('[', { fin: false }), ...Array.from({ length: 20_000 }, () => fragment)]));
  await waitFor(() => closeFrameIn(raw.received) !== undefined, { message: 'a close frame' });
  t.is(closeFrameIn(raw.received)?.code, 1008);
  raw.destroy();
});

test('takes a message in fragments, with pings in between, and one in a binary frame', async (t) => {
  const harness = await start(t);
  const raw = await openRawWebSocket(harness.port);
  const cuts = [INITIALIZE.slice(0, 1), INITIALIZE.slice(1, 40), '', INITIALIZE.slice(40)];
  cuts.forEach((part, index) => {
    const opcode = index === 0 ? OPCODES.text : OPCODES.continuation;
    raw.socket.write(frame(part, { opcode, fin: index === cuts.length - 1 }));
    raw.socket.write(frame(`${index}`, { opcode: OPCODES.ping }));
  });
  await raw.until(/"protocolVersion"/);
  raw.socket.write(frame('{"jsonrpc":"2.0","id":"b","method":"ping"}', { opcode: OPCODES.binary }));
  await harness.server.latest.next('ping');
  raw.destroy();
  t.pass();
});

test('answers a ping with its own words', async (t) => {
  const raw = await openRawWebSocket((await start(t)).port);
  raw.socket.write(frame('are you there', { opcode: OPCODES.ping }));
  const answer = await raw.until(/are you there/);
  t.true(answer.endsWith(`${PONG}\u000dare you there`));
  raw.destroy();
});

test('skips what is no message, and goes on', async (t) => {
  const harness = await start(t);
  const raw = await openRawWebSocket(harness.port);
  for (const nonsense of ['', '   ', 'null', '"text"', '{', '[]', '{"jsonrpc":"2.0"}'])
    raw.socket.write(frame(nonsense));
  raw.socket.write(frame('{"jsonrpc":"1.0","id":7,"method":"ping"}'));
  await raw.until(/"id":7,"error"/);
  raw.socket.write(frame(INITIALIZE));
  await raw.until(/"protocolVersion"/);
  raw.destroy();
  t.pass();
});

test('holds no pongs for a peer that floods with pings and reads nothing', async (t) => {
  const harness = await start(t);
  const raw = await openRawWebSocket(harness.port);
  raw.socket.pause();
  const ping = frame('x'.repeat(125), { opcode: OPCODES.ping });
  const burst = Buffer.concat(Array.from({ length: 2000 }, () => ping));
  const before = process.memoryUsage().arrayBuffers;
  for (let sent = 0; sent < 100; sent += 1) {
    if (!raw.socket.write(burst)) await Promise.race([once(raw.socket, 'drain'), once(raw.socket, 'close')]);
  }
  // 25 MB of pings; what waits to be read by the peer stays at what one connection may hold.
  t.true(process.memoryUsage().arrayBuffers - before < 12 * 1024 * 1024);
  t.true(await isStillServed(harness));
  raw.destroy();
});

test('lets a peer go that vanished without a word, and its session with it', async (t) => {
  const harness = await start(t);
  const raw = await openRawWebSocket(harness.port);
  raw.socket.write(frame(INITIALIZE));
  await raw.until(/"protocolVersion"/);
  t.is(harness.sessions.size, 1);
  // It answers no pings: nothing but the test writes here.
  for (let passed = 0; passed < 5 && !raw.isClosed; passed += 1) {
    harness.clock.advance(25_000);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  await waitFor(() => raw.isClosed);
  t.is(harness.sessions.size, 0);
  t.true(raw.received.includes(`${PING}\u0000`));
});

test('ends the session of a peer that closes only its half of the connection', async (t) => {
  const harness = await start(t);
  const raw = await openRawWebSocket(harness.port);
  raw.socket.write(frame(INITIALIZE));
  await raw.until(/"protocolVersion"/);
  raw.socket.end();
  await raw.all();
  await waitFor(() => harness.sessions.size === 0);
  t.pass();
});

test('ends the session of a peer whose connection is reset', async (t) => {
  const harness = await start(t);
  const raw = await openRawWebSocket(harness.port);
  raw.socket.write(frame(INITIALIZE));
  await raw.until(/"protocolVersion"/);
  raw.socket.resetAndDestroy();
  await waitFor(() => harness.sessions.size === 0);
  t.deepEqual(seriousLines(harness), []);
});

test('agrees to the end with the code of the peer', async (t) => {
  const raw = await openRawWebSocket((await start(t)).port);
  raw.socket.write(frame(Buffer.from([0x03, 0xe8, ...Buffer.from('bye')]), { opcode: OPCODES.close }));
  t.deepEqual(closeFrameIn(await raw.all()), { code: 1000, reason: 'bye' });
});

test('waits no longer for a handshake than for any other head of a request', async (t) => {
  const limits = {
    maxConnections: 10,
    maxHeaderBytes: 4096,
    headersTimeoutMs: 100,
    requestTimeoutMs: 200,
    checkIntervalMs: 20,
  };
  const harness = await startHttpHarness(t, { socketLimits: limits });
  const raw = await RawSocket.connect(harness.port);
  raw.write('GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n');
  t.regex(await raw.all(), /^HTTP\/1\.1 408 /);
});

test('refuses a handshake whose head is too large', async (t) => {
  const raw = (await RawSocket.connect((await start(t)).port)).read();
  raw.request('GET', '/ws', { Upgrade: 'websocket', Connection: 'Upgrade', 'X-Large': 'x'.repeat(20_000) });
  t.regex(await raw.all(), /^HTTP\/1\.1 431 /);
});
