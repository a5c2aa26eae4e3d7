/** What a server's process can do wrong, through the built bridge. Needs a current build. */
import test from 'ava';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { assertGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { FAULTY, FaultClient, outcomeOf, rssMiBOf, startFaulty } from './faulty-bridge.ts';

const EURO = '12 € and more, so that there is something to cut';
const EXITED = { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } };

for (const fault of ['dies-without-an-answer', 'dies-within-an-answer', 'dies-within-a-character', 'forks-and-dies']) {
  test.serial(`child ${fault}: its call gets one error, its session is over, the next one works`, async (t) => {
    const { bridge, victim, recovered, logged } = await startFaulty(t);
    const children = bridge.children().length;
    const { error } = await victim.call(fault, EURO);
    t.like(error, EXITED);
    t.regex(error?.message ?? '', /was killed by SIGKILL|ended by SIGKILL|SIGKILL/);
    t.is((await victim.call('echo', 'still there?')).status, 404, 'the client is told to open a new session');
    await waitFor(() => bridge.children().length === children - 1, { message: 'its process to be gone' });
    await logged('ERR_UPSTREAM_EXITED');
    if (fault === 'forks-and-dies') await waitFor(() => grandchildrenOf(bridge).length === 1);
    await assertGone(grandchildrenOf(bridge));
    await recovered();
  });
}

/** Those that say so themselves: their parent is gone. */
function grandchildrenOf({ logs }: Bridge): number[] {
  return [...JSON.stringify(logs).matchAll(/grandchild (\d+)/g)].map(([, pid]) => Number(pid));
}

test.serial('child dies-after-the-answer: the answer arrives, and the session is over', async (t) => {
  const { victim, recovered } = await startFaulty(t);
  t.is((await victim.call('dies-after-the-answer', EURO)).text, EURO);
  await waitFor(async () => (await victim.call('echo', 'x')).status === 404, { message: 'the session to be over' });
  await recovered();
});

test.serial('child killed between two calls: the next call is told that the session is over', async (t) => {
  const { bridge, victim, witness, recovered } = await startFaulty(t);
  t.is((await victim.call('echo', 'one')).text, 'one');
  const pids = bridge.children();
  await witness.call('echo', 'x');
  // The victim's is the younger one.
  const pid = Math.max(...pids);
  process.kill(pid, 'SIGKILL');
  await assertGone([pid]);
  await waitFor(async () => (await victim.call('echo', 'x')).status === 404, { message: 'the session to be over' });
  await recovered();
});

test.serial('child killed before it has read a call, and in the middle of one: both get one error', async (t) => {
  const { bridge, victim, recovered } = await startFaulty(t);
  t.is((await victim.call('stops-reading', 'x')).text, 'x');
  const pid = Math.max(...bridge.children());
  const small = victim.start('echo', 'never read');
  const large = victim.start('echo', 'x'.repeat(4 * 1024 * 1024));
  await waitFor(() => stillWaits(small), { message: 'the calls to wait' });
  process.kill(pid, 'SIGKILL');
  for (const answer of [small, large]) t.like((await outcomeOf(await answer)).error, EXITED);
  await recovered();
});

/** Everything that could have answered has had its turn. */
async function stillWaits(answer: Promise<unknown>): Promise<boolean> {
  const waiting = Symbol('waiting');
  const pause = new Promise((resolve) => setTimeout(() => resolve(waiting), 200));
  return (await Promise.race([answer, pause])) === waiting;
}

test.serial(
  'child stops-reading: calls time out one by one, the others are served, its process ends with it',
  async (t) => {
    const { bridge, victim, recovered } = await startFaulty(t, ['--request-timeout', '300ms']);
    t.is((await victim.call('stops-reading', 'x')).text, 'x');
    for (const text of ['small', 'x'.repeat(1024 * 1024)]) {
      const { error } = await victim.call('echo', text);
      t.like(error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT' } } });
    }
    await recovered();
    await waitFor(() => bridge.children().length === 1, { message: 'the process to be gone' });
  },
);

test.serial('child closes-stdout: its call gets one error, and it is ended', async (t) => {
  const { bridge, victim, recovered, logged } = await startFaulty(t);
  const { error } = await victim.call('closes-stdout', 'x');
  t.like(error, EXITED);
  t.regex(error?.message ?? '', /closed its stdout but went on running/);
  await waitFor(() => bridge.children().length === 1, { message: 'the process to be gone' });
  await logged('ERR_UPSTREAM_EXITED');
  await recovered();
});

for (const fault of ['floods-stderr', 'floods-stdout-with-noise', 'floods-stdout-with-messages']) {
  test.serial(`child ${fault}: the call is answered, others go on, memory stays within bounds`, async (t) => {
    const { bridge, victim, witness, recovered } = await startFaulty(t);
    const before = rssMiBOf(bridge.pid);
    const flooded = victim.call(fault, 'after the flood');
    t.is((await witness.call('echo', 'meanwhile')).text, 'meanwhile');
    t.is((await flooded).text, 'after the flood');
    t.true(rssMiBOf(bridge.pid) - before < 200, `${rssMiBOf(bridge.pid) - before} MiB more`);
    await recovered();
  });
}

test.serial('child writes-a-gibibyte-of-spaces: the call is answered, and memory stays within bounds', async (t) => {
  const { bridge, victim, recovered } = await startFaulty(t);
  const before = rssMiBOf(bridge.pid);
  t.is((await victim.call('writes-a-gibibyte-of-spaces', 'after all')).text, 'after all');
  t.true(rssMiBOf(bridge.pid) - before < 200, `${rssMiBOf(bridge.pid) - before} MiB more`);
  await recovered();
});

for (const isolation of ['session', 'shared']) {
  for (const fault of ['answers-garbage', 'answers-wrong-ids', 'answers-twice', 'answers-what-nobody-asked']) {
    test.serial(
      `server ${fault} (${isolation}): the call gets its own answer, once, and nobody another's`,
      async (t) => {
        const { victim, witness, recovered } = await startFaulty(t, ['--isolation', isolation]);
        const [one, other] = await Promise.all([victim.call(fault, 'mine'), witness.call('echo', 'not yours')]);
        t.is(one.text, 'mine');
        t.is(other.text, 'not yours');
        t.is((await victim.call('echo', 'and on')).text, 'and on', 'the session goes on');
        await recovered();
      },
    );
  }
}

test.serial(
  'child dies (shared): all calls get one error each, and the next child serves the same sessions',
  async (t) => {
    const { bridge, victim, witness, recovered } = await startFaulty(t, ['--isolation', 'shared']);
    t.is((await victim.call('stops-reading', 'x')).text, 'x');
    const waiting = [victim.start('echo', 'a'), witness.start('echo', 'b')];
    await waitFor(() => stillWaits(Promise.race(waiting)), { message: 'the calls to wait' });
    const [pid = 0] = bridge.children();
    process.kill(pid, 'SIGKILL');
    for (const answer of waiting) t.like((await outcomeOf(await answer)).error, EXITED);
    t.is((await victim.call('echo', 'and on')).text, 'and on', 'the session goes on');
    await recovered();
  },
);

test.serial('child that ignores the end of its input and SIGTERM is killed when its session ends', async (t) => {
  const { bridge, victim, recovered } = await startFaulty(t, [], ['--', ...FAULTY, 'stubborn']);
  const pid = Math.max(...bridge.children());
  await (await victim.session.delete()).text();
  await assertGone([pid]);
  await recovered();
});

test.serial('bridge killed by SIGKILL: children that honour the end of their input are gone', async (t) => {
  const bridge = await startBridge(['--', ...FAULTY]);
  t.teardown(() => bridge.stop());
  for (let clients = 0; clients < 3; clients += 1) await FaultClient.connect(bridge);
  const children = bridge.children();
  t.is(children.length, 3);
  bridge.kill('SIGKILL');
  await bridge.exited;
  await assertGone(children);
});
