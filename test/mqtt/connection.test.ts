import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import type { IPublishPacket, Packet } from 'mqtt-packet';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import {
  type BrokerTerms,
  KEEP_ALIVE_S,
  MqttConnection,
  type MqttConnectionOptions,
  type OversizedMessage,
  RECEIVE_MAXIMUM,
  type ReceivedMessage,
  type Settlement,
} from '../../src/mqtt/connection.ts';
import { type Approach, endError, type MqttEnd } from '../../src/mqtt/end-error.ts';
import { openBrokerSocket } from '../../src/mqtt/open-socket.ts';
import { collectLog } from '../process/collected-log.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { type ScriptedBroker, type ScriptedBrokerOptions, startScriptedBroker } from '../support/scripted-broker.ts';
import { waitFor } from '../support/wait-for.ts';

const { clock: systemClock } = createSystemDeps(collectLog().log);
const MAX_MESSAGE_BYTES = 100_000;

class Recorder {
  terms: BrokerTerms | undefined;
  readonly messages: ReceivedMessage[] = [];
  readonly oversizedMessages: OversizedMessage[] = [];
  drains = 0;
  readonly ends: MqttEnd[] = [];

  connected(terms: BrokerTerms): void {
    this.terms = terms;
  }
  received(message: ReceivedMessage): void {
    this.messages.push(message);
  }
  oversized(message: OversizedMessage): void {
    this.oversizedMessages.push(message);
  }
  drained(): void {
    this.drains += 1;
  }
  ended(end: MqttEnd): void {
    this.ends.push(end);
  }
  whenEnded(): Promise<MqttEnd> {
    return waitFor(() => this.ends[0], { message: 'the end' });
  }
}

function connectTo(t: ExecutionContext, port: number, options: Partial<MqttConnectionOptions> = {}) {
  const recorder = new Recorder();
  const connection = new MqttConnection(
    {
      broker: openBrokerSocket({ host: '127.0.0.1', port, tls: 'off' }, undefined),
      clientId: 'me',
      username: 'user',
      password: 'secret',
      will: { topic: 'gone', payload: Buffer.from('bye'), retain: true },
      properties: { 'MCP-COMPONENT-TYPE': 'mcp-client' },
      maxMessageBytes: MAX_MESSAGE_BYTES,
      connectTimeoutMs: 10_000,
      clock: systemClock,
      ...options,
    },
    recorder,
  );
  t.teardown(() => connection.destroy());
  return { recorder, connection };
}

async function open(
  t: ExecutionContext,
  scripted: ScriptedBrokerOptions = {},
  options: Partial<MqttConnectionOptions> = {},
) {
  const broker = await startScriptedBroker(t, scripted);
  const { recorder, connection } = connectTo(t, broker.port, options);
  await waitFor(() => recorder.terms);
  return { broker, recorder, connection };
}

const packetsOf = (broker: ScriptedBroker): readonly Packet[] => broker.connections[0]?.packets ?? [];
const published = (broker: ScriptedBroker): readonly IPublishPacket[] =>
  packetsOf(broker).filter((packet): packet is IPublishPacket => packet.cmd === 'publish');
const message = (payload: string, messageId?: number): IPublishPacket => ({
  cmd: 'publish',
  topic: 'a',
  payload,
  dup: false,
  retain: false,
  ...(messageId === undefined ? { qos: 0 } : { qos: 1, messageId }),
});

test('connects with a clean session that ends with the connection, and its account and will', async (t) => {
  const { broker } = await open(t);
  const [connect] = packetsOf(broker);
  t.like(connect, {
    cmd: 'connect',
    protocolVersion: 5,
    clean: true,
    clientId: 'me',
    username: 'user',
    keepalive: KEEP_ALIVE_S,
    properties: {
      sessionExpiryInterval: 0,
      receiveMaximum: RECEIVE_MAXIMUM,
      userProperties: { 'MCP-COMPONENT-TYPE': 'mcp-client' },
    },
  });
  if (connect?.cmd !== 'connect') return t.fail();
  t.is(connect.password?.toString(), 'secret');
  t.is(connect.will?.topic, 'gone');
  t.is(connect.will?.payload.toString(), 'bye');
  t.is(connect.will?.retain, true);
});

test('publishes no more than the broker takes without an acknowledgment, and the rest in order when it acknowledges', async (t) => {
  const { broker, recorder, connection } = await open(t, {
    connack: { properties: { receiveMaximum: 2 } },
    handle: (packet) => packet.cmd === 'publish',
  });
  const settled: number[] = [];
  const accepted = [0, 1, 2, 3].map((index) =>
    connection.publish({ topic: 'a', payload: Buffer.from(String(index)), properties: {} }, () => settled.push(index)),
  );
  t.deepEqual(accepted, [true, false, false, false]);
  t.true(connection.isFull);
  await waitFor(() => published(broker).length === 2);
  const [one] = broker.connections;
  for (const count of [3, 4]) {
    one?.send({ cmd: 'puback', messageId: published(broker)[count - 3]?.messageId ?? 0, reasonCode: 0 });
    await waitFor(() => published(broker).length === count);
  }
  t.deepEqual(
    published(broker).map(({ payload }) => payload.toString()),
    ['0', '1', '2', '3'],
  );
  t.is(recorder.drains, 0);
  for (const { messageId } of published(broker).slice(2)) one?.send({ cmd: 'puback', messageId: messageId ?? 0 });
  await waitFor(() => settled.length === 4);
  t.is(recorder.drains, 1);
  t.deepEqual(settled, [0, 1, 2, 3]);
  t.false(connection.isFull);
});

test('tells what became of a message: taken, for nobody, refused, too large', async (t) => {
  const codes = [0, 16, 135];
  const { connection } = await open(t, {
    connack: { properties: { maximumPacketSize: 2000 } },
    handle: (packet, { send }) => {
      if (packet.cmd !== 'publish') return false;
      send({ cmd: 'puback', messageId: packet.messageId ?? 0, reasonCode: codes.shift() ?? 0 });
      return true;
    },
  });
  const settled: Settlement[] = [];
  for (const length of [1, 1, 1, 2000]) {
    connection.publish({ topic: 'a', payload: Buffer.alloc(length), properties: {} }, (of) => settled.push(of));
  }
  await waitFor(() => settled.length === 4);
  t.deepEqual(
    settled.map(({ kind }) => kind),
    ['too-large', 'taken', 'nobody', 'refused'],
  );
});

test('publishes without acknowledgments at a broker that has only QoS 0', async (t) => {
  const { broker, connection } = await open(t, { connack: { properties: { maximumQoS: 0 } } });
  const settled: Settlement[] = [];
  connection.publish({ topic: 'a', payload: Buffer.from('x'), properties: {} }, (of) => settled.push(of));
  await waitFor(() => published(broker).length === 1);
  t.is(published(broker)[0]?.qos, 0);
  t.deepEqual(settled, [{ kind: 'taken' }]);
});

test('a paused connection acknowledges nothing that waits, and delivers it in order when it is resumed', async (t) => {
  const { broker, recorder, connection } = await open(t);
  const [one] = broker.connections;
  const acknowledged = (): number => packetsOf(broker).filter(({ cmd }) => cmd === 'puback').length;
  connection.pause();
  for (let id = 1; id <= 3; id += 1) one?.send(message(String(id), id));
  let isPonged = false;
  connection.ping(() => {
    isPonged = true;
  });
  await waitFor(() => isPonged);
  t.is(recorder.messages.length, 0);
  t.is(acknowledged(), 0);
  connection.resume();
  t.deepEqual(
    recorder.messages.map(({ payload }) => payload.toString()),
    ['1', '2', '3'],
  );
  await waitFor(() => acknowledged() === 3);
});

test('a broker that goes on sending to a paused connection is not read anymore', async (t) => {
  const { broker, recorder, connection } = await open(t);
  const [one] = broker.connections;
  connection.pause();
  const payload = 'x'.repeat(MAX_MESSAGE_BYTES);
  for (let count = 0; count < 400; count += 1) one?.send(message(payload));
  // What the systems of both ends keep for a socket is some megabytes.
  const waiting = (): number => one?.socket.writableLength ?? 0;
  let before = -1;
  await waitFor(() => {
    const isSettled = before === waiting() && before > 0;
    before = waiting();
    return isSettled;
  });
  t.true(waiting() > 10 * MAX_MESSAGE_BYTES);
  connection.resume();
  await waitFor(() => recorder.messages.length === 400);
});

test('a message over the limit is reported by its ends and acknowledged', async (t) => {
  const { broker, recorder } = await open(t);
  broker.connections[0]?.send(message(`{"id":5,${'x'.repeat(MAX_MESSAGE_BYTES)}`, 9));
  const [oversized] = await waitFor(() => recorder.oversizedMessages.length > 0 && recorder.oversizedMessages);
  t.true(oversized?.payload.toString().startsWith('{"id":5,'));
  await waitFor(() => packetsOf(broker).some((packet) => packet.cmd === 'puback' && packet.messageId === 9));
});

test('pings a silent broker, and gives it up when it does not answer', async (t) => {
  const clock = new FakeClock();
  const { broker, recorder } = await open(t, { handle: ({ cmd }) => cmd === 'pingreq' }, { clock });
  clock.advance(KEEP_ALIVE_S * 500);
  await waitFor(() => packetsOf(broker).some(({ cmd }) => cmd === 'pingreq'));
  t.deepEqual(recorder.ends, []);
  clock.advance(KEEP_ALIVE_S * 500);
  t.deepEqual(recorder.ends, [{ kind: 'silent', afterMs: KEEP_ALIVE_S * 500 }]);
});

test('keeps alive as often as the broker wants it', async (t) => {
  const clock = new FakeClock();
  const { broker } = await open(t, { connack: { properties: { serverKeepAlive: 10 } } }, { clock });
  clock.advance(5000);
  await waitFor(() => packetsOf(broker).some(({ cmd }) => cmd === 'pingreq'));
  t.pass();
});

test('gives up a broker that does not accept the connection in time', async (t) => {
  const clock = new FakeClock();
  const broker = await startScriptedBroker(t, { connack: undefined });
  const { recorder } = connectTo(t, broker.port, { clock, connectTimeoutMs: 3000 });
  await waitFor(() => packetsOf(broker).length > 0);
  clock.advance(3000);
  t.deepEqual(recorder.ends, [{ kind: 'slow', afterMs: 3000 }]);
});

test('close sends what waits and says goodbye, so that the will is not published', async (t) => {
  const { broker, recorder, connection } = await open(t, {
    connack: { properties: { receiveMaximum: 1 } },
    handle: ({ cmd }) => cmd === 'publish',
  });
  for (const payload of ['1', '2']) connection.publish({ topic: 'a', payload: Buffer.from(payload), properties: {} });
  connection.close();
  await connection.gone;
  t.deepEqual(
    packetsOf(broker).map(({ cmd }) => cmd),
    ['connect', 'publish', 'publish', 'disconnect'],
  );
  t.deepEqual(recorder.ends, []);
});

// ---- hostile brokers

const APPROACH: Approach = {
  tls: 'off',
  hasAccount: true,
  options: { account: 'with --user', ca: '--ca', clientCertificate: undefined, connectTimeout: undefined },
};

/** The error for a broker that does this with each socket. */
async function errorAfter(t: ExecutionContext, accept: (socket: Socket) => void) {
  const broker = await startScriptedBroker(t, {
    accept: (socket) => {
      accept(socket);
      return true;
    },
  });
  const { recorder, connection } = connectTo(t, broker.port);
  const error = endError('mqtt://broker', await recorder.whenEnded(), APPROACH);
  await connection.gone;
  t.is(recorder.ends.length, 1);
  return error;
}

for (const [what, bytes] of [
  ['garbage', Buffer.from('SSH-2.0-OpenSSH\r\n')],
  ['HTTP', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['a length without end', Buffer.from([0x20, 0xff, 0xff, 0xff, 0xff, 0xff])],
  ['a huge CONNACK', Buffer.from([0x20, 0xff, 0xff, 0xff, 0x7f])],
  ['a message before it accepts', Buffer.from([0x30, 0x04, 0x00, 0x01, 0x61, 0x00])],
  ['the answer of MQTT 3', Buffer.from([0x20, 0x02, 0x00, 0x01])],
  ['packets of no known type', Buffer.from([0x00, 0x00])],
] as const) {
  test(`a broker that says ${what} gets no further, and the error says so`, async (t) => {
    const error = await errorAfter(t, (socket) => void socket.write(bytes));
    t.regex(error.message, /^The broker at mqtt:\/\/broker (sent|refused)/);
    t.regex(error.message, /MQTT 5|reason 1/);
  });
}

for (const [what, packet] of [
  ['an acknowledgment of nothing', { cmd: 'puback', messageId: 77 }],
  ['an answer to no subscription', { cmd: 'suback', messageId: 77, granted: [0] }],
  ['an answer to no ping', { cmd: 'pingresp' }],
  ['a second CONNACK', { cmd: 'connack', sessionPresent: false, reasonCode: 0 }],
  ['QoS 2', { ...message('x'), qos: 2, messageId: 1 }],
  ['a message without a topic', { ...message('x'), topic: '' }],
  ['a subscription', { cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'a', qos: 0 }] }],
  ['AUTH', { cmd: 'auth', reasonCode: 0x18 }],
] as const) {
  test(`a broker that sends ${what} on an open connection is left`, async (t) => {
    const { broker, recorder } = await open(t);
    broker.connections[0]?.send(packet as Packet);
    t.is((await recorder.whenEnded()).kind, 'malformed');
    await waitFor(() => packetsOf(broker).some(({ cmd }) => cmd === 'disconnect'));
  });
}

test('nothing is delivered that follows a mistake in the same bytes', async (t) => {
  const { broker, recorder } = await open(t);
  const [one] = broker.connections;
  one?.socket.cork();
  one?.send({ cmd: 'pingresp' });
  one?.send(message('late'));
  one?.socket.uncork();
  await recorder.whenEnded();
  t.deepEqual(recorder.messages, []);
});

test('a broker that acknowledges no subscription is left before all packet ids are used up', async (t) => {
  const { recorder, connection } = await open(t, { handle: ({ cmd }) => cmd === 'subscribe' });
  for (let count = 0; count < 5000; count += 1) connection.subscribe([{ filter: 'a', wantsRetained: false }], () => {});
  t.is((await recorder.whenEnded()).kind, 'malformed');
});

// ---- errors

for (const [reasonCode, code, exit] of [
  [134, 'ERR_UPSTREAM_AUTH', 77],
  [135, 'ERR_UPSTREAM_AUTH', 77],
  [132, 'ERR_UPSTREAM_CONNECT', 69],
  [136, 'ERR_UPSTREAM_CONNECT', 69],
] as const) {
  test(`a refusal with reason ${reasonCode} is ${code}`, async (t) => {
    const broker = await startScriptedBroker(t, {
      connack: { reasonCode, properties: { reasonString: 'not you\u0007' } },
    });
    const { recorder } = connectTo(t, broker.port);
    const error = endError('mqtt://broker', await recorder.whenEnded(), APPROACH);
    t.is(error.code, code);
    t.is(error.audiences.exit, exit);
    t.true(error.message.includes(`(${reasonCode}), "not you"`), error.message);
    t.notRegex(error.message, /secret/);
  });
}

test('a broker that ends the connection says why', async (t) => {
  const { broker, recorder } = await open(t);
  broker.connections[0]?.send({ cmd: 'disconnect', reasonCode: 0x8b });
  const error = endError('mqtt://broker', await recorder.whenEnded(), APPROACH);
  t.is(error.code, 'ERR_UPSTREAM_CLOSED');
  t.is(error.message, 'The broker at mqtt://broker ended the connection: server shutting down (139).');
});
