import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { HopPasses } from '../../../src/cluster/hop-passes.ts';
import type { Owner } from '../../../src/cluster/owner-tags.ts';
import { HOP_HEADER } from '../../../src/downstream/cluster/hops.ts';
import { ReplicaQueries } from '../../../src/downstream/cluster/replica-queries.ts';
import type { ReplicaAnswer } from '../../../src/relay/other-replicas.ts';
import { ClusterKey } from '../../../src/store/cluster-key.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';

const KEY = new ClusterKey('k'.repeat(32), 'test');
const TARGET = '/status.json';

async function serve(t: ExecutionContext, id: string, listener: RequestListener): Promise<Owner> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { id, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Unless a test lets time pass, what a replica answers does not depend on how busy this machine is. */
function queriesTo(others: readonly Owner[], clock = new FakeClock()): ReplicaQueries {
  const self: Owner = { id: 'self', address: 'http://127.0.0.1:1' };
  const passes = new HopPasses(KEY, () => [self.id]);
  const cluster = { self, passes, members: { others: async () => others } };
  return new ReplicaQueries(cluster, clock);
}

test('asks with a pass that is good for this question, at this replica', async (t) => {
  const seen: (string | undefined)[] = [];
  const passes = new HopPasses(KEY, () => ['other']);
  const other = await serve(t, 'other', ({ headers, method = '', url = '' }, response) => {
    seen.push(headers.host, passes.redeem(String(headers[HOP_HEADER]), { method, target: url }), headers.authorization);
    response.end('its status');
  });
  const [answer] = await queriesTo([other]).ask(TARGET);
  t.is(answer?.kind === 'answered' ? answer.body.toString() : '', 'its status');
  t.deepEqual(seen, [new URL(other.address).host, 'status', undefined]);
});

test('names each replica that does not answer as it should, and why', async (t) => {
  const gone = await serve(t, 'gone', (request) => request.socket.destroy());
  const refuses = await serve(t, 'refuses', (_request, response) => response.writeHead(403).end());
  const floods = await serve(t, 'floods', (_request, response) => {
    const more = (): void => {
      while (response.write(Buffer.alloc(256 * 1024)));
    };
    response.on('drain', more);
    more();
  });
  const answers = await queriesTo([gone, refuses, floods]).ask(TARGET);
  const problemOf = ({ address }: Owner): string => {
    const answer = answers.find((each) => each.address === address);
    return answer?.kind === 'silent' ? answer.problem : 'answered';
  };
  t.is(problemOf(gone), 'ECONNRESET');
  t.is(problemOf(refuses), 'it answers 403');
  t.regex(problemOf(floods), /more than \d+ bytes/);
});

test('gives up a replica that has not answered within two seconds', async (t) => {
  const clock = new FakeClock();
  let isAsked = false;
  const hangs = await serve(t, 'hangs', () => {
    isAsked = true;
  });
  let answers: readonly ReplicaAnswer[] | undefined;
  void queriesTo([hangs], clock)
    .ask(TARGET)
    .then((all) => {
      answers = all;
    });
  await waitFor(() => isAsked, { message: 'the replica to be asked' });
  await clock.advanceInSteps(1999, 1999);
  t.is(answers, undefined);
  await clock.advanceInSteps(1, 1);
  t.deepEqual(answers, [{ kind: 'silent', address: hangs.address, problem: 'it did not answer in time' }]);
});

test('gives up all replicas within seven seconds, however many do not answer', async (t) => {
  const clock = new FakeClock();
  const { address } = await serve(t, 'hangs', () => undefined);
  const many = Array.from({ length: 60 }, (_, index) => ({ id: `replica-${index}`, address }));
  let answers: readonly ReplicaAnswer[] = [];
  void queriesTo(many, clock)
    .ask(TARGET)
    .then((all) => {
      answers = all;
    });
  await clock.advanceInSteps(7000, 100);
  t.is(answers.length, 60);
  t.true(answers.every(({ kind }) => kind === 'silent'));
});

test('of very many replicas the last are named as not asked', async (t) => {
  let asked = 0;
  const { address } = await serve(t, 'each', (_request, response) => {
    asked += 1;
    response.end('{}');
  });
  const many = Array.from({ length: 103 }, (_, index) => ({ id: `replica-${index}`, address }));
  const answers = await queriesTo(many).ask(TARGET);
  t.is(asked, 100);
  t.is(answers.length, 103);
  t.is(answers.filter(({ kind }) => kind === 'silent').length, 3);
});
