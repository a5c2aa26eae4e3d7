/** What a server's process can do wrong, through the built bridge. Needs a current build. */
import test, { type ExecutionContext } from 'ava';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { assertGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectClient, type Era, outcomeOf } from './fault-clients.ts';
import { type Faulty, faulty, rssMiBOf, says, startFaulty } from './faulty-bridge.ts';

const EURO = '12 € and more, so that there is something to cut';
const EXITED = { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } };
const TIMED_OUT = { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT' } } };
const LOG_OF_AN_EXIT: Readonly<Record<Era, readonly string[]>> = {
  legacy: ['warn ERR_UPSTREAM_EXITED'],
  // Of the process, and of what is shared.
  modern: ['warn ERR_UPSTREAM_EXITED', 'warn ERR_UPSTREAM_EXITED'],
};
/** Once for each process, however much it is. */
const LOG_OF_NOISE = ['warn prints to stdout something that is not MCP; it is skipped (--log-level debug shows it)'];

const ERAS: readonly Era[] = ['legacy', 'modern'];

/** A legacy client has a session and a process of its own, and loses both; one process serves all modern clients. */
const FATE: Readonly<Record<Era, string>> = {
  legacy: 'its session is over, and the next one works',
  modern: 'its next call is served by the next child',
};

async function meetsItsFate(t: ExecutionContext, era: Era, { victim }: Faulty): Promise<void> {
  const { status, text } = await victim.call('echo', 'still there?');
  if (era === 'legacy') t.is(status, 404, 'the client is told to open a new session');
  else t.is(text, 'still there?');
}

/** That of the client that came last; modern clients have only one together. */
const childOf = (bridge: Bridge): number => Math.max(...bridge.children());

for (const era of ERAS) {
  for (const fault of [
    'dies-without-an-answer',
    'dies-within-an-answer',
    'dies-within-a-character',
    'forks-and-dies',
  ]) {
    test.serial(`${era} child ${fault}: its call gets one error; ${FATE[era]}`, async (t) => {
      const faults = await startFaulty(t, { era });
      const { bridge, victim, recovered } = faults;
      const pid = childOf(bridge);
      const { error } = await victim.call(fault, EURO);
      t.like(error, EXITED);
      t.regex(error?.message ?? '', /SIGKILL/);
      await assertGone([pid]);
      if (fault === 'forks-and-dies') await waitFor(() => grandchildrenOf(bridge).length > 0);
      await assertGone(grandchildrenOf(bridge));
      await meetsItsFate(t, era, faults);
      const isHalfAnAnswer = fault.startsWith('dies-within');
      await recovered({ log: [...LOG_OF_AN_EXIT[era], ...(isHalfAnAnswer ? LOG_OF_NOISE : [])] });
      t.true(bridge.logs.some(({ code, msg }) => code === 'ERR_UPSTREAM_EXITED' && /SIGKILL/.test(String(msg))));
    });
  }

  test.serial(`${era} child dies-after-the-answer: the answer arrives; ${FATE[era]}`, async (t) => {
    const faults = await startFaulty(t, { era });
    const { bridge, victim, recovered } = faults;
    const pid = childOf(bridge);
    t.is((await victim.call('dies-after-the-answer', EURO)).text, EURO);
    await assertGone([pid]);
    await isKnown(bridge);
    await meetsItsFate(t, era, faults);
    await recovered({ log: LOG_OF_AN_EXIT[era] });
  });

  test.serial(`${era} child killed between two calls: nobody is told; ${FATE[era]}`, async (t) => {
    const faults = await startFaulty(t, { era });
    const { bridge, victim, recovered } = faults;
    t.is((await victim.call('echo', 'one')).text, 'one');
    const pid = childOf(bridge);
    process.kill(pid, 'SIGKILL');
    await assertGone([pid]);
    await isKnown(bridge);
    await meetsItsFate(t, era, faults);
    await recovered({ log: LOG_OF_AN_EXIT[era] });
  });

  test.serial(
    `${era} child killed before it has read a call, and in the middle of one: both get one error`,
    async (t) => {
      const { bridge, victim, recovered } = await startFaulty(t, { era });
      t.is((await victim.call('stops-reading', 'x')).text, 'x');
      const pid = childOf(bridge);
      const small = victim.start('echo', 'never read');
      const large = victim.start('echo', 'x'.repeat(4 * 1024 * 1024));
      await waitFor(() => stillWaits(small), { message: 'the calls to wait' });
      process.kill(pid, 'SIGKILL');
      for (const answer of [small, large]) t.like((await outcomeOf(await answer)).error, EXITED);
      await recovered({ log: LOG_OF_AN_EXIT[era] });
    },
  );

  test.serial(`${era} child closes-stdout: its call gets one error, and it is ended`, async (t) => {
    const { bridge, victim, recovered } = await startFaulty(t, { era });
    const pid = childOf(bridge);
    const { error } = await victim.call('closes-stdout', 'x');
    t.like(error, EXITED);
    t.regex(error?.message ?? '', /closed its stdout but went on running/);
    await assertGone([pid]);
    await recovered({ log: LOG_OF_AN_EXIT[era] });
  });

  for (const fault of ['floods-stderr', 'floods-stdout-with-noise', 'floods-stdout-with-messages']) {
    test.serial(`${era} child ${fault}: the call is answered, others go on, memory stays within bounds`, async (t) => {
      const { bridge, victim, witness, recovered } = await startFaulty(t, { era });
      const before = rssMiBOf(bridge.pid);
      const flooded = victim.call(fault, 'after the flood');
      t.is((await witness.call('echo', 'meanwhile')).text, 'meanwhile');
      t.is((await flooded).text, 'after the flood');
      t.true(rssMiBOf(bridge.pid) - before < 200, `${rssMiBOf(bridge.pid) - before} MiB more`);
      await recovered({ log: fault === 'floods-stdout-with-noise' ? LOG_OF_NOISE : [] });
      if (fault === 'floods-stderr')
        t.true(bridge.logs.some(({ stream, level }) => stream === 'stderr' && level === 'info'));
    });
  }

  test.serial(
    `${era} child writes-a-gibibyte-of-spaces: the call is answered, and memory stays within bounds`,
    async (t) => {
      const { bridge, victim, recovered } = await startFaulty(t, { era });
      const before = rssMiBOf(bridge.pid);
      t.is((await victim.call('writes-a-gibibyte-of-spaces', 'after all')).text, 'after all');
      t.true(rssMiBOf(bridge.pid) - before < 200, `${rssMiBOf(bridge.pid) - before} MiB more`);
      await recovered({ log: LOG_OF_NOISE });
    },
  );

  // One process serves all modern clients anyway.
  for (const isolation of era === 'legacy' ? ['session', 'shared'] : ['session']) {
    for (const fault of ['answers-garbage', 'answers-wrong-ids', 'answers-twice', 'answers-what-nobody-asked']) {
      const title = `${era} server ${fault} (${isolation}): the call gets its own answer, once, and nobody another's`;
      test.serial(title, async (t) => {
        const { victim, witness, recovered } = await startFaulty(t, { era, options: ['--isolation', isolation] });
        const [one, other] = await Promise.all([victim.call(fault, 'mine'), witness.call('echo', 'not yours')]);
        t.is(one.text, 'mine');
        t.is(other.text, 'not yours');
        t.is((await victim.call('echo', 'and on')).text, 'and on', 'the session goes on');
        await recovered({ log: NOT_MESSAGES.has(fault) ? LOG_OF_NOISE : [] });
      });
    }
  }

  test.serial(
    `${era} child dies (shared): all calls get one error each, and the next child serves the same clients`,
    async (t) => {
      const { bridge, victim, witness, recovered } = await startFaulty(t, { era, options: ['--isolation', 'shared'] });
      t.is((await victim.call('stops-reading', 'x')).text, 'x');
      const waiting = [victim.start('echo', 'a'), witness.start('echo', 'b')];
      await waitFor(() => stillWaits(Promise.race(waiting)), { message: 'the calls to wait' });
      process.kill(childOf(bridge), 'SIGKILL');
      for (const answer of waiting) t.like((await outcomeOf(await answer)).error, EXITED);
      t.is((await victim.call('echo', 'and on')).text, 'and on', 'the session goes on');
      await recovered({ log: LOG_OF_AN_EXIT.modern });
    },
  );
}

/** A result under `null` is none of anything. */
const NOT_MESSAGES: ReadonlySet<string> = new Set(['answers-garbage', 'answers-wrong-ids']);

/** Those that say so themselves: their parent is gone. */
function grandchildrenOf({ logs }: Bridge): number[] {
  return [...JSON.stringify(logs).matchAll(/grandchild (\d+)/g)].map(([, pid]) => Number(pid));
}

/** The bridge has heard of the end of a process. */
async function isKnown({ logs }: Bridge): Promise<void> {
  await waitFor(() => logs.some(({ code }) => code === 'ERR_UPSTREAM_EXITED'), { message: 'the end to be known' });
}

/** Everything that could have answered has had its turn. */
async function stillWaits(answer: Promise<unknown>): Promise<boolean> {
  const waiting = Symbol('waiting');
  const pause = new Promise((resolve) => setTimeout(() => resolve(waiting), 200));
  return (await Promise.race([answer, pause])) === waiting;
}

for (const era of ERAS) {
  const others = era === 'legacy' ? 'the others are served' : 'those of all clients, until it is ended';
  test.serial(`${era} child stops-reading: calls time out one by one, ${others}`, async (t) => {
    const { bridge, victim, witness, recovered } = await startFaulty(t, { era, options: ['--request-timeout', '1s'] });
    t.is((await victim.call('stops-reading', 'x')).text, 'x');
    const pid = childOf(bridge);
    const unread = ['small', 'x'.repeat(1024 * 1024)].map((text) => victim.call('echo', text));
    const other = await witness.call('echo', 'and I?');
    if (era === 'legacy') t.is(other.text, 'and I?');
    else t.like(other.error, TIMED_OUT);
    for (const { error } of await Promise.all(unread)) t.like(error, TIMED_OUT);
    if (era === 'modern') {
      await says(t, bridge, []);
      process.kill(pid, 'SIGKILL');
      await isKnown(bridge);
    }
    await recovered({ log: era === 'modern' ? LOG_OF_AN_EXIT.modern : [] });
    await assertGone([pid]);
  });
}

const UNTIL: Readonly<Record<Era, string>> = { legacy: 'its session ends', modern: 'the bridge ends' };

for (const era of ERAS) {
  test.serial(`${era} child that ignores the end of its input and SIGTERM is killed when ${UNTIL[era]}`, async (t) => {
    const options = ['--log-level', 'debug'];
    const faults = await startFaulty(t, { era, options, target: faulty(era, 'stubborn') });
    const { bridge, victim } = faults;
    const pid = childOf(bridge);
    if (era === 'legacy') {
      await victim.leave();
      await assertGone([pid]);
      await faults.recovered();
    } else {
      await bridge.stop();
      await says(t, bridge, []);
    }
    const steps = bridge.logs.filter(({ childPid, step }) => childPid === pid && step !== undefined);
    t.deepEqual(
      steps.map(({ level, step }) => `${level} ${step}`),
      ['debug close-stdin', 'debug SIGTERM', 'debug SIGKILL'],
    );
  });
}

test.serial('bridge killed by SIGKILL: children that honour the end of their input are gone', async (t) => {
  const bridge = await startBridge(faulty());
  t.teardown(() => bridge.stop());
  for (let clients = 0; clients < 3; clients += 1) await connectClient(bridge, 'legacy');
  const children = bridge.children();
  t.is(children.length, 3);
  bridge.kill('SIGKILL');
  await bridge.exited;
  await assertGone(children);
});
