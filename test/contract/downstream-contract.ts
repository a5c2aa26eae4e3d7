import type { ExecutionContext, TestFn } from 'ava';
import { BridgeError } from '../../src/errors.ts';
import type { SessionRegistry } from '../../src/relay/sessions/session-registry.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import type { FakeConnection } from '../support/fake-server.ts';
import { call, cancellation, notification, textOf } from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';

/** A client over the transport under test; initialized. */
export interface ContractClient {
  /** The server's end. */
  readonly connection: FakeConnection;
  /** Sends a message, whatever it is; what comes of it is read with `next`. */
  send(message: object | string): void;
  /** The next message that came, wherever it came, with its bytes as they were. */
  next(): Promise<string>;
  /** Stops and goes on taking what comes. */
  pause(): void;
  resume(): void;
  /** Goes away for good, as the transport has it. */
  leave(): void;
  /** Resolves when the client has been told, or can see, that its session is over. */
  readonly over: Promise<unknown>;
}

/** Clients before one bridge on fake time. */
export interface ContractBridge {
  readonly clock: FakeClock;
  readonly sessions: SessionRegistry;
  connect(): Promise<ContractClient>;
}

export interface DownstreamContract {
  /** How the transport is called in the titles. */
  readonly name: string;
  /** Gone when the test ends. */
  readonly start: (t: ExecutionContext) => Promise<ContractBridge>;
  /**
   * `dropped`: the transport may deliver a request twice, so the second one with an id is taken for the first. Its error would
   * be taken for the answer.
   */
  readonly usedIds?: 'refused' | 'dropped';
}

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
}

async function nextMessage(client: ContractClient): Promise<Message> {
  return JSON.parse(await client.next()) as Message;
}

/** What every transport toward clients must do, with a real relay and a scripted server behind it. */
export function testDownstreamContract(test: TestFn, { name, start, usedIds = 'refused' }: DownstreamContract): void {
  async function connect(t: ExecutionContext) {
    const bridge = await start(t);
    const client = await bridge.connect();
    return { bridge, client, connection: client.connection };
  }

  test(`${name}: carries a call and its answer byte for byte`, async (t) => {
    const { client, connection } = await connect(t);
    const request =
      '{"params":{"n":1.0e1,"s":"\\u00e9é😀","__proto__":{}},"id":"a\\/b","method":"tools/call","jsonrpc":"2.0"}';
    client.send(request);
    t.is((await connection.next('tools/call')).bytes.toString(), request);
    const answer = '{ "result":{"big":12345678901234567890,"s":"\\u2028 \u2028"}, "jsonrpc":"2.0","id":"a\\/b"}';
    connection.say(answer);
    t.is(await client.next(), answer);
  });

  test(`${name}: tells a numeric id from a text that looks the same`, async (t) => {
    const { client, connection } = await connect(t);
    client.send(call(1));
    client.send(call('1'));
    await connection.next('tools/call');
    await connection.next('tools/call');
    connection.say('{"jsonrpc":"2.0","id":"1","result":{"for":"text"}}');
    connection.say('{"jsonrpc":"2.0","id":1,"result":{"for":"number"}}');
    const answers = [await nextMessage(client), await nextMessage(client)];
    const byKind = new Map(answers.map(({ id, result }) => [typeof id, result?.for]));
    t.is(byKind.get('string'), 'text');
    t.is(byKind.get('number'), 'number');
  });

  test(`${name}: passes an error of the server on as it is`, async (t) => {
    const { client, connection } = await connect(t);
    client.send(call(1));
    await connection.next('tools/call');
    const error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"no","data":{"x":[1]}}}';
    connection.say(error);
    t.is(await client.next(), error);
  });

  test(`${name}: sends progress before the answer, in order`, async (t) => {
    const { client, connection } = await connect(t);
    client.send(call(1, 'work', { progressToken: 'p' }));
    const request = await connection.next('tools/call');
    for (const progress of [1, 2, 3]) connection.notify('notifications/progress', { progressToken: 'p', progress });
    connection.answer(request);
    const seen = [];
    for (let count = 0; count < 4; count += 1) {
      const { params, id } = await nextMessage(client);
      seen.push(params?.progress ?? `answer ${id}`);
    }
    t.deepEqual(seen, [1, 2, 3, 'answer 1']);
  });

  test(`${name}: carries a question of the server and its answer`, async (t) => {
    const { client, connection } = await connect(t);
    client.send(call(1));
    const request = await connection.next('tools/call');
    const question = '{"jsonrpc":"2.0","id":"q/1","method":"sampling/createMessage","params":{"n":1.0}}';
    connection.say(question);
    t.is(await client.next(), question);
    const answer = '{"id":"q/1","result":{"role":"assistant","n":2.00},"jsonrpc":"2.0"}';
    client.send(answer);
    await waitFor(() => connection.answers.length === 1);
    t.is(connection.answers[0]?.bytes.toString(), answer);
    connection.answer(request);
    t.like(await nextMessage(client), { id: 1 });
  });

  test(`${name}: carries methods nobody knows, both ways`, async (t) => {
    const { client, connection } = await connect(t);
    client.send({ jsonrpc: '2.0', id: 1, method: 'vendor/ask', params: [1] });
    const request = await connection.next('vendor/ask');
    connection.ask(2, 'vendor/question');
    t.like(await nextMessage(client), { id: 2, method: 'vendor/question' });
    connection.notify('vendor/news', { x: 1 });
    t.like(await nextMessage(client), { method: 'vendor/news', params: { x: 1 } });
    client.send(notification('vendor/notice'));
    await connection.next('vendor/notice');
    connection.answer(request);
    t.like(await nextMessage(client), { id: 1 });
  });

  test(`${name}: tells a client that a list has changed`, async (t) => {
    const { client, connection } = await connect(t);
    connection.notify('notifications/tools/list_changed');
    t.like(await nextMessage(client), { method: 'notifications/tools/list_changed' });
  });

  test(`${name}: passes a cancellation on and keeps the late answer from the client`, async (t) => {
    const { client, connection } = await connect(t);
    client.send(call(1));
    const request = await connection.next('tools/call');
    client.send(cancellation(1));
    t.like((await connection.next('notifications/cancelled')).json(), { params: { requestId: 1 } });
    connection.answer(request);
    connection.notify('notifications/tools/list_changed');
    t.like(await nextMessage(client), { method: 'notifications/tools/list_changed' });
  });

  if (usedIds === 'refused')
    test(`${name}: refuses an id that is in use, and still answers the call that has it`, async (t) => {
      const { client, connection } = await connect(t);
      client.send(call(1));
      const request = await connection.next('tools/call');
      client.send(call(1));
      t.like(await nextMessage(client), { id: 1, error: { code: -32600 } });
      connection.answer(request, { ok: true });
      t.like(await nextMessage(client), { id: 1, result: { ok: true } });
    });

  test(`${name}: carries five megabytes there and back`, async (t) => {
    const { client, connection } = await connect(t);
    const text = 'é'.repeat(2_500_000);
    client.send(call(1, text));
    const request = await connection.next('tools/call');
    t.is((request.json() as { params: { name: string } }).params.name, text);
    connection.answer(request, { text });
    t.is((await nextMessage(client)).result?.text, text);
  });

  test(`${name}: answers each of a hundred calls at once with its own answer`, async (t) => {
    const { client, connection } = await connect(t);
    const ids = Array.from({ length: 100 }, (_, id) => id + 1);
    for (const id of ids) client.send(call(id));
    for (const _ of ids) {
      const request = await connection.next('tools/call');
      connection.answer(request, { for: request.id });
    }
    const answered = [];
    for (const _ of ids) {
      const { id, result } = await nextMessage(client);
      t.is(result?.for, id);
      answered.push(Number(id));
    }
    t.deepEqual(
      answered.sort((one, other) => one - other),
      ids,
    );
  });

  test(`${name}: keeps two clients with the same ids apart`, async (t) => {
    const bridge = await start(t);
    const clients = [await bridge.connect(), await bridge.connect()];
    for (const client of clients) client.send(call(1, 'work', { progressToken: 1 }));
    for (const [index, { connection }] of clients.entries()) {
      const request = await connection.next('tools/call');
      connection.notify('notifications/progress', { progressToken: 1, for: index });
      connection.answer(request, { for: index });
    }
    for (const [index, client] of clients.entries()) {
      t.is((await nextMessage(client)).params?.for, index);
      t.is((await nextMessage(client)).result?.for, index);
    }
  });

  test(`${name}: fails the call whose answer could not be taken, and goes on`, async (t) => {
    const { client, connection } = await connect(t);
    client.send(call(1));
    await connection.next('tools/call');
    const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'the answer is too large');
    connection.fault({ error, kind: 'result', id: 1 });
    t.like(await nextMessage(client), { id: 1, error: { code: -32603, message: 'the answer is too large' } });
    client.send(call(2));
    connection.answer(await connection.next('tools/call'));
    t.like(await nextMessage(client), { id: 2 });
  });

  test(`${name}: answers open calls with the reason when the server dies; then the session is over`, async (t) => {
    const { bridge, client, connection } = await connect(t);
    client.send(call(1));
    await connection.next('tools/call');
    connection.die(new BridgeError('ERR_UPSTREAM_EXITED', 'exited with code 3'));
    t.like(await nextMessage(client), { id: 1, error: { code: -32603, message: 'exited with code 3' } });
    await client.over;
    t.is(bridge.sessions.size, 0);
  });

  test(`${name}: lets the server go when the client leaves, and answers what it had asked`, async (t) => {
    const { bridge, client, connection } = await connect(t);
    connection.ask('q', 'roots/list');
    await client.next();
    client.leave();
    await waitFor(() => connection.closedFor, { message: 'the link to close' });
    t.deepEqual(
      connection.answers.map((frame) => [frame.id, frame.kind]),
      [['q', 'error']],
    );
    t.is(bridge.sessions.size, 0);
  });

  test(`${name}: stops the server of a client that does not read, and lets it go on when it does`, async (t) => {
    const bridge = await start(t);
    const [slow, other] = [await bridge.connect(), await bridge.connect()];
    slow.pause();
    let said = 0;
    for (; !slow.connection.isPaused; said += 1) {
      slow.connection.notify('notifications/x', { said, padding: 'x'.repeat(10_000) });
      if (said % 10 === 0) await new Promise(setImmediate);
    }
    t.false(other.connection.isPaused);
    slow.resume();
    for (let count = 0; count < said; count += 1) {
      if ((await nextMessage(slow)).params?.said !== count) t.fail(`message ${count} is missing`);
    }
    await slow.connection.mayTalk();
  });

  test(`${name}: takes no more from a client whose server is full, and nothing is lost`, async (t) => {
    const { client, connection } = await connect(t);
    connection.isFull = true;
    client.send(notification('notifications/fills'));
    await connection.next('notifications/fills');
    client.send(call(1));
    for (let count = 0; count < 20; count += 1) await new Promise(setImmediate);
    t.false(connection.received.some((frame) => frame.method === 'tools/call'));
    connection.drain();
    connection.answer(await connection.next('tools/call'));
    t.like(await nextMessage(client), { id: 1 });
  });

  test(`${name}: finishes open calls while it drains, refuses new ones, and is over when it closes`, async (t) => {
    const { bridge, client, connection } = await connect(t);
    client.send(call(1));
    const open = await connection.next('tools/call');
    const drained = bridge.sessions.drain(60_000);
    client.send(call(2));
    t.like(await nextMessage(client), { id: 2, error: { code: -32000 } });
    connection.answer(open);
    t.like(await nextMessage(client), { id: 1, result: {} });
    bridge.clock.advance(1000);
    await drained;
    bridge.sessions.close(new BridgeError('ERR_SESSION_CLOSED', 'shutting down'));
    await client.over;
    t.is(connection.closedFor?.message, 'shutting down');
  });

  test(`${name}: takes any message a client may send without failing`, async (t) => {
    const { client, connection } = await connect(t);
    const strange = [
      { jsonrpc: '2.0', id: 'nobody asked', result: {} },
      cancellation('never sent'),
      notification('notifications/progress', { progressToken: 'unknown' }),
      { jsonrpc: '2.0', id: '__proto__', method: 'constructor' },
      { jsonrpc: '2.0', id: -0.0, method: 'toString', params: { _meta: { progressToken: '__proto__' } } },
    ];
    for (const message of strange) client.send(textOf(message).toString());
    connection.answer(await connection.next('constructor'), {});
    t.like(await nextMessage(client), { id: '__proto__' });
    connection.answer(await connection.next('toString'), {});
    t.like(await nextMessage(client), { id: 0 });
  });
}
