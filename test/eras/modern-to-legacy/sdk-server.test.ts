import test, { type ExecutionContext } from 'ava';
import type { SessionDialer } from '../../../src/relay/ports.ts';
import { META } from '../../contract/modern-client.ts';
import { startHttpSse, startStreamable } from '../../support/sdk-servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { dialHttpSse, dialStreamable } from '../../upstream/remote-dialers.ts';
import { Conversations, dialProgram } from './modern-conversations.ts';

const SERVER = '../../fixtures/contract-server/server.js';

/** The ways to a legacy server made with the official SDK v1. */
const TRANSPORTS: Readonly<Record<string, (t: ExecutionContext) => Promise<SessionDialer>>> = {
  stdio: async () => dialProgram(SERVER),
  'Streamable HTTP': async (t) => {
    const server = await startStreamable();
    t.teardown(() => server.close());
    return dialStreamable(server.url);
  },
  'HTTP+SSE': async (t) => {
    const server = await startHttpSse();
    t.teardown(() => server.close());
    return dialHttpSse(server.url);
  },
};

for (const [name, dial] of Object.entries(TRANSPORTS)) {
  test(`${name}: a modern client discovers, lists and calls`, async (t) => {
    const client = new Conversations(t, await dial(t));
    const discovered = await client.request('server/discover');
    t.like(discovered.result, { resultType: 'complete', supportedVersions: ['2026-07-28'] });
    const listed = await client.request('tools/list');
    t.like(listed.result, { resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
    t.is(await client.tool('echo', { value: 'hello' }), 'hello');
    const failed = await client.request('tools/call', { name: 'fail' });
    t.like(failed.error, { code: -32603, data: { bridge: { originalCode: -32050 } } });
  });

  test(`${name}: a tool that samples is answered with the second request`, async (t) => {
    const client = new Conversations(t, await dial(t));
    const call = { name: 'ask', arguments: { prompt: 'who?' } };
    const first = await client.request('tools/call', call);
    const { inputRequests, requestState } = first.result as unknown as {
      inputRequests: Record<string, { method: string }>;
      requestState: string;
    };
    t.is(inputRequests['sampling-1']?.method, 'sampling/createMessage');
    const answer = { role: 'assistant', model: 'm', content: { type: 'text', text: 'me' } };
    const retry = { ...call, requestState, inputResponses: { 'sampling-1': answer } };
    const outcomes = await Promise.all([client.request('tools/call', retry), client.request('tools/call', retry)]);
    for (const { result } of outcomes) t.is(result?.content?.[0]?.text, 'me');
  });

  test(`${name}: progress and logs come before the answer, to who asked for them`, async (t) => {
    const client = new Conversations(t, await dial(t));
    const counting = client.open();
    const _meta = { progressToken: 'a' };
    await counting.request('tools/call', { name: 'count', arguments: { to: 3 }, _meta });
    t.deepEqual(
      counting.notifications('notifications/progress').map(({ params }) => [params?.progressToken, params?.progress]),
      [
        ['a', 1],
        ['a', 2],
        ['a', 3],
      ],
    );
    const curious = client.open({ logLevel: 'info' });
    const level = { [`${META}logLevel`]: 'info' };
    await curious.request('tools/call', { name: 'log', arguments: { data: 'x' }, _meta: level });
    t.is(curious.notifications('notifications/message').length, 1);
    const quiet = client.open();
    await quiet.request('tools/call', { name: 'log', arguments: { data: 'x' } });
    t.is(quiet.notifications('notifications/message').length, 0);
  });

  test(`${name}: a client that leaves withdraws its call`, async (t) => {
    const client = new Conversations(t, await dial(t));
    // They cannot be asked anything, so that they share a session.
    const options = { capabilities: {} };
    await client.tool('state', {}, options);
    const waiting = client.open(options);
    waiting.start('tools/call', { name: 'wait' });
    // A withdrawal may overtake a call that is still on its way.
    await waitFor(async () => (await client.tool('waiting', {}, options)) === '1', { message: 'the call to arrive' });
    waiting.close();
    const cancellations = async () => JSON.parse(String(await client.tool('state', {}, options))).cancellations;
    await waitFor(async () => (await cancellations()) === 1, { message: 'the withdrawal' });
    t.pass();
  });

  test(`${name}: a client hears of what it listens to, and unsubscribes by leaving`, async (t) => {
    const client = new Conversations(t, await dial(t));
    const listening = client.open();
    await listening.listen({ toolsListChanged: true, resourceSubscriptions: ['a:b'] }, 'l');
    await client.tool('touch', { uri: 'a:b' });
    await client.tool('announce');
    await waitFor(() => listening.notifications('notifications/resources/updated').length === 1);
    await waitFor(() => listening.notifications('notifications/tools/list_changed').length === 1);
    listening.close();
    const subscriptions = async () => JSON.parse(String(await client.tool('state'))).subscriptions;
    await waitFor(async () => (await subscriptions()).length === 0, { message: 'the end of the subscription' });
    t.pass();
  });
}
