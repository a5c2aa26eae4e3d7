import test, { type ExecutionContext } from 'ava';
import { passedCallerOf } from '../../../src/http/auth/callers.ts';
import type { ReplicaAnswer } from '../../../src/observe/status/other-replicas.ts';
import { ReplicaQueries } from '../../../src/replicas/forwarding/replica-queries.ts';
import type { Owner } from '../../../src/replicas/ownership/owner-tags.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { createEntryLinks, type Handle, startOwner } from '../../support/linked-replicas.ts';
import { waitFor } from '../../support/wait-for.ts';

const TARGET = '/status.json';

/** A replica of this name that answers others so. */
async function serve(t: ExecutionContext, id: string, handle: Handle): Promise<Owner> {
  return (await startOwner(t, handle, { ids: [id] })).owner;
}

/** Unless a test lets time pass, what a replica answers does not depend on how busy this machine is. */
function queriesTo(t: ExecutionContext, others: readonly Owner[], clock = new FakeClock()): ReplicaQueries {
  const self: Owner = { id: 'self', address: 'http://127.0.0.1:1' };
  const cluster = { self, members: { others: async () => others } };
  return new ReplicaQueries(cluster, { links: createEntryLinks(t).links, clock });
}

test('asks by a name that no caller has, and with nothing else', async (t) => {
  const seen: unknown[] = [];
  const other = await serve(t, 'other', (request, response) => {
    seen.push(request.method, request.url, passedCallerOf(request), { ...request.headers });
    response.end('its status');
  });
  const [answer] = await queriesTo(t, [other]).ask(TARGET);
  t.is(answer?.kind === 'answered' ? answer.body.toString() : '', 'its status');
  t.deepEqual(seen, ['GET', TARGET, 'status', {}]);
});

test('names each replica that does not answer as it should, and why', async (t) => {
  const gone = await serve(t, 'gone', (_request, response) => response.destroy());
  const refuses = await serve(t, 'refuses', (_request, response) => response.writeHead(403).end());
  const floods = await serve(t, 'floods', (_request, response) => {
    const more = (): void => {
      while (response.write(Buffer.alloc(256 * 1024)));
    };
    response.on('drain', more);
    more();
  });
  const answers = await queriesTo(t, [gone, refuses, floods]).ask(TARGET);
  const problemOf = ({ address }: Owner): string => {
    const answer = answers.find((each) => each.address === address);
    return answer?.kind === 'silent' ? answer.problem : 'answered';
  };
  t.is(problemOf(gone), 'the owner has broken off');
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
  void queriesTo(t, [hangs], clock)
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
  const ids = Array.from({ length: 60 }, (_, index) => `replica-${index}`) as [string, ...string[]];
  const { owner } = await startOwner(t, () => undefined, { ids });
  const many = ids.map((id) => ({ ...owner, id }));
  let answers: readonly ReplicaAnswer[] = [];
  void queriesTo(t, many, clock)
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
  const ids = Array.from({ length: 103 }, (_, index) => `replica-${index}`) as [string, ...string[]];
  const handle: Handle = (_request, response) => {
    asked += 1;
    response.end('{}');
  };
  const { owner } = await startOwner(t, handle, { ids });
  const many = ids.map((id) => ({ ...owner, id }));
  const answers = await queriesTo(t, many).ask(TARGET);
  t.is(asked, 100);
  t.is(answers.length, 103);
  t.is(answers.filter(({ kind }) => kind === 'silent').length, 3);
});
