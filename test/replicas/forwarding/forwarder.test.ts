import { request } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { passedCallerOf } from '../../../src/http/auth/callers.ts';
import { BodyCapacity, readBody } from '../../../src/http/server/read-body.ts';
import { NOT_HERE_HEADER } from '../../../src/replicas/forwarding/passed-request.ts';
import {
  type Handle,
  type LinkedEntry,
  type LinkedOwner,
  startEntry,
  startOwner,
} from '../../support/linked-replicas.ts';
import { ownPort } from '../../support/own-port.ts';
import { waitFor } from '../../support/wait-for.ts';

const SHORT_LEASE_MS = 600;
const MAX_MESSAGE_BYTES = 1024 * 1024;
const LIMITS = {
  maxMessageBytes: MAX_MESSAGE_BYTES,
  bodies: new BodyCapacity(MAX_MESSAGE_BYTES).share(undefined),
};

interface Pair extends Pick<LinkedEntry, 'port' | 'outcomes' | 'store'> {
  readonly ownerSockets: LinkedOwner['sockets'];
}

/** A replica that passes everything on to an owner. */
async function startPair(t: ExecutionContext, handle: Handle, leaseMs?: number): Promise<Pair> {
  const { owner, sockets } = await startOwner(t, handle);
  const entry = await startEntry(t, owner, leaseMs === undefined ? {} : { leaseMs });
  return { ...entry, ownerSockets: sockets };
}

test('a request and its response pass as they are, with the name of their caller', async (t) => {
  const { port } = await startPair(t, (incoming, response) => {
    const caller = passedCallerOf(incoming);
    const { url, headers, headersDistinct } = incoming;
    readBody(incoming, LIMITS, (_, body) => {
      const said = {
        caller,
        url,
        host: headers.host,
        own: headers['x-own'],
        two: headersDistinct['x-two'],
        body: `${body}`,
      };
      response.setHeader('X-Two', ['a', 'b']);
      response.writeHead(202, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(said));
    });
  });
  const client = request({ port, host: '127.0.0.1', path: '/mcp?x=1', method: 'POST' });
  client.setHeader('X-Own', 'kept').setHeader('X-Two', ['one', 'two']);
  const answer = await new Promise<{ status: number | undefined; two: unknown; text: string }>((resolve, reject) => {
    client.on('error', reject).on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode, two: response.headers['x-two'], text }));
    });
    client.end('the body');
  });
  t.is(answer.status, 202);
  t.is(answer.two, 'a, b');
  const host = `127.0.0.1:${port}`;
  const two = ['one', 'two'];
  t.deepEqual(JSON.parse(answer.text), { caller: 'alice', url: '/mcp?x=1', host, own: 'kept', two, body: 'the body' });
});

test('an owner that cannot be reached has got nothing', async (t) => {
  const nobody = { id: 'owner', address: `http://127.0.0.1:${await ownPort()}` };
  const { port, outcomes } = await startEntry(t, nobody);
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x' });
  t.is(await answer.text(), 'unreachable');
  t.deepEqual(outcomes, [{ kind: 'unreachable' }]);
});

test('what an owner does not have can go elsewhere, with its body', async (t) => {
  const { port, outcomes } = await startPair(t, (_, response) => {
    response.writeHead(421, { [NOT_HERE_HEADER]: '1' }).end();
  });
  await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'the body' }).then((answer) => answer.text());
  t.deepEqual(outcomes, [{ kind: 'not-here', body: Buffer.from('the body') }]);
});

test('a body that is too large to be kept is told to come again', async (t) => {
  const { port, outcomes } = await startPair(t, (_, response) => {
    response.writeHead(421, { [NOT_HERE_HEADER]: '1' }).end();
  });
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x'.repeat(100_000) });
  t.is(answer.status, 503);
  t.regex(await answer.text(), /ERR_CLUSTER_OWNER/);
  t.deepEqual(outcomes, [{ kind: 'responded' }]);
});

test('an owner that breaks off before it responds leaves it open what was done', async (t) => {
  const { port } = await startPair(t, (_, response) => response.destroy());
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x' });
  t.is(answer.status, 503);
  t.regex(await answer.text(), /whether the request was carried out is not known/);
});

test('an owner that breaks off in its response breaks off here', async (t) => {
  const { port } = await startPair(t, (_, response) => {
    response.write('half');
    setImmediate(() => response.destroy());
  });
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  await t.throwsAsync(answer.text());
});

test('a link that is cut before there is a response leaves it open what was done', async (t) => {
  const { port, ownerSockets } = await startPair(t, () => ownerSockets[0]?.destroy());
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x' });
  t.is(answer.status, 503);
  t.regex(await answer.text(), /whether the request was carried out is not known/);
});

for (const [what, message] of [
  ['reads', { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'test://a' } }],
  ['sets what may be set again', { jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'error' } }],
  ['answers the server', { jsonrpc: '2.0', id: 7, result: {} }],
] as const) {
  test(`a message that ${what} goes elsewhere when the link is cut before there is a response`, async (t) => {
    const { port, outcomes, ownerSockets } = await startPair(t, (incoming) =>
      readBody(incoming, LIMITS, () => ownerSockets[0]?.destroy()),
    );
    const body = JSON.stringify(message);
    t.is((await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body })).status, 599);
    t.deepEqual(outcomes, [{ kind: 'not-here', body: Buffer.from(body) }]);
  });
}

test('a call of a tool is not sent again when the link is cut before there is a response', async (t) => {
  const { port, ownerSockets } = await startPair(t, (incoming) =>
    readBody(incoming, LIMITS, () => ownerSockets[0]?.destroy()),
  );
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'pay' } });
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body });
  t.is(answer.status, 503);
  t.regex(await answer.text(), /whether the request was carried out is not known/);
});

test('a stream that was to be opened is opened elsewhere when the link is cut before there is a response', async (t) => {
  const { port, outcomes, ownerSockets } = await startPair(t, () => ownerSockets[0]?.destroy());
  t.is((await fetch(`http://127.0.0.1:${port}/`)).status, 599);
  t.is(outcomes[0]?.kind, 'not-here');
});

test('a link that is cut in a response breaks that off', async (t) => {
  const { port, ownerSockets } = await startPair(t, (_, response) => response.write('half'));
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  ownerSockets[0]?.destroy();
  await t.throwsAsync(answer.text());
});

test('a client that leaves is gone for the owner, too', async (t) => {
  let isGone = false;
  const { port, outcomes } = await startPair(t, (_, response) => {
    response.write(': here\n\n');
    response.on('close', () => {
      isGone = true;
    });
  });
  const controller = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${port}/`, { signal: controller.signal });
  t.is(answer.status, 200);
  controller.abort();
  await waitFor(() => isGone, { message: 'the owner to see that the client has left' });
  t.deepEqual(outcomes, [{ kind: 'responded' }]);
});

test('a client that does not read stops the owner', async (t) => {
  let written = 0;
  let isFull = false;
  const chunk = Buffer.alloc(64 * 1024);
  const { port } = await startPair(t, (_, response) => {
    const write = (): void => {
      while (response.write(chunk)) written += chunk.length;
      isFull = true;
      response.once('drain', write);
    };
    write();
  });
  const client = request({ port, host: '127.0.0.1' }, (response) => response.pause()).end();
  t.teardown(() => client.destroy());
  await waitFor(() => isFull);
  let last = -1;
  // The buffers of the system fill, and then nothing moves.
  await waitFor(
    async () => {
      const isStill = written === last;
      last = written;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return isStill && written === last;
    },
    { message: 'the owner to stop' },
  );
  t.true(written < 64 * 1024 * 1024, `${written}`);
});

test('an owner that says nothing is given up when it is declared dead', async (t) => {
  let hasArrived = false;
  const arrived = (): void => {
    hasArrived = true;
  };
  const { port, store } = await startPair(t, arrived, SHORT_LEASE_MS);
  const answering = fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x' });
  await waitFor(() => hasArrived, { message: 'the request to reach the owner' });
  await store.leases.release('owner');
  const answer = await answering;
  t.is(answer.status, 503);
  t.regex(await answer.text(), /was lost before it responded/);
});
