import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { systemClock } from '../../../src/cli/system-deps.ts';
import { HopPasses } from '../../../src/cluster/hop-passes.ts';
import { PeerLeases } from '../../../src/cluster/peer-leases.ts';
import { Forwarder } from '../../../src/downstream/cluster/forwarder.ts';
import type { ForwardOutcome } from '../../../src/downstream/cluster/forwarding.ts';
import { HOP_HEADER, NOT_HERE_HEADER } from '../../../src/downstream/cluster/hops.ts';
import { ClusterKey } from '../../../src/store/cluster-key.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { ownPort } from '../../support/own-port.ts';
import { waitFor } from '../../support/wait-for.ts';

const KEY = new ClusterKey('k'.repeat(40), 'test');
const OWNER_ID = 'owner';
/** The owner shows no signs, and lives for as long as a test takes. */
const LEASE_MS = 600_000;
const SHORT_LEASE_MS = 600;

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

async function listen(t: ExecutionContext, handle: Handle): Promise<Server & { readonly port: number }> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(server, { port: (server.address() as AddressInfo).port });
}

interface Pair {
  readonly port: number;
  readonly outcomes: readonly ForwardOutcome[];
  readonly store: MemoryStore;
}

/** A replica that passes everything on to an owner, and plain HTTP at both ends. */
async function startPair(t: ExecutionContext, owner: Handle | 'nobody', leaseMs = LEASE_MS): Promise<Pair> {
  const ownerPort = owner === 'nobody' ? await ownPort() : (await listen(t, owner)).port;
  const log = pino({ level: 'silent' });
  const store = new MemoryStore();
  const forwarder = new Forwarder({
    passes: new HopPasses(KEY, () => ['entry']),
    peers: new PeerLeases({ leases: store.leases, ttlMs: leaseMs, clock: systemClock }),
    leaseMs,
    deps: { log, clock: systemClock, randomId: () => 'id', wallClock: Date.now },
  });
  t.teardown(() => forwarder.close());
  const outcomes: ForwardOutcome[] = [];
  const entry = await listen(t, (incoming, response) => {
    const target = { id: OWNER_ID, address: `http://127.0.0.1:${ownerPort}` };
    forwarder.forward(target, { request: incoming, response, principal: 'alice', body: undefined }, (outcome) => {
      outcomes.push(outcome);
      if (outcome.kind !== 'responded') response.writeHead(599).end(outcome.kind);
    });
  });
  return { port: entry.port, outcomes, store };
}

test('a request and its response pass as they are, with a pass for their caller', async (t) => {
  const passes = new HopPasses(KEY, () => [OWNER_ID]);
  const { port } = await startPair(t, (incoming, response) => {
    const { method = '', url = '' } = incoming;
    const caller = passes.redeem(String(incoming.headers[HOP_HEADER]), { method, target: url });
    let body = '';
    incoming.on('data', (chunk) => {
      body += chunk;
    });
    incoming.on('end', () => {
      const said = { caller, url, host: incoming.headers.host, own: incoming.headers['x-own'], body };
      response.writeHead(202, 'Taken', ['X-Two', 'a', 'X-Two', 'b', 'Content-Type', 'application/json']);
      response.end(JSON.stringify(said));
    });
  });
  const answer = await fetch(`http://127.0.0.1:${port}/mcp?x=1`, {
    method: 'POST',
    headers: { 'X-Own': 'kept', [HOP_HEADER]: 'forged' },
    body: 'the body',
  });
  t.is(answer.status, 202);
  t.is(answer.statusText, 'Taken');
  t.is(answer.headers.get('x-two'), 'a, b');
  const host = `127.0.0.1:${port}`;
  t.deepEqual(await answer.json(), { caller: 'alice', url: '/mcp?x=1', host, own: 'kept', body: 'the body' });
});

test('an owner that cannot be reached has got nothing', async (t) => {
  const { port, outcomes } = await startPair(t, 'nobody');
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
  const { port } = await startPair(t, (incoming) => incoming.socket.destroy());
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x' });
  t.is(answer.status, 503);
  t.regex(await answer.text(), /whether the request was carried out is not known/);
});

test('an owner that breaks off in its response breaks off here', async (t) => {
  const { port } = await startPair(t, (incoming, response) => {
    response.write('half');
    setTimeout(() => incoming.socket.destroy(), 50);
  });
  const answer = await fetch(`http://127.0.0.1:${port}/`);
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
  const { port, store } = await startPair(t, () => undefined, SHORT_LEASE_MS);
  const answering = fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x' });
  await store.leases.release(OWNER_ID);
  const answer = await answering;
  t.is(answer.status, 503);
  t.regex(await answer.text(), /was lost before it responded/);
});
