import { setTimeout as delay } from 'node:timers/promises';
import { BridgeError } from '../../../src/errors.ts';
import { accept, event, notification, openStream, resultOf } from '../../fixtures/http-servers/scripted.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectScripted, testBothWays } from './connect-modern.ts';

testBothWays('a client that does not read stops its own answers, and no one else’s', async (t) => {
  let written = 0;
  const { client, connect } = await connectScripted(t, {
    'prompts/get': (asked, response) => {
      openStream(response);
      const big = event(notification('notifications/vendor', { text: 'x'.repeat(100_000) }));
      const write = (): void => {
        while (written < 500 && response.write(big)) written += 1;
        if (written < 500) response.once('drain', write);
        else response.end(event(resultOf(asked, 'ok')));
        written += 1;
      };
      write();
    },
  });
  client.peer.hasCapacity = false;
  const id = client.start('prompts/get', { name: 'x' });
  await waitFor(() => client.received.length > 0);
  let before: number;
  do {
    before = written;
    await delay(100);
  } while (written !== before);
  t.true(written < 400, `${written} of 50 MB were read for a client that reads nothing`);
  t.truthy((await connect().request('tools/list')).result);
  client.peer.hasCapacity = true;
  client.relay.clientDrained();
  t.is((await client.answer(id)).result?.content?.[0]?.text, 'ok');
});

testBothWays('a link that is paused posts, and reads when it may', async (t) => {
  const { dialer, client, server } = await connectScripted(t, {});
  const listener = new FakeServerListener();
  const link = dialer.dial(listener);
  link.pause();
  link.send(clientFrame({ id: 1, method: 'tools/list', params: {} }));
  await waitFor(() => server.order.length === 1);
  await client.request('tools/list');
  t.is(listener.received.length, 0);
  link.resume();
  await waitFor(() => listener.received.length === 1);
  t.pass();
});

testBothWays('a full link that is closed says nothing of the capacity it has then', async (t) => {
  const { dialer } = await connectScripted(t, { 'prompts/get': () => {} });
  const listener = new FakeServerListener();
  const link = dialer.dial(listener);
  const text = 'x'.repeat(9 * 1024 * 1024);
  t.false(link.send(clientFrame({ id: 1, method: 'prompts/get', params: { text } })));
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
  t.is(listener.drains, 0);
});

testBothWays('a server that does not read makes the link full, and the client is told when it is not', async (t) => {
  const { dialer } = await connectScripted(t, { 'notifications/vendor': accept });
  const listener = new FakeServerListener();
  const link = dialer.dial(listener);
  const big = clientFrame({ id: 1, method: 'prompts/get', params: { text: 'x'.repeat(3 * 1024 * 1024) } });
  t.true(link.send(big));
  t.true(link.send(clientFrame({ ...JSON.parse(big.bytes.toString()), id: 2 })));
  t.false(link.send(clientFrame({ ...JSON.parse(big.bytes.toString()), id: 3 })));
  await waitFor(() => listener.drains === 1);
  await waitFor(() => listener.received.length === 3);
  t.is(listener.drains, 1);
});
