/** Clients on connections that both ends keep, who send so many small messages that they alone could keep the bridge busy. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import type { LogEntry } from '../../process/collected-log.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { initialize } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';
import { frame, OPCODES, openRawWebSocket } from '../../support/websocket-frames.ts';
import { openStreamBridge } from '../byte-stream/stream-bridge.ts';

interface Client {
  /** Resolves when the system has taken all of it. */
  say(bytes: Buffer): Promise<void>;
  leave(): void;
  readonly socket: Socket;
  readonly heard: string;
}

interface Carrier {
  entries(): readonly LogEntry[];
  readonly encode: (message: string) => Buffer;
  open(): Promise<Client>;
}

async function overWebSocket(t: ExecutionContext): Promise<Carrier> {
  const { port, logLines } = await startHttpHarness(t, {});
  const open = async (): Promise<Client> => {
    const raw = await openRawWebSocket(port);
    t.teardown(() => raw.destroy());
    return {
      say: (bytes) => new Promise((resolve) => void raw.socket.write(bytes, () => resolve())),
      leave: () => raw.destroy(),
      socket: raw.socket,
      get heard() {
        return raw.received;
      },
    };
  };
  return { entries: () => logLines.map((line) => JSON.parse(line)), encode: (message) => frame(message), open };
}

async function overByteStream(t: ExecutionContext): Promise<Carrier> {
  const { entries, open: connect } = await openStreamBridge(t, {});
  const open = async (): Promise<Client> => {
    const { socket } = await connect();
    let heard = '';
    socket.on('data', (text) => {
      heard += text;
    });
    return {
      say: (bytes) => new Promise((resolve) => void socket.write(bytes, () => resolve())),
      leave: () => void socket.destroy(),
      socket,
      get heard() {
        return heard;
      },
    };
  };
  return { entries: () => entries, encode: (message) => Buffer.from(`${message}\n`), open };
}

const INITIALIZE = JSON.stringify(initialize());
const isServed = ({ heard }: Client): boolean => heard.includes('"protocolVersion"');
/** As much as is read from a connection at a time, with the request behind it: without turns, all of it is taken before anybody else. */
const FLOOD_BYTES = 56 * 1024;

/** Resolves as soon as the answer is there. */
function served<Name extends 'flooding' | 'other'>(client: Client, name: Name): Promise<Name> {
  return new Promise((resolve) => {
    client.socket.on('data', () => {
      if (isServed(client)) resolve(name);
    });
  });
}

/** Sends a flood and then a request, and has another client send one meanwhile: which of them is answered first? */
async function answeredFirst({ open, encode }: Carrier, piece: Buffer): Promise<'flooding' | 'other'> {
  const [flooding, other] = [await open(), await open()];
  const count = Math.floor(FLOOD_BYTES / piece.length);
  const flood = Buffer.concat([...Array.from({ length: count }, () => piece), encode(INITIALIZE)]);
  const isSent = flooding.say(flood);
  void other.say(encode(INITIALIZE));
  const first = await Promise.race([served(other, 'other'), served(flooding, 'flooding')]);
  await isSent;
  await waitFor(() => isServed(flooding), { message: 'the client that floods to be served as well' });
  return first;
}

for (const [title, start] of Object.entries({ WebSocket: overWebSocket, 'byte stream': overByteStream })) {
  test(`${title}: between the messages of a client that floods others are served`, async (t) => {
    const carrier = await start(t);
    t.is(await answeredFirst(carrier, carrier.encode('{}')), 'other');
  });

  test(`${title}: the log has the first of many messages that are wrong in the same way, and then their number`, async (t) => {
    const { open, encode, entries } = await start(t);
    const client = await open();
    const wrong = (): readonly LogEntry[] =>
      entries().filter(({ code, level }) => code === 'ERR_WIRE_MESSAGE' && level >= 40);
    await client.say(Buffer.concat([...Array.from({ length: 1000 }, () => encode('{}')), encode(INITIALIZE)]));
    await waitFor(() => isServed(client));
    t.is(wrong().length, 1);
    client.leave();
    await waitFor(() => wrong().length === 2, { message: 'the number' });
    t.regex(String(wrong()[1]?.msg), /^999 more messages of a client were refused with ERR_WIRE_MESSAGE/);
  });
}

test('WebSocket: between the pings of a client that floods others are served', async (t) => {
  t.is(await answeredFirst(await overWebSocket(t), frame('', { opcode: OPCODES.ping })), 'other');
});

test('WebSocket: between the fragments of a client that floods others are served', async (t) => {
  const message = [...'{ "method":0 }'].map((character, index, { length }) =>
    frame(character, {
      fin: index === length - 1,
      opcode: index === 0 ? OPCODES.text : OPCODES.continuation,
    }),
  );
  t.is(await answeredFirst(await overWebSocket(t), Buffer.concat(message)), 'other');
});

test('WebSocket: messages in fragments of one byte are counted as the memory that they take', async (t) => {
  const maxMessageBytes = 64 * 1024;
  const { port } = await startHttpHarness(t, { maxMessageBytes });
  const fragments = Array.from({ length: 16_000 }, (_, index) =>
    frame('1', { fin: false, opcode: index === 0 ? OPCODES.text : OPCODES.continuation }),
  );
  const bytes = Buffer.concat(fragments);
  const clients = await Promise.all(Array.from({ length: 6 }, () => openRawWebSocket(port)));
  for (const { socket } of clients) {
    t.teardown(() => socket.destroy());
    socket.write(bytes);
  }
  // The limit of all is a mebibyte, and each of these takes two.
  await Promise.all(clients.map((client) => waitFor(() => client.received.includes('Too many large messages'))));
  for (const { socket, isClosed } of clients) if (!isClosed) await once(socket, 'close');
  t.pass();
});
