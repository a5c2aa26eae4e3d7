import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { MAX_UNSENT_BYTES } from '../../../../src/replicas/forwarding/link/connection.ts';
import { encodeWindow } from '../../../../src/replicas/forwarding/link/frames.ts';
import { encodePassedHead, encodeReturnedHead } from '../../../../src/replicas/forwarding/link/heads.ts';
import { LinkSecrets } from '../../../../src/replicas/forwarding/link/link-secrets.ts';
import { LINK_HEADER } from '../../../../src/replicas/forwarding/link/upgrade.ts';
import { ClusterKey } from '../../../../src/replicas/store/cluster-key.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { CLUSTER_KEY, listen, startEntry, startOwner } from '../../../support/linked-replicas.ts';
import { acceptOffer, askForLink, RawLink, type WrittenFrame } from '../../../support/raw-link.ts';
import { startReplicaNetwork } from '../../../support/replica-network.ts';
import { waitFor } from '../../../support/wait-for.ts';

const HEAD = encodePassedHead({ method: 'GET', target: '/', principal: 'alice', headers: [] });
const RETURNED = encodeReturnedHead({ status: 200, headers: [] });
const OPEN: WrittenFrame = { type: 'open', stream: 1, payload: HEAD };
const END: WrittenFrame = { type: 'data', stream: 1, mark: 'last' };

async function untilClosed(link: RawLink): Promise<void> {
  await waitFor(() => link.isClosed, { message: 'the link to be cut' });
}

test('without the cluster key there is no link, and the answer tells nothing', async (t) => {
  const { port, owner } = await startOwner(t, () => t.fail());
  const otherKey = new ClusterKey(['o'.repeat(40)]);
  const offers = [new LinkSecrets(otherKey, () => ['raw']).offer(owner.id).text, 'x', 'a.b.c.d'];
  for (const offer of offers) await t.throwsAsync(askForLink(t, port, offer), { message: '403' });
  const { port: entryPort } = await startEntry(t, owner, { key: otherKey });
  t.is(await (await fetch(`http://127.0.0.1:${entryPort}/`)).text(), 'unreachable');
});

test('while a key is exchanged, requests are passed on between replicas that seal with different ones', async (t) => {
  const both = new ClusterKey(['n'.repeat(40), 'k'.repeat(40)]);
  const { owner } = await startOwner(t, (_, response) => response.end('served'), { key: both });
  for (const key of [CLUSTER_KEY, both]) {
    const { port } = await startEntry(t, owner, { key });
    t.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'served');
  }
});

const get = (port: number): Promise<Response> => fetch(`http://127.0.0.1:${port}/alice`);

test('nothing of a request can be read between two replicas', async (t) => {
  const { owner } = await startOwner(t, (_, response) => response.end('served'));
  const network = await startReplicaNetwork(t, owner);
  const entry = await startEntry(t, network.owner);
  t.is(await (await get(entry.port)).text(), 'served');
  const seen = Buffer.concat(network.recorded);
  t.true(seen.length > 100);
  t.false(seen.includes('alice'));
});

test('what was recorded of a link is worth nothing on another', async (t) => {
  let served = 0;
  const { port, owner } = await startOwner(t, (_, response) => {
    served += 1;
    response.end();
  });
  const network = await startReplicaNetwork(t, owner);
  await (await get((await startEntry(t, network.owner)).port)).text();
  t.is(served, 1);
  // An offer that is sent a second time opens a connection that has another key.
  const offer = new LinkSecrets(CLUSTER_KEY, () => ['raw']).offer(owner.id);
  for (let round = 0; round < 2; round += 1) {
    const { socket } = await askForLink(t, port, offer.text);
    let isClosed = false;
    socket
      .on('error', () => undefined)
      .on('close', () => {
        isClosed = true;
      });
    for (const bytes of network.recorded) socket.write(bytes);
    socket.resume();
    await waitFor(() => isClosed, { message: 'the replayed bytes to be refused' });
  }
  t.is(served, 1);
});

const CHANGES: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  'is changed on its way': (bytes) => {
    const changed = Buffer.from(bytes);
    changed[20] = (changed[20] ?? 0) ^ 1;
    return changed;
  },
  'is repeated': (bytes) => Buffer.concat([bytes, bytes]),
};

for (const [what, change] of Object.entries(CHANGES)) {
  test(`a link ends on which something ${what}, and nothing is served twice`, async (t) => {
    let served = 0;
    const { owner, sockets } = await startOwner(t, (_, response) => {
      served += 1;
      response.end();
    });
    let isChanging = false;
    const network = await startReplicaNetwork(t, owner, (bytes) => (isChanging ? change(bytes) : bytes));
    const entry = await startEntry(t, network.owner);
    t.is((await get(entry.port)).status, 200);
    isChanging = true;
    await get(entry.port);
    await waitFor(() => sockets[0]?.destroyed === true, { message: 'the link to be cut' });
    t.true(served <= 2, String(served));
  });
}

test('an owner that has a certificate in place of the key gets no request', async (t) => {
  const pem = (name: string): Buffer => readFileSync(new URL(`../../../fixtures/tls/${name}.pem`, import.meta.url));
  let received = 0;
  let isClosed = false;
  const tls = createTlsServer({ key: pem('server-key'), cert: pem('server') }, (secured) => {
    secured
      .on('error', () => undefined)
      .on('data', ({ length }: Buffer) => {
        received += length;
      });
  });
  const server = createServer();
  server.on('upgrade', (request, socket: Socket) => {
    // Whoever stands in between has let the owner answer, and goes on in its place.
    const answer = new LinkSecrets(CLUSTER_KEY, () => ['owner']).answer(String(request.headers[LINK_HEADER]));
    acceptOffer(socket, answer.kind === 'accepted' ? answer.text : '');
    socket.allowHalfOpen = false;
    socket.on('close', () => {
      isClosed = true;
    });
    tls.emit('connection', socket);
  });
  const { port } = await listen(t, server);
  const entry = await startEntry(t, { id: 'owner', address: `http://127.0.0.1:${port}` });
  t.is(await (await get(entry.port)).text(), 'unreachable');
  await waitFor(() => isClosed, { message: 'the connection to be closed' });
  t.is(received, 0);
});

const OF_ENTRY: Readonly<Record<string, readonly WrittenFrame[]>> = {
  'a head that is none': [{ ...OPEN, payload: Buffer.from('{') }],
  'a body in front of its head': [{ ...OPEN, mark: 'more' }, END],
  'two heads': [OPEN, { type: 'data', stream: 1, payload: Buffer.from('x') }, OPEN],
  'a number that was used': [
    { ...OPEN, stream: 2 },
    { ...OPEN, stream: 1 },
  ],
  'the number of the link itself': [{ ...OPEN, stream: 0 }],
  'what only owners say': [OPEN, { type: 'head', stream: 1, payload: RETURNED }],
  'more of a body than is welcome': [
    OPEN,
    ...Array.from({ length: 3 }, (): WrittenFrame => ({ type: 'data', stream: 1, payload: Buffer.alloc(60_000) })),
  ],
  'more requests than one replica passes on': Array.from({ length: 8193 }, (_, index): WrittenFrame => {
    return { ...OPEN, stream: index + 1 };
  }),
  'that more was read than was sent': [OPEN, { type: 'window', stream: 1, payload: encodeWindow(1) }],
};

for (const [what, frames] of Object.entries(OF_ENTRY)) {
  test(`an owner cuts a link on which there comes ${what}`, async (t) => {
    const { port } = await startOwner(t, () => undefined);
    const link = await RawLink.open(t, port);
    for (const frame of frames) link.send(frame);
    await untilClosed(link);
    // Others are not affected.
    const next = await RawLink.open(t, port);
    next.send({ type: 'ping', stream: 0 });
    await waitFor(() => next.frames.some(({ type }) => type === 'pong'));
    t.false(next.isClosed);
  });
}

/** An entry whose owner does this once it has been asked for something. */
async function answerEntry(t: ExecutionContext, answer: (link: RawLink) => void): Promise<Response> {
  const server = createServer();
  server.on('upgrade', (request, socket: Socket) => {
    void RawLink.answer(socket, String(request.headers[LINK_HEADER])).then(async (link) => {
      await waitFor(() => link.frames.some(({ type }) => type === 'open'));
      answer(link);
    });
  });
  const { port } = await listen(t, server);
  const entry = await startEntry(t, { id: 'owner', address: `http://127.0.0.1:${port}` });
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } });
  return fetch(`http://127.0.0.1:${entry.port}/`, { method: 'POST', body });
}

const OF_OWNER: Readonly<Record<string, readonly WrittenFrame[]>> = {
  'a head that is none': [{ type: 'head', stream: 1, payload: Buffer.from('[]') }],
  'a head that never ends': Array.from({ length: 3 }, (): WrittenFrame => {
    return { type: 'head', stream: 1, mark: 'more', payload: Buffer.alloc(40_000, ' ') };
  }),
  'a body in front of its head': [END],
  'a response to nothing': [{ type: 'head', stream: 2, payload: RETURNED }],
  'what only entries say': [OPEN],
};

for (const [what, frames] of Object.entries(OF_OWNER)) {
  test(`a request is answered as lost when there comes ${what} for it`, async (t) => {
    const answer = await answerEntry(t, (link) => link.send(...frames));
    t.is(answer.status, 503);
    t.regex(await answer.text(), /whether the request was carried out is not known/);
  });
}

test('a response breaks off when more of it comes than its client has read', async (t) => {
  const part: WrittenFrame = { type: 'data', stream: 1, payload: Buffer.alloc(60_000) };
  let isCut = false;
  const answer = await answerEntry(t, (link) => {
    link.send({ type: 'head', stream: 1, payload: RETURNED });
    // The operating system takes much that nobody reads, and it depends on the machine how much.
    const sendOn = (): void => {
      isCut = link.isClosed;
      if (isCut) return;
      if (link.socket.writableLength < MAX_UNSENT_BYTES) link.send(part, part);
      setImmediate(sendOn);
    };
    sendOn();
  });
  t.is(answer.status, 200);
  // A client that reads meanwhile may well keep up.
  await waitFor(() => isCut, { message: 'the link to be cut' });
  await t.throwsAsync(answer.arrayBuffer());
});

test('a connection on which TLS is given up is closed at once', async (t) => {
  const { port, owner, sockets } = await startOwner(t, () => t.fail());
  const { socket } = await askForLink(t, port, new LinkSecrets(CLUSTER_KEY, () => ['raw']).offer(owner.id).text);
  socket.end();
  await waitFor(() => sockets[0]?.destroyed === true, { message: 'the connection to be closed' });
  t.is(sockets.length, 1);
});

test('a link that has carried nothing ends with its owner', async (t) => {
  const { port, links } = await startOwner(t, () => t.fail());
  const { socket } = await askForLink(t, port, new LinkSecrets(CLUSTER_KEY, () => ['raw']).offer('owner').text);
  let isClosed = false;
  socket.resume().on('close', () => {
    isClosed = true;
  });
  links.close();
  t.true(await waitFor(() => isClosed, { message: 'the connection to be closed' }));
});

test('a link ends that carries nothing for ten seconds, and one that has carried something stays', async (t) => {
  const clock = new FakeClock();
  const { port, owner, sockets } = await startOwner(t, () => t.fail(), { clock });
  const { socket } = await askForLink(t, port, new LinkSecrets(CLUSTER_KEY, () => ['raw']).offer(owner.id).text);
  socket.resume();
  const proven = await RawLink.open(t, port);
  proven.send({ type: 'ping', stream: 0 });
  await waitFor(() => proven.frames.length > 0);
  const [silent] = sockets;
  clock.advance(9999);
  t.false(silent?.destroyed);
  clock.advance(1);
  t.true(silent?.destroyed);
  clock.advance(60_000);
  proven.send({ type: 'ping', stream: 0 });
  await waitFor(() => proven.frames.length > 1, { message: 'the other link to answer' });
});

test('an owner cuts a link whose other end reads nothing, once more than 32 MiB wait in it', async (t) => {
  const large = 'x'.repeat(60_000);
  let bytes = 0;
  const { port, sockets } = await startOwner(t, (_, response) => {
    // Heads are sent at once, whereas bodies would wait for their reader.
    response.writeHead(200, { 'X-Large': large, 'Content-Length': 0 }).end();
    bytes += large.length;
  });
  const link = await RawLink.open(t, port);
  link.socket.pause();
  const [socket] = sockets;
  let stream = 0;
  let asked = 0;
  await waitFor(
    () => {
      // The next ones when these are answered.
      if (bytes < asked || socket?.destroyed === true) return socket?.destroyed === true;
      const opened = Array.from({ length: 10 }, (): WrittenFrame => {
        stream += 1;
        return { ...OPEN, stream };
      });
      link.send(...opened, ...opened.map((open): WrittenFrame => ({ ...END, stream: open.stream })));
      asked += opened.length * large.length;
      return false;
    },
    { message: 'the link to be cut' },
  );
  t.true(bytes > MAX_UNSENT_BYTES, String(bytes));
  // The operating system takes some of it, too.
  t.true(bytes < MAX_UNSENT_BYTES + 16 * 1024 * 1024, String(bytes));
});
