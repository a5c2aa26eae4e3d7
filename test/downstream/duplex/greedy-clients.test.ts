/** Clients on connections that both ends keep, who want more memory than there is for them. */
import test, { type ExecutionContext } from 'ava';
import { MAX_QUEUED_BYTES } from '../../../src/downstream/http/response-writer.ts';
import { BODIES_AT_A_TIME, FREE_BODY_BYTES } from '../../../src/http/server/read-body.ts';
import type { SessionRegistry } from '../../../src/relay/sessions/session-registry.ts';
import type { FakeServer } from '../../support/fake-server.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { initialize } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';
import { frame, OPCODES, openRawWebSocket } from '../../support/websocket-frames.ts';
import { openStreamBridge } from '../byte-stream/stream-bridge.ts';

const MAX_MESSAGE_BYTES = 256 * 1024;
/** As large as a message may be, in two parts. */
const LARGE = {
  begin: `{"jsonrpc":"2.0","id":"large","method":"ping","params":{"x":"${'x'.repeat(MAX_MESSAGE_BYTES - 1000)}`,
  end: '"}}',
};

interface Client {
  say(message: object): void;
  beginLarge(): void;
  endLarge(): void;
  stopReading(): void;
  leave(): void;
  /** All that it was told, as it came. */
  readonly heard: string;
}

interface Carrier {
  readonly server: FakeServer;
  readonly sessions: SessionRegistry;
  open(): Promise<Client>;
}

async function overWebSocket(t: ExecutionContext): Promise<Carrier> {
  const { port, server, sessions } = await startHttpHarness(t, { maxMessageBytes: MAX_MESSAGE_BYTES });
  const open = async (): Promise<Client> => {
    const raw = await openRawWebSocket(port);
    t.teardown(() => raw.destroy());
    return {
      say: (message) => void raw.socket.write(frame(JSON.stringify(message))),
      beginLarge: () => void raw.socket.write(frame(LARGE.begin, { fin: false })),
      endLarge: () => void raw.socket.write(frame(LARGE.end, { opcode: OPCODES.continuation })),
      stopReading: () => void raw.socket.pause(),
      leave: () => raw.destroy(),
      get heard() {
        return raw.received;
      },
    };
  };
  return { server, sessions, open };
}

async function overByteStream(t: ExecutionContext): Promise<Carrier> {
  const { server, sessions, open: connect } = await openStreamBridge(t, { maxMessageBytes: MAX_MESSAGE_BYTES });
  const open = async (): Promise<Client> => {
    const { socket } = await connect();
    let heard = '';
    socket.on('data', (text) => {
      heard += text;
    });
    return {
      say: (message) => void socket.write(`${JSON.stringify(message)}\n`),
      beginLarge: () => void socket.write(LARGE.begin),
      endLarge: () => void socket.write(`${LARGE.end}\n`),
      stopReading: () => void socket.pause(),
      leave: () => void socket.destroy(),
      get heard() {
        return heard;
      },
    };
  };
  return { server, sessions, open };
}

const isRefused = ({ heard }: Client): boolean => heard.includes('Too many large messages are being received');
const openMany = (count: number, { open }: Carrier) => Promise.all(Array.from({ length: count }, () => open()));

for (const [title, start] of Object.entries({ WebSocket: overWebSocket, 'byte stream': overByteStream })) {
  test(`${title}: unfinished messages hold no more together than the limit, and small ones get in`, async (t) => {
    const carrier = await start(t);
    const fitting = Math.floor((BODIES_AT_A_TIME * MAX_MESSAGE_BYTES) / (MAX_MESSAGE_BYTES - FREE_BODY_BYTES));
    const clients = await openMany(2 * fitting, carrier);
    for (const client of clients) client.beginLarge();
    const refused = () => clients.filter(isRefused).length;
    await waitFor(() => refused() >= fitting - 1, { message: () => `${refused()} refusals` });
    t.true(refused() <= fitting + 1, `what fits is kept: ${refused()} of ${clients.length} were refused`);
    const small = await carrier.open();
    small.say(initialize());
    await waitFor(() => small.heard.includes('"protocolVersion"'), { message: 'an answer' });
    // Whoever leaves frees capacity.
    carrier.server.scripts.set('ping', (request, connection) => connection.answer(request));
    for (const client of clients) client.leave();
    await waitFor(async () => {
      const next = await carrier.open();
      next.say(initialize());
      next.beginLarge();
      next.endLarge();
      await waitFor(() => isRefused(next) || next.heard.includes('"large"'), { message: 'an answer or a refusal' });
      return !isRefused(next);
    });
  });

  test(`${title}: a client that reads nothing is let go when its server cannot wait and too much waits`, async (t) => {
    const carrier = await start(t);
    const client = await carrier.open();
    client.say(initialize());
    await waitFor(() => client.heard.includes('"protocolVersion"'), { message: 'an answer' });
    client.stopReading();
    const connection = carrier.server.latest;
    const message = { level: 'info', data: 'x'.repeat(MAX_MESSAGE_BYTES) };
    let saidBytes = 0;
    // It goes on whether or not it is told to wait, as a server does that others use as well.
    await waitFor(() => {
      for (let n = 0; n < 4; n += 1) connection.notify('notifications/message', message);
      saidBytes += 4 * MAX_MESSAGE_BYTES;
      return carrier.sessions.size === 0;
    });
    // The operating system keeps some of it between the two.
    t.true(saidBytes < MAX_QUEUED_BYTES + 16 * 1024 * 1024, `${saidBytes} bytes`);
    t.is(connection.closedFor?.code, 'ERR_SESSION_CLOSED');
  });
}
