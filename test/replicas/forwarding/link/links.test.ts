import { request } from 'node:http';
import test from 'ava';
import { BodyCapacity, readBody } from '../../../../src/http/server/read-body.ts';
import type { EntryLink } from '../../../../src/replicas/forwarding/link/entry-link.ts';
import type { EntryStreamListener } from '../../../../src/replicas/forwarding/link/entry-stream.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import {
  createEntryLinks,
  type Handle,
  type LinkedEntry,
  startEntry,
  startOwner,
} from '../../../support/linked-replicas.ts';
import { startReplicaNetwork } from '../../../support/replica-network.ts';
import { waitFor } from '../../../support/wait-for.ts';

const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const LIMITS = {
  maxMessageBytes: MAX_MESSAGE_BYTES,
  bodies: new BodyCapacity(MAX_MESSAGE_BYTES).share(undefined),
};

const echo: Handle = (incoming, response) =>
  readBody(incoming, LIMITS, (_, body) => response.writeHead(200, { 'Content-Length': body.length }).end(body));

function post({ port }: Pick<LinkedEntry, 'port'>, body: string | Buffer): Promise<string> {
  return fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body }).then((answer) => answer.text());
}

test('many requests at once go by one connection, and each gets its own response', async (t) => {
  const { owner, sockets } = await startOwner(t, echo);
  const entry = await startEntry(t, owner);
  const bodies = Array.from({ length: 300 }, (_, index) => `${index} `.repeat(index));
  t.deepEqual(await Promise.all(bodies.map((body) => post(entry, body))), bodies);
  t.is(sockets.length, 1);
});

test('large bodies pass both ways, beside small ones', async (t) => {
  const { owner } = await startOwner(t, echo);
  const entry = await startEntry(t, owner);
  const large = Buffer.alloc(8 * 1024 * 1024, 'abcdefghij');
  const both = await Promise.all([post(entry, large), post(entry, 'small'), post(entry, large)]);
  t.is(both[1], 'small');
  t.true(both[0] === large.toString() && both[2] === both[0]);
});

test('a client that does not read its response stops only its own stream', async (t) => {
  let written = 0;
  let isWaiting = false;
  const { owner } = await startOwner(t, (incoming, response) => {
    if (incoming.url !== '/endless') return echo(incoming, response);
    const chunk = Buffer.alloc(32 * 1024);
    const write = (): void => {
      isWaiting = false;
      do written += chunk.length;
      while (response.write(chunk));
      isWaiting = true;
      response.once('drain', write);
    };
    write();
  });
  const entry = await startEntry(t, owner);
  const slow = Array.from({ length: 5 }, () => {
    const client = request({ agent: false, port: entry.port, host: '127.0.0.1', path: '/endless' });
    t.teardown(() => client.destroy());
    return client.on('response', (response) => response.pause()).end();
  });
  t.is(slow.length, 5);
  // Until the buffers of the system are full and nothing moves.
  let last = -1;
  await waitFor(async () => {
    const isStill = isWaiting && written === last;
    last = written;
    t.is(await post(entry, 'fast'), 'fast');
    return isStill;
  });
  const large = 'x'.repeat(1024 * 1024);
  t.is(await post(entry, large), large);
  t.true(written < 5 * 16 * 1024 * 1024, `${written}`);
});

test('an owner that does not read a request stops its client, and nobody else', async (t) => {
  const { owner } = await startOwner(t, (incoming, response) => {
    if (incoming.url !== '/unread') echo(incoming, response);
  });
  const entry = await startEntry(t, owner);
  const client = request({ agent: false, port: entry.port, host: '127.0.0.1', path: '/unread', method: 'POST' });
  t.teardown(() => client.destroy());
  let sent = 0;
  const chunk = Buffer.alloc(64 * 1024);
  const write = (): void => {
    do sent += chunk.length;
    while (client.write(chunk) && sent < 256 * 1024 * 1024);
  };
  client.on('error', () => undefined).on('drain', write);
  write();
  let last = -1;
  await waitFor(async () => {
    const isStill = sent === last;
    last = sent;
    t.is(await post(entry, 'fast'), 'fast');
    return isStill;
  });
  t.true(sent < 64 * 1024 * 1024, `${sent}`);
});

test('a request that is answered before it was read does not keep its client waiting', async (t) => {
  const { owner } = await startOwner(t, (_, response) => {
    response.writeHead(413, { 'Content-Length': 0 }).end();
  });
  const entry = await startEntry(t, owner);
  for (let round = 0; round < 3; round += 1) {
    const answer = await fetch(`http://127.0.0.1:${entry.port}/`, { method: 'POST', body: Buffer.alloc(1024 * 1024) });
    t.is(answer.status, 413);
  }
});

test('a head that is too large for the owner is refused, and the link goes on', async (t) => {
  const { owner, sockets } = await startOwner(t, echo, { maxHeaderBytes: 1000 });
  const entry = await startEntry(t, owner);
  const headers = { 'x-large': 'x'.repeat(12_000) };
  t.is((await fetch(`http://127.0.0.1:${entry.port}/`, { headers })).status, 431);
  t.is(await post(entry, 'next'), 'next');
  t.is(sockets.length, 1);
});

const NOT_HEARD: EntryStreamListener = { responded() {}, came() {}, completed() {}, drained() {}, failed() {} };

test('a link takes no further requests while too much waits in it, and takes them again', async (t) => {
  const { owner } = await startOwner(t, () => undefined);
  const { links } = createEntryLinks(t);
  const link = await new Promise<EntryLink>((resolve, reject) => {
    links.reach(owner, (reached) =>
      reached.kind === 'reached' ? resolve(reached.link) : reject(new Error(reached.kind)),
    );
  });
  const head = { method: 'GET', target: '/', principal: 'alice', headers: ['x-large', 'x'.repeat(60_000)] };
  let opened = 0;
  while (opened < 1000 && link.open(head, NOT_HEARD) !== undefined) opened += 1;
  t.true(opened > 100 && opened < 200, `${opened}`);
  await waitFor(() => link.open(head, NOT_HEARD) !== undefined, { message: 'the link to take requests again' });
});

test('requests that wait for a link all fail when it cannot be opened, and nothing was done', async (t) => {
  const { owner, links } = await startOwner(t, () => t.fail());
  links.leave();
  const entry = await startEntry(t, owner);
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(entry, 'x')));
  t.deepEqual(new Set(answers), new Set(['unreachable']));
});

test('another run at the same address is found out, and nothing was done', async (t) => {
  const { owner } = await startOwner(t, () => t.fail(), { ids: ['later'] });
  const entry = await startEntry(t, { ...owner, id: 'owner' });
  t.is(await post(entry, 'x'), 'not-here');
});

test('an owner that leaves serves what it has begun to its end, and has done nothing for anybody else', async (t) => {
  const begun: (() => void)[] = [];
  const { owner, links, sockets } = await startOwner(t, (_, response) => {
    begun.push(() => response.end('served'));
  });
  const entry = await startEntry(t, owner);
  const first = post(entry, 'x');
  await waitFor(() => begun.length > 0);
  // These are on their way when the owner leaves, or come after.
  const others = Promise.all(Array.from({ length: 20 }, () => post(entry, 'y')));
  await waitFor(() => begun.length > 1 || entry.outcomes.length > 0);
  links.leave();
  const late = await post(entry, 'z');
  t.true(['unreachable', 'not-here'].includes(late), late);
  for (const respond of begun) respond();
  t.is(await first, 'served');
  const answers = await others;
  t.is(answers.filter((answer) => answer === 'served').length, begun.length - 1);
  t.true(answers.every((answer) => ['served', 'unreachable', 'not-here'].includes(answer)));
  await waitFor(() => sockets[0]?.destroyed, { message: 'the link to be closed' });
});

test('an idle link is closed, and another opened when it is needed', async (t) => {
  const clock = new FakeClock();
  const { owner, sockets } = await startOwner(t, echo);
  const entry = await startEntry(t, owner, { clock, leaseMs: 10_000 });
  t.is(await post(entry, 'one'), 'one');
  await clock.advanceInSteps(60_000, 1000);
  await waitFor(() => sockets[0]?.destroyed, { message: 'the idle link to be closed' });
  t.is(await post(entry, 'two'), 'two');
  t.is(sockets.length, 2);
});

test('a link on which nothing is heard for twice a lease is cut, with what it carries', async (t) => {
  const clock = new FakeClock();
  let isServed = false;
  const { owner } = await startOwner(t, () => {
    isServed = true;
  });
  const network = await startReplicaNetwork(t, owner);
  const entry = await startEntry(t, network.owner, { clock, leaseMs: 10_000 });
  const answering = fetch(`http://127.0.0.1:${entry.port}/`, { method: 'POST', body: 'x' });
  await waitFor(() => isServed);
  network.stop();
  await clock.advanceInSteps(40_000, 500);
  const answer = await answering;
  t.is(answer.status, 503);
  t.regex(await answer.text(), /was lost before it responded/);
});

test('a link on which its owner only takes long is kept', async (t) => {
  const clock = new FakeClock();
  let respond: (() => void) | undefined;
  const { owner, sockets } = await startOwner(t, (_, response) => {
    respond = () => response.end('at last');
  });
  const entry = await startEntry(t, owner, { clock, leaseMs: 12_000 });
  const answering = post(entry, 'x');
  await waitFor(() => respond !== undefined);
  for (let round = 0; round < 20; round += 1) {
    const before = sockets[0]?.bytesWritten ?? 0;
    // Nothing was heard between two looks, so the owner is asked whether it is there, and says so.
    clock.advance(12_000 / 3);
    await waitFor(() => (sockets[0]?.bytesWritten ?? 0) > before, { message: 'the owner to say that it is there' });
  }
  respond?.();
  t.is(await answering, 'at last');
});
