/** Calls of modern clients that wait for answers when their replica is gone, at a server whose streams can be resumed. */
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { MAX_OUTCOME_BYTES } from '../../../src/replicas/stored/stored-outcomes.ts';
import { type LegacyHttpKind, type ServerView, startLegacyHttp } from '../../matrix/servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { type Answer, answering, fromOther, post } from './modern-client.ts';
import { LEASE_MS, type Place, startTestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;

const TOKEN = 'the-token-of-alice-is-long-enough';
const SCHEMA = { type: 'object', properties: { name: { type: 'string' } } };
const question = (message: string) => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: SCHEMA },
});
/** A tool that asks in two rounds, of which the first has two questions. */
const INTERVIEW = {
  name: 'interview',
  arguments: { rounds: [[question('Who?'), question('And who else?')], [question('Are you sure?')]] },
};

interface Replicas {
  readonly places: readonly [Place, Place, Place];
  look(): Promise<ServerSaw>;
}

interface ServerSaw {
  /** How often the tool has run. */
  readonly runs: number;
  readonly canceled: number;
  /** What it was answered. */
  readonly names: readonly string[];
}

async function start(
  t: ExecutionContext,
  kind: LegacyHttpKind = 'stateful-resumable',
  args: readonly string[] = [],
): Promise<Replicas> {
  const server = await startLegacyHttp(kind);
  const bed = await startTestBed({ args: [...args, server.url.href], env: { TEST_ALICE: TOKEN }, leaseMs: LEASE_MS });
  t.teardown(async () => {
    await bed.stop();
    await server.stop();
  });
  const [first, second, third] = bed.places;
  if (first === undefined || second === undefined || third === undefined) throw new Error('there are three');
  return {
    places: [first, second, third],
    async look() {
      const { entries } = (await (await fetch(`http://${server.url.host}/record`)).json()) as ServerView;
      const messages = entries.flatMap(({ kind: said, value }) => (said === 'message' ? [value as Message] : []));
      return {
        runs: messages.filter(({ method }) => method === 'tools/call').length,
        canceled: messages.filter(({ method }) => method === 'notifications/cancelled').length,
        names: messages.flatMap(({ result }) => result?.content?.name ?? []),
      };
    },
  };
}

interface Message {
  readonly method?: string;
  readonly result?: { readonly content?: { readonly name?: string } };
}

const kill = async ({ bridge }: Place): Promise<void> => {
  bridge.kill('SIGKILL');
  await bridge.exited;
};

const wentOn = ({ bridge }: Place): boolean => bridge.logs.some(({ msg = '' }) => msg.startsWith('continuing a call'));

const reasonOf = ({ error }: Answer): string | undefined => error?.data?.bridge?.reason;

test(`a call that waits for answers when its replica is killed gets them through others, and runs once${WHY}`, async (t) => {
  const { places, look } = await start(t);
  const [first, second, third] = places;
  const asked = await post(first.port, 'tools/call', INTERVIEW);
  t.is(Object.keys(asked.result?.inputRequests ?? {}).length, 2, JSON.stringify(asked));
  await kill(first);
  const askedAgain = await fromOther(second.port, 'tools/call', answering(asked, INTERVIEW, 'Ada'));
  t.regex(JSON.stringify(askedAgain.result?.inputRequests), /Are you sure\?/, JSON.stringify(askedAgain));
  // It waits again, and may lose this replica, too.
  await kill(second);
  const answered = await fromOther(third.port, 'tools/call', answering(askedAgain, INTERVIEW, 'Grace'));
  t.regex(JSON.stringify(answered), /Ada.*Ada.*Grace/);
  t.deepEqual(await look(), { runs: 1, canceled: 0, names: ['Ada', 'Ada', 'Grace'] });
});

test(`a client that comes back twice to another replica with its answers gets the same twice${WHY}`, async (t) => {
  const { places, look } = await start(t);
  const [first, second, third] = places;
  const asked = await post(first.port, 'tools/call', INTERVIEW);
  await kill(first);
  const retry = answering(asked, INTERVIEW, 'Ada');
  const again = await Promise.all([second, third].map(({ port }) => fromOther(port, 'tools/call', retry)));
  for (const answer of again)
    t.regex(JSON.stringify(answer.result?.inputRequests), /Are you sure\?/, JSON.stringify(answer));
  const [one] = again;
  const last = answering(one ?? {}, INTERVIEW, 'Grace');
  const answers = [await post(third.port, 'tools/call', last), await post(second.port, 'tools/call', last)];
  for (const answer of answers)
    t.regex(JSON.stringify(answer.result?.content), /Ada.*Ada.*Grace/, JSON.stringify(answer));
  t.deepEqual(await look(), { runs: 1, canceled: 0, names: ['Ada', 'Ada', 'Grace'] });
});

test(`a call that waits for answers when its replica has no more time to shut down gets them through another one${WHY}`, async (t) => {
  const { places, look } = await start(t);
  const [first, second] = places;
  const asked = await post(first.port, 'tools/call', INTERVIEW);
  first.bridge.kill('SIGTERM');
  t.is((await first.bridge.exited).code, 0);
  const askedAgain = await fromOther(second.port, 'tools/call', answering(asked, INTERVIEW, 'Ada'));
  const answered = await post(second.port, 'tools/call', answering(askedAgain, INTERVIEW, 'Grace'));
  t.regex(JSON.stringify(answered), /Ada.*Ada.*Grace/);
  t.deepEqual(await look(), { runs: 1, canceled: 0, names: ['Ada', 'Ada', 'Grace'] });
});

test(`a call that waits for answers when its replica stands still gets them through another one, whatever that does when it wakes${WHY}`, async (t) => {
  const { places, look } = await start(t);
  const [first, second] = places;
  const asked = await post(first.port, 'tools/call', INTERVIEW);
  first.bridge.kill('SIGSTOP');
  let askingAgain: Promise<Answer>;
  try {
    askingAgain = fromOther(second.port, 'tools/call', answering(asked, INTERVIEW, 'Ada'));
    await waitFor(() => wentOn(second), { message: 'the other replica to go on with the call' });
  } finally {
    // The server continues no stream before the connection that it believes to be read is closed.
    first.bridge.kill('SIGCONT');
  }
  const askedAgain = await askingAgain;
  t.regex(JSON.stringify(askedAgain), /Are you sure\?/);
  // It leads to the other one, so it knows that it has lost what it had.
  const answered = await fromOther(first.port, 'tools/call', answering(askedAgain, INTERVIEW, 'Grace'));
  t.regex(JSON.stringify(answered), /Ada.*Ada.*Grace/);
  t.deepEqual(await look(), { runs: 1, canceled: 0, names: ['Ada', 'Ada', 'Grace'] });
});

test(`two calls of one caller that wait in one session with the server go on side by side${WHY}`, async (t) => {
  const { places, look } = await start(t, 'stateful-resumable', ['--auth-token', 'alice=env:TEST_ALICE']);
  const [first, second, third] = places;
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const one = await post(first.port, 'tools/call', INTERVIEW, headers);
  const other = await post(first.port, 'tools/call', INTERVIEW, headers);
  await kill(first);
  const askedAgain = await fromOther(second.port, 'tools/call', answering(one, INTERVIEW, 'Ada'), headers);
  const askedOther = await fromOther(third.port, 'tools/call', answering(other, INTERVIEW, 'Alan'), headers);
  const answered = await post(third.port, 'tools/call', answering(askedAgain, INTERVIEW, 'Grace'), headers);
  t.regex(JSON.stringify(answered), /Ada.*Ada.*Grace/);
  const answeredOther = await post(second.port, 'tools/call', answering(askedOther, INTERVIEW, 'Kurt'), headers);
  t.regex(JSON.stringify(answeredOther), /Alan.*Alan.*Kurt/);
  t.like(await look(), { runs: 2, canceled: 0 });
});

test(`an outcome that is too large for the store is fetched from the server when its replica is gone${WHY}`, async (t) => {
  const { places, look } = await start(t);
  const [first, second] = places;
  const call = { name: 'interview', arguments: { rounds: [[question('Who?')]] } };
  const asked = await post(first.port, 'tools/call', call);
  const name = 'x'.repeat(MAX_OUTCOME_BYTES);
  const retry = answering(asked, call, name);
  t.true(JSON.stringify((await post(first.port, 'tools/call', retry)).result?.content).includes(name));
  await kill(first);
  const answered = await fromOther(second.port, 'tools/call', retry);
  t.true(JSON.stringify(answered.result?.content ?? '').includes(name), JSON.stringify(answered).slice(0, 500));
  t.is((await look()).runs, 1);
});

test(`a call that waits for answers at a server without event ids is lost with its replica, and is not repeated${WHY}`, async (t) => {
  const { places, look } = await start(t, 'stateful');
  const [first, second] = places;
  const asked = await post(first.port, 'tools/call', INTERVIEW);
  await kill(first);
  t.is(reasonOf(await fromOther(second.port, 'tools/call', answering(asked, INTERVIEW, 'Ada'))), 'state_lost');
  t.deepEqual(await look(), { runs: 1, canceled: 0, names: [] });
});
