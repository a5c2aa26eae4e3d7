import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { WebSocket, WebSocketServer } from 'ws';
import { createSystemDeps } from '../../../src/cli/system-deps.ts';
import {
  type ConnectionEnd,
  FRAMES_PER_TURN,
  HIGH_WATER_BYTES,
  LIBRARY_OPTIONS,
  MAX_MISSED_PINGS,
  PING_MS,
  WebSocketConnection,
  type WebSocketConnectionOptions,
} from '../../../src/http/websocket/connection.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { frame, OPCODES, openRawWebSocket } from '../../support/websocket-frames.ts';

const { clock } = createSystemDeps(pino({ level: 'silent' }));

class Listener {
  readonly messages: string[] = [];
  readonly ends: ConnectionEnd[] = [];
  drains = 0;
  message(bytes: Buffer): void {
    this.messages.push(bytes.toString());
  }
  drained(): void {
    this.drains += 1;
  }
  ended(end: ConnectionEnd): void {
    this.ends.push(end);
  }
}

/** Our end is that of the server; the peer is a client of `ws`. */
async function open(t: ExecutionContext, options: Partial<WebSocketConnectionOptions> = {}) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', maxPayload: 1024 * 1024, ...LIBRARY_OPTIONS });
  await once(server, 'listening');
  const listener = new Listener();
  const opened = new Promise<WebSocketConnection>((resolve) =>
    server.on('connection', (socket, { socket: stream }) =>
      resolve(new WebSocketConnection({ socket, stream: stream as Socket, clock, ...options }, listener)),
    ),
  );
  const peer = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  peer.on('error', () => undefined);
  await once(peer, 'open');
  t.teardown(() => {
    peer.terminate();
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  const connection = await opened;
  const [socket] = server.clients;
  if (socket === undefined) throw new Error('the server has one client');
  return { connection, socket, listener, peer };
}

/** As `open`, but the peer decides every byte. */
async function openRaw(t: ExecutionContext) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', ...LIBRARY_OPTIONS });
  await once(server, 'listening');
  const listener = new Listener();
  const opened = new Promise<WebSocketConnection>((resolve) =>
    server.on('connection', (socket, { socket: stream }) =>
      resolve(new WebSocketConnection({ socket, stream: stream as Socket, clock }, listener)),
    ),
  );
  const peer = await openRawWebSocket((server.address() as AddressInfo).port);
  t.teardown(() => {
    peer.destroy();
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return { connection: await opened, listener, peer: peer.socket };
}

const FLOOD = 20 * FRAMES_PER_TURN + 7;
const FLOOD_TEXTS = Array.from({ length: FLOOD }, (_, index) => `{"n":${index}}`);
const CLOSE = frame(Buffer.of(0x03, 0xe8), { opcode: OPCODES.close });

/** Many small messages at once, and pings and fragments between them. */
function flood(...end: readonly Buffer[]): Buffer {
  const frames = FLOOD_TEXTS.flatMap((text, index) => {
    if (index % 10 === 3) return [frame('', { opcode: OPCODES.ping }), frame(text)];
    if (index % 10 !== 7) return [frame(text)];
    return [frame(text.slice(0, 2), { fin: false }), frame(text.slice(2), { opcode: OPCODES.continuation })];
  });
  return Buffer.concat([...frames, ...end]);
}

test('sends each message as one frame of text, in order, however many come at once', async (t) => {
  const { connection, peer } = await open(t);
  const received: string[] = [];
  peer.on('message', (data, isBinary) => received.push(isBinary ? 'binary' : String(data)));
  const messages = Array.from({ length: 200 }, (_, index) => `{"n":${index}}`);
  for (const message of messages) connection.send(Buffer.from(message));
  await waitFor(() => received.length === messages.length);
  t.deepEqual(received, messages);
});

test('is full where the peer does not read, and tells once when there is capacity again', async (t) => {
  const { connection, listener, peer } = await open(t);
  peer.pause();
  const message = Buffer.alloc(16 * 1024, 'x');
  let count = 0;
  while (connection.send(message)) {
    count += 1;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  t.true(connection.isFull);
  t.true(count * message.length >= HIGH_WATER_BYTES - message.length);
  t.is(listener.drains, 0);
  peer.resume();
  await waitFor(() => listener.drains > 0);
  t.is(listener.drains, 1);
  t.false(connection.isFull);
});

test('reads nothing while it is paused, and all of it afterward', async (t) => {
  const { connection, listener, peer } = await open(t);
  connection.pause();
  const message = 'y'.repeat(64 * 1024);
  for (let sent = 0; sent < 200; sent += 1) peer.send(message);
  await new Promise<void>((resolve) => setImmediate(resolve));
  // What does not fit into the buffers of the system waits with the peer.
  t.true(peer.bufferedAmount > 0);
  t.true(listener.messages.length <= 1);
  connection.resume();
  await waitFor(() => listener.messages.length === 200);
  t.true(listener.messages.every((text) => text === message));
});

test('takes so many frames in a turn, several of them, and leaves the others time in between', async (t) => {
  const { listener, peer } = await openRaw(t);
  const told: number[] = [];
  let before = 0;
  let isFlooded = true;
  const count = (): void => {
    told.push(listener.messages.length - before);
    before = listener.messages.length;
    if (isFlooded) setImmediate(count);
  };
  setImmediate(count);
  peer.write(flood());
  await waitFor(() => listener.messages.length === FLOOD);
  isFlooded = false;
  t.deepEqual(listener.messages, FLOOD_TEXTS);
  // A turn may end between two counts.
  t.true(Math.max(...told) <= 2 * FRAMES_PER_TURN, told.join());
  t.true(Math.max(...told) > FRAMES_PER_TURN / 2, told.join());
});

test('tells all that a peer sent before it closed the connection, or ended it without a word', async (t) => {
  const closed = await openRaw(t);
  closed.peer.write(flood(CLOSE, frame('too late')));
  await waitFor(() => closed.listener.ends.length > 0);
  t.deepEqual(closed.listener.messages, FLOOD_TEXTS);
  t.deepEqual(closed.listener.ends, [{ kind: 'closed', code: 1000, reason: '' }]);
  const ended = await openRaw(t);
  ended.peer.end(flood());
  await waitFor(() => ended.listener.ends.length > 0);
  t.deepEqual(ended.listener.messages, FLOOD_TEXTS);
  t.is(ended.listener.ends.length, 1);
});

test('tells nothing twice of a peer that floods and is cut off', async (t) => {
  const { listener, peer } = await openRaw(t);
  await new Promise<void>((resolve) => void peer.write(flood(), () => resolve()));
  await waitFor(() => listener.messages.length > 0);
  peer.resetAndDestroy();
  await waitFor(() => listener.ends.length > 0);
  t.deepEqual(listener.ends, [{ kind: 'lost' }]);
  t.deepEqual(listener.messages, FLOOD_TEXTS.slice(0, listener.messages.length));
});

test('looks at nothing that comes behind a frame that no peer may send', async (t) => {
  const { listener, peer } = await openRaw(t);
  peer.write(Buffer.concat([frame('good'), frame('bad', { masked: false }), flood()]));
  await waitFor(() => listener.ends.length > 0);
  t.like(listener.ends[0], { kind: 'refused', code: 1002 });
  peer.write(flood());
  peer.resume();
  await waitFor(() => peer.closed);
  t.deepEqual(listener.messages, ['good']);
  t.is(listener.ends.length, 1);
});

test('a peer that floods can be paused amid its messages, and read on', async (t) => {
  const { connection, listener, peer } = await openRaw(t);
  peer.write(flood());
  await waitFor(() => listener.messages.length > 0);
  connection.pause();
  const told = listener.messages.length;
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  t.true(listener.messages.length <= told + FRAMES_PER_TURN);
  connection.resume();
  await waitFor(() => listener.messages.length === FLOOD);
  t.deepEqual(listener.messages, FLOOD_TEXTS);
});

test('answers the latest of many pings that come at once', async (t) => {
  const { peer } = await openRaw(t);
  const pings = Array.from({ length: 300 }, (_, index) => frame(`${index};`, { opcode: OPCODES.ping }));
  let answers = '';
  peer.on('data', (bytes: Buffer) => {
    answers += bytes.toString('latin1');
  });
  peer.write(Buffer.concat(pings));
  await waitFor(() => answers.endsWith('299;'));
  t.true(answers.split(';').length <= 2 + 2 * (300 / FRAMES_PER_TURN), answers);
});

test('keeps a peer that says nothing but answers pings', async (t) => {
  const fake = new FakeClock();
  const { connection, listener, socket } = await open(t, { clock: fake });
  const pingOnce = async (): Promise<void> => {
    const answered = once(socket, 'pong');
    fake.advance(PING_MS);
    await answered;
  };
  await pingOnce();
  for (let round = 0; round < 6; round += 1) {
    // This look sees the answer to the ping before, and the next one pings again.
    fake.advance(PING_MS);
    await pingOnce();
  }
  t.true(connection.isOpen);
  t.deepEqual(listener.ends, []);
});

test('gives up a peer that answers no pings', async (t) => {
  const fake = new FakeClock();
  const { listener, peer } = await open(t, { clock: fake });
  // It reads nothing, and so answers nothing.
  peer.pause();
  for (let passed = 0; passed <= MAX_MISSED_PINGS; passed += 1) {
    t.deepEqual(listener.ends, []);
    fake.advance(PING_MS);
  }
  t.deepEqual(listener.ends, [{ kind: 'silent' }]);
});

test('gives nobody up while it reads nothing itself', async (t) => {
  const fake = new FakeClock();
  const { connection, listener } = await open(t, { clock: fake });
  connection.pause();
  for (let passed = 0; passed < 10; passed += 1) fake.advance(PING_MS);
  t.deepEqual(listener.ends, []);
  t.true(connection.isOpen);
});

test('tells with which code and words the peer has closed it, fit for a log', async (t) => {
  const { listener, peer } = await open(t);
  peer.close(4001, 'key \u001b[31mrevoked');
  await waitFor(() => listener.ends.length > 0);
  const [end] = listener.ends;
  t.is(end?.kind, 'closed');
  t.true(end?.kind === 'closed' && end.code === 4001 && /revoked/.test(end.reason) && !end.reason.includes('\u001b'));
});

test('tells that it broke', async (t) => {
  const { listener, peer } = await open(t);
  peer.terminate();
  await waitFor(() => listener.ends.length > 0);
  t.deepEqual(listener.ends, [{ kind: 'lost' }]);
});

test('closes with as many of the words as fit, whole characters, and tells nobody of it', async (t) => {
  const { connection, listener, peer } = await open(t);
  const closed = once(peer, 'close');
  connection.send(Buffer.from('the last message'));
  const message = once(peer, 'message');
  connection.close(1001, 'ü'.repeat(100));
  connection.close(1011, 'too late');
  t.is(String((await message)[0]), 'the last message');
  const [code, reason] = await closed;
  t.is(code, 1001);
  t.regex(String(reason), /^ü{50,61}…$/);
  t.deepEqual(listener.ends, []);
  t.true(connection.send(Buffer.from('x')));
});
