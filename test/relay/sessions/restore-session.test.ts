import test from 'ava';
import type { Logger } from 'pino';
import { BridgeError } from '../../../src/errors.ts';
import type { Fields } from '../../../src/mcp/vocabulary/payload.ts';
import { Restoration, type RestoredConnection } from '../../../src/relay/sessions/restore-session.ts';
import { SessionState } from '../../../src/relay/sessions/session-state.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { errorFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { clientFrame } from '../../support/frames.ts';

const OFFER = { protocolVersion: '2025-06-18', capabilities: { tools: { listChanged: true } } };
const GONE = new BridgeError('ERR_UPSTREAM_CLOSED', 'gone');
const LATE = new BridgeError('ERR_UPSTREAM_TIMEOUT', 'late');
const REFUSED = new BridgeError('ERR_UPSTREAM_PROTOCOL', 'refused');
const NO = errorFrame(1, { code: -32603, message: 'no' });

type Delivery = RestoredConnection['delivery'];
type Answer = (answer: Frame | BridgeError) => void;

/** Keeps what it is asked until the test answers. */
class Connection implements RestoredConnection {
  readonly log: Logger;
  readonly delivery: Delivery;
  readonly timeLimit: RestoredConnection['timeLimit'];
  readonly asked: string[] = [];
  readonly answers: Answer[] = [];
  readonly ends: (readonly string[] | BridgeError)[] = [];
  offers: Fields[] = [];
  isFit = true;
  #taken: () => void = () => {};

  constructor(delivery: Delivery, timeLimit: RestoredConnection['timeLimit'], log: Logger) {
    this.delivery = delivery;
    this.timeLimit = timeLimit;
    this.log = log;
  }

  ask(method: string, params: object, answered: Answer): void {
    this.asked.push(`${method} ${JSON.stringify(params)}`);
    this.answers.push(answered);
  }

  tell(method: string, taken: () => void): void {
    this.asked.push(method);
    this.#taken = taken;
  }

  take(): void {
    this.#taken();
  }

  answer(answer: Frame | BridgeError = resultFrame(1, {})): void {
    this.answers.shift()?.(answer);
  }

  offered(offer: Fields): boolean {
    this.offers.push(offer);
    return this.isFit;
  }

  refusal(): BridgeError {
    return REFUSED;
  }

  restored(missed: readonly Frame[]): void {
    this.ends.push(missed.map(({ method = '' }) => method));
  }

  failed(reason: BridgeError): void {
    this.ends.push(reason);
  }
}

function standing(): SessionState {
  const session = new SessionState();
  const succeed = (method: string, params: object, result: object = {}): void =>
    session.succeeded(clientFrame({ id: 1, method, params }), resultFrame(1, result));
  succeed('initialize', { protocolVersion: '2025-06-18' }, OFFER);
  session.isInitialized = true;
  succeed('logging/setLevel', { level: 'debug' });
  for (const uri of ['a:/1', 'a:/2']) succeed('resources/subscribe', { uri });
  return session;
}

function begin(delivery: Delivery, session = standing(), timeoutMs = 1000) {
  const clock = new FakeClock();
  const { log, entries } = collectLog();
  const connection = new Connection(delivery, { clock, timeoutMs, exceeded: () => LATE }, log);
  const restoration = new Restoration(session, connection);
  restoration.start();
  return { connection, clock, entries, session, restoration };
}

const HANDSHAKE = 'initialize {"protocolVersion":"2025-06-18"}';
const WISHES = [
  'logging/setLevel {"level":"debug"}',
  'resources/subscribe {"uri":"a:/1"}',
  'resources/subscribe {"uri":"a:/2"}',
];
const MISSED = [
  'notifications/tools/list_changed',
  'notifications/resources/updated',
  'notifications/resources/updated',
];

test('on a pipe everything is asked for at once after the handshake, and the client goes on', (t) => {
  const { connection, clock } = begin('pipe');
  t.deepEqual(connection.asked, [HANDSHAKE]);
  connection.answer(resultFrame(1, OFFER));
  connection.take();
  t.deepEqual(connection.offers, [OFFER]);
  t.deepEqual(connection.asked, [HANDSHAKE, 'notifications/initialized', ...WISHES]);
  t.deepEqual(connection.ends, [MISSED]);
  clock.advance(10_000);
  for (const _ of WISHES) connection.answer();
  t.deepEqual(connection.ends, [MISSED]);
});

test('where messages may overtake each other each waits for the one before, and the client for all', (t) => {
  const { connection } = begin('separate');
  connection.answer(resultFrame(1, OFFER));
  t.deepEqual(connection.asked, [HANDSHAKE, 'notifications/initialized']);
  connection.take();
  for (const [index] of WISHES.entries()) {
    t.deepEqual(connection.asked.slice(2), WISHES.slice(0, index + 1));
    t.deepEqual(connection.ends, []);
    connection.answer();
  }
  t.deepEqual(connection.ends, [MISSED]);
});

for (const delivery of ['pipe', 'separate'] as const) {
  test(`what the server refuses is told in the log and forgotten: ${delivery}`, (t) => {
    const { connection, session, entries } = begin(delivery);
    connection.answer(resultFrame(1, OFFER));
    connection.take();
    connection.answer(NO);
    connection.answer(NO);
    connection.answer();
    t.deepEqual(session.wishes() as unknown, [{ method: 'resources/subscribe', params: { uri: 'a:/2' } }]);
    t.deepEqual(
      entries.map(({ level, method }) => [level, method]),
      [
        [40, 'logging/setLevel'],
        [40, 'resources/subscribe'],
      ],
    );
    t.is(connection.ends.length, 1);
  });
}

test('a client that has not finished its handshake goes on with it itself', (t) => {
  const session = standing();
  session.isInitialized = false;
  const { connection } = begin('pipe', session);
  connection.answer(resultFrame(1, OFFER));
  t.deepEqual(connection.asked, [HANDSHAKE]);
  t.deepEqual(connection.ends, [[]]);
});

test('no more is said in a session that the client cannot go on in', (t) => {
  const { connection, clock } = begin('pipe');
  connection.isFit = false;
  connection.answer(resultFrame(1, OFFER));
  t.deepEqual(connection.asked, [HANDSHAKE]);
  t.deepEqual(connection.ends, []);
  t.is(clock.pendingTimers, 0);
});

test('a server that refuses the session, or answers nothing that can be read, is none', (t) => {
  for (const answer of [NO, resultFrame(1, null)]) {
    const { connection, clock } = begin('pipe');
    connection.answer(answer);
    t.deepEqual(connection.ends, [REFUSED]);
    t.is(clock.pendingTimers, 0);
  }
});

test('a handshake that is not answered in time fails, and its answer does not count anymore', (t) => {
  const { connection, clock } = begin('pipe');
  clock.advance(1000);
  t.deepEqual(connection.ends, [LATE]);
  connection.answer(resultFrame(1, OFFER));
  t.deepEqual(connection.offers, []);
  t.deepEqual(connection.ends, [LATE]);
});

test('without a limit it is waited for', (t) => {
  const { connection, clock } = begin('pipe', standing(), 0);
  clock.advance(1_000_000);
  t.deepEqual(connection.ends, []);
});

test('where the connection limits each request, nothing else does', (t) => {
  const { log } = collectLog();
  const connection = new Connection('separate', 'perRequest', log);
  new Restoration(standing(), connection).start();
  connection.answer(LATE);
  t.deepEqual(connection.ends, [LATE]);
  t.deepEqual(connection.asked, [HANDSHAKE]);
});

test('a server that cannot be reached on the way ends it', (t) => {
  const { connection, session } = begin('separate');
  connection.answer(resultFrame(1, OFFER));
  connection.take();
  connection.answer(GONE);
  t.deepEqual(connection.ends, [GONE]);
  t.is(connection.asked.length, 3);
  t.is(session.wishes().length, 3, 'nobody has refused anything');
});

test('a restoration that was canceled says nothing more', (t) => {
  const { connection, clock, restoration } = begin('separate');
  connection.answer(resultFrame(1, OFFER));
  restoration.cancel();
  connection.take();
  t.is(connection.asked.length, 2);
  t.deepEqual(connection.ends, []);
  t.is(clock.pendingTimers, 0);
});

test('a restoration that was canceled does not fail anymore', (t) => {
  const { connection, restoration } = begin('separate');
  connection.answer(resultFrame(1, OFFER));
  connection.take();
  restoration.cancel();
  connection.answer(GONE);
  t.deepEqual(connection.ends, []);
});

test('a session that is not known fails, but not while it is being started', async (t) => {
  const { connection } = begin('pipe', new SessionState());
  t.deepEqual(connection.ends, []);
  await Promise.resolve();
  const [end] = connection.ends;
  t.like(end, { code: 'ERR_UPSTREAM_PROTOCOL' });
  t.regex(end instanceof BridgeError ? end.message : '', /initialize parameters were too large to be kept/);
  t.deepEqual(connection.asked, []);
});
