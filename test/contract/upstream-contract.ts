import type { ExecutionContext, TestFn } from 'ava';
import { BridgeError } from '../../src/errors.ts';
import type { SessionDialer } from '../../src/relay/ports.ts';
import { notificationFrame } from '../../src/wire/write-message.ts';
import { waitFor } from '../support/wait-for.ts';
import { RelayedClient, type RelayedClientOptions } from './relayed-client.ts';

/** A server made of test/fixtures/contract-server, and a way to it. */
export interface ContractServer {
  readonly dialer: SessionDialer;
  /** The server dies without a word. */
  kill(): Promise<void> | void;
  /** Ends server and dialer. */
  close(): Promise<void>;
}

export interface UpstreamContract {
  /** How the transport is called in the titles. */
  readonly name: string;
  readonly start: () => Promise<ContractServer>;
  /** What this transport, or this kind of server, cannot do; nothing else is left out. */
  readonly lacks?: ReadonlySet<'unsolicited-messages' | 'requests-to-client' | 'progress' | 'state'>;
  /** A server that is gone ends the session; otherwise only the calls that run. */
  readonly deathEndsSession: boolean;
}

const CAPABILITIES = { sampling: {} };

/**
 * What every upstream transport must do, with a real server behind it and a real relay before it. One test at a time:
 * some move megabytes, some start processes.
 */
export function testUpstreamContract(test: TestFn, { name, start, lacks, deathEndsSession }: UpstreamContract): void {
  const has = (feature: 'unsolicited-messages' | 'requests-to-client' | 'progress' | 'state'): boolean =>
    lacks?.has(feature) !== true;

  async function connect(t: ExecutionContext, options: RelayedClientOptions = {}) {
    const server = await start();
    const client = new RelayedClient(server.dialer, { capabilities: CAPABILITIES, ...options });
    t.teardown(async () => {
      client.close();
      await server.close();
    });
    await client.initialize();
    return { server, client };
  }

  test.serial(`${name}: carries a handshake and a call`, async (t) => {
    const { client } = await connect(t);
    t.is(await client.call('echo', { value: 'hello' }), 'hello');
    t.is(client.peer.revisions[0]?.id, '2025-11-25');
  });

  test.serial(`${name}: carries every character`, async (t) => {
    const { client } = await connect(t);
    const value = 'ä€😀 \u2028 \\u0000 "quoted" \n\r\t end';
    t.is(await client.call('echo', { value }), value);
  });

  test.serial(`${name}: carries eight megabytes there and back`, async (t) => {
    const { client } = await connect(t);
    const length = 8 * 1024 * 1024;
    t.is(Buffer.byteLength(await client.call('big', { length })), length);
    const value = 'y'.repeat(3 * 1024 * 1024);
    t.true((await client.call('echo', { value })) === value);
  });

  test.serial(`${name}: keeps ids of either type`, async (t) => {
    const { client } = await connect(t);
    for (const id of ['a-string', '7', 7, 0, -1]) {
      client.start('tools/call', { name: 'echo', arguments: { value: `for ${typeof id}` } }, id);
      const answer = await client.answer(id);
      t.is(answer.result?.content?.[0]?.text, `for ${typeof id}`);
    }
  });

  test.serial(`${name}: answers fifty calls at once, each with its own`, async (t) => {
    const { client } = await connect(t);
    const values = Array.from({ length: 50 }, (_, index) => `value ${index}`);
    t.deepEqual(await Promise.all(values.map((value) => client.call('echo', { value }))), values);
  });

  test.serial(`${name}: passes errors on with their data`, async (t) => {
    const { client } = await connect(t);
    const { error } = await client.request('tools/call', { name: 'fail' });
    t.is(error?.code, -32050);
    t.regex(error?.message ?? '', /failed on purpose/);
    t.deepEqual(error?.data, { detail: [1, 'ü'] });
    const unknown = await client.request('no/such/method');
    t.is(unknown.error?.code, -32601);
  });

  if (has('progress')) {
    test.serial(`${name}: delivers progress and log messages in order and before the answer`, async (t) => {
      const { client } = await connect(t);
      t.is(await client.call('count', { to: 20 }, { progressToken: 'p' }), 'counted to 20');
      const seen = client.received.map((message) => message.params?.progress ?? message.method ?? 'answer');
      t.deepEqual(seen.slice(1), [...Array.from({ length: 20 }, (_, index) => index + 1), 'answer']);
      await client.call('log', { data: 'said' });
      t.is(client.notifications('notifications/message')[0]?.params?.data, 'said');
    });
  }

  if (has('requests-to-client')) {
    test.serial(`${name}: carries a request of the server and the client's answer`, async (t) => {
      const { client } = await connect(t);
      client.onRequest = ({ id, method }) => {
        t.is(method, 'sampling/createMessage');
        const result = { role: 'assistant', model: 'm', content: { type: 'text', text: 'an answer' } };
        client.send({ id, result });
      };
      t.is(await client.call('ask', { prompt: 'a question' }), 'an answer');
    });
  }

  if (has('state')) {
    test.serial(`${name}: carries a cancellation, and no answer after it`, async (t) => {
      const { client } = await connect(t);
      const id = client.start('tools/call', { name: 'wait' });
      // Over HTTP calls come side by side, in any order.
      await waitFor(async () => (await client.call('waiting')) === '1', { message: 'the call to begin' });
      client.notify('notifications/cancelled', { requestId: id, reason: 'enough' });
      await waitFor(async () => JSON.parse(await client.call('state')).cancellations === 1);
      t.false(client.received.some((message) => message.id === id));
    });

    test.serial(`${name}: keeps clients apart`, async (t) => {
      const { client, server } = await connect(t);
      const other = new RelayedClient(server.dialer);
      t.teardown(() => other.close());
      await other.initialize();
      const request = { id: 'same', method: 'tools/call' };
      client.send({ ...request, params: { name: 'echo', arguments: { value: 'one' } } });
      other.send({ ...request, params: { name: 'echo', arguments: { value: 'two' } } });
      t.is((await client.answer('same')).result?.content?.[0]?.text, 'one');
      t.is((await other.answer('same')).result?.content?.[0]?.text, 'two');
      await client.request('logging/setLevel', { level: 'error' });
      t.is(JSON.parse(await other.call('state')).level, 'none');
    });
  }

  if (has('unsolicited-messages')) {
    test.serial(`${name}: delivers what belongs to no call`, async (t) => {
      const { client } = await connect(t);
      await waitFor(async () => {
        // A server drops what it has no stream for yet.
        await client.call('announce');
        return client.notifications('notifications/tools/list_changed').length > 0;
      });
      const uri = 'test://a';
      await client.request('resources/subscribe', { uri });
      await client.call('touch', { uri });
      const update = await waitFor(() => client.notifications('notifications/resources/updated')[0]);
      t.is(update.params?.uri, uri);
    });
  }

  test.serial(`${name}: stops reading while paused and loses nothing`, async (t) => {
    const { client, server } = await connect(t);
    client.link.pause();
    const id = client.start('tools/call', { name: 'big', arguments: { length: 2 * 1024 * 1024 } });
    // Somebody else has long been served when this client would have been.
    const other = new RelayedClient(server.dialer);
    t.teardown(() => other.close());
    await other.initialize();
    await other.call('big', { length: 2 * 1024 * 1024 });
    await other.call('big', { length: 2 * 1024 * 1024 });
    t.false(client.received.some((message) => message.id === id));
    client.link.resume();
    const answer = await client.answer(id);
    t.is(Buffer.byteLength(answer.result?.content?.[0]?.text ?? ''), 2 * 1024 * 1024);
  });

  test.serial(`${name}: a server that dies fails the calls that run, and nothing hangs`, async (t) => {
    const { client, server } = await connect(t);
    const id = client.start('tools/call', { name: 'wait' });
    await client.call('echo', { value: 'the server has begun' });
    await server.kill();
    const answer = await client.answer(id);
    t.is(answer.error?.code, -32603);
    t.regex(JSON.stringify(answer.error?.data), /ERR_UPSTREAM_/);
    if (!deathEndsSession) {
      t.is((await client.request('tools/call', { name: 'echo' })).error?.code, -32603);
      return t.is(client.ended, undefined);
    }
    await waitFor(() => client.ended !== undefined);
    t.regex(client.ended?.code ?? '', /^ERR_UPSTREAM_/);
  });

  test.serial(`${name}: says nothing after close, which may come twice`, async (t) => {
    const { client } = await connect(t);
    const reason = new BridgeError('ERR_SESSION_CLOSED', 'the client is gone');
    const id = client.start('tools/call', { name: 'wait' });
    await client.call('echo', { value: 'the server has begun' });
    client.link.close(reason);
    client.link.close(reason);
    t.true(client.link.send(notificationFrame('notifications/roots/list_changed')));
    await new Promise((resolve) => setImmediate(resolve));
    t.false(client.received.some((message) => message.id === id));
    t.is(client.ended, undefined);
  });
}
