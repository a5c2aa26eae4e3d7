/** What a server's process can do wrong, through the built bridge. Needs a current build. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { assertGone } from '../support/processes.ts';
import { says } from '../support/says.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectClient, type Era, outcomeOf } from './fault-clients.ts';
import { type Faulty, faulty, hasLooked, rssMiBOf, startFaulty } from './faulty-bridge.ts';

const EURO = '12 € and more, so that there is something to cut';
const EXITED = { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } };
const TIMED_OUT = { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT' } } };
const HUNG = { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_HUNG' } } };
/** Once, whoever shares the process. */
const LOG_OF_AN_EXIT = ['warn ERR_UPSTREAM_EXITED'];
/** Once for each process, however much it is. */
const LOG_OF_NOISE = ['warn prints to stdout something that is not MCP; skipping it (--log-level debug shows it)'];

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

for (const era of ERAS) {
  for (const fault of [
    'dies-without-an-answer',
    'dies-within-an-answer',
    'dies-within-a-character',
    'forks-and-dies',
  ]) {
    test.serial(`${era} child ${fault}: its call gets one error; ${FATE[era]}`, async (t) => {
      const faults = await startFaulty(t, { era });
      const { bridge, victim, childPid, recovered } = faults;
      const { error } = await victim.call(fault, EURO);
      t.like(error, EXITED);
      t.regex(error?.message ?? '', /SIGKILL/);
      await assertGone([childPid]);
      if (fault === 'forks-and-dies') await waitFor(() => grandchildrenOf(bridge).length > 0);
      await assertGone(grandchildrenOf(bridge));
      await meetsItsFate(t, era, faults);
      const isHalfAnAnswer = fault.startsWith('dies-within');
      await recovered({ log: [...LOG_OF_AN_EXIT, ...(isHalfAnAnswer ? LOG_OF_NOISE : [])] });
      t.true(bridge.logs.some(({ code, msg }) => code === 'ERR_UPSTREAM_EXITED' && /SIGKILL/.test(String(msg))));
    });
  }

  test.serial(`${era} child dies-after-the-answer: the answer arrives; ${FATE[era]}`, async (t) => {
    const faults = await startFaulty(t, { era });
    const { bridge, victim, childPid, recovered } = faults;
    t.is((await victim.call('dies-after-the-answer', EURO)).text, EURO);
    await assertGone([childPid]);
    await isKnown(bridge);
    await meetsItsFate(t, era, faults);
    await recovered({ log: LOG_OF_AN_EXIT });
  });

  test.serial(`${era} child killed between two calls: nobody is told; ${FATE[era]}`, async (t) => {
    const faults = await startFaulty(t, { era });
    const { bridge, victim, childPid, recovered } = faults;
    t.is((await victim.call('echo', 'one')).text, 'one');
    process.kill(childPid, 'SIGKILL');
    await assertGone([childPid]);
    await isKnown(bridge);
    await meetsItsFate(t, era, faults);
    await recovered({ log: LOG_OF_AN_EXIT });
  });

  test.serial(
    `${era} child killed before it has read a call, and in the middle of one: both get one error`,
    async (t) => {
      const { bridge, victim, childPid, recovered } = await startFaulty(t, { era });
      t.is((await victim.call('stops-reading', 'x')).text, 'x');
      const small = victim.start('echo', 'x'.repeat(16 * 1024));
      await hasLooked(bridge);
      const hasLarge = readsOf(bridge, 4 * 1024 * 1024);
      const large = victim.start('echo', 'x'.repeat(4 * 1024 * 1024));
      await waitFor(hasLarge, { message: 'the bridge to have the large call' });
      // Its last bytes, too.
      await hasLooked(bridge);
      process.kill(childPid, 'SIGKILL');
      for (const answer of [small, large]) t.like((await outcomeOf(await answer)).error, EXITED);
      await recovered({ log: LOG_OF_AN_EXIT });
    },
  );

  test.serial(`${era} child closes-stdout: its call gets one error, and it is ended`, async (t) => {
    const { victim, childPid, recovered } = await startFaulty(t, { era });
    const { error } = await victim.call('closes-stdout', 'x');
    t.like(error, EXITED);
    t.regex(error?.message ?? '', /closed its stdout but went on running/);
    await assertGone([childPid]);
    await recovered({ log: LOG_OF_AN_EXIT });
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
        const unmatched = UNMATCHED.get(fault);
        await recovered({
          log: [
            ...(unmatched === undefined ? [] : [matchesNothing(unmatched)]),
            ...(NOT_MESSAGES.has(fault) ? LOG_OF_NOISE : []),
          ],
        });
      });
    }
  }

  test.serial(
    `${era} child dies (shared): all calls get one error each, and the next child serves the same clients`,
    async (t) => {
      const faults = await startFaulty(t, { era, options: ['--isolation', 'shared'] });
      const { bridge, victim, witness, childPid, recovered } = faults;
      t.is((await victim.call('stops-reading', 'x')).text, 'x');
      const waiting = [victim.start('echo', 'a'), witness.start('echo', 'b')];
      await hasLooked(bridge);
      process.kill(childPid, 'SIGKILL');
      for (const answer of waiting) t.like((await outcomeOf(await answer)).error, EXITED);
      t.is((await victim.call('echo', 'and on')).text, 'and on', 'the session goes on');
      await recovered({ log: LOG_OF_AN_EXIT });
    },
  );
}

/** A result under `null` is none of anything. */
/** The type of the first id that matches no open call. */
const UNMATCHED: ReadonlyMap<string, string> = new Map([
  ['answers-wrong-ids', 'string'],
  ['answers-twice', 'number'],
  ['answers-what-nobody-asked', 'number'],
]);
const matchesNothing = (type: string): string =>
  `warn Server "node faulty.js" sent an answer that matches no open call and is dropped; its id is a ${type}`;
const NOT_MESSAGES: ReadonlySet<string> = new Set(['answers-garbage', 'answers-wrong-ids']);

/** Those that say so themselves: their parent is gone. */
function grandchildrenOf({ logs }: Bridge): number[] {
  return [...JSON.stringify(logs).matchAll(/grandchild (\d+)/g)].map(([, pid]) => Number(pid));
}

/** The bridge has heard of the end of a process. */
async function isKnown({ logs }: Bridge): Promise<void> {
  await waitFor(() => logs.some(({ code }) => code === 'ERR_UPSTREAM_EXITED'), { message: 'the end to be known' });
}

/** Whether the bridge has read that many bytes more from now on; true where nobody can tell. */
function readsOf({ pid }: Bridge, bytes: number): () => boolean {
  const before = bytesReadBy(pid);
  return () => bytesReadBy(pid) >= before + bytes;
}

function bytesReadBy(pid: number): number {
  if (process.platform !== 'linux') return Infinity;
  return Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
}

test.serial('legacy child of a session stops-reading: calls time out one by one, the others are served', async (t) => {
  // Time enough to end it before all others have been served, if it were not left to its client.
  const options = ['--request-timeout', '8s', '--hang-timeout', '50ms'];
  const { victim, witness, childPid, recovered } = await startFaulty(t, { options });
  t.is((await victim.call('stops-reading', 'x')).text, 'x');
  const unread = ['small', 'x'.repeat(1024 * 1024)].map((text) => victim.call('echo', text));
  t.is((await witness.call('echo', 'and I?')).text, 'and I?');
  for (const { error } of await Promise.all(unread)) t.like(error, TIMED_OUT);
  await recovered();
  await assertGone([childPid]);
});

/** Processes that no client could end by leaving. */
const SHARED_PROCESSES = [
  { fault: 'stops-reading', server: 'legacy', clients: 'legacy', isolation: 'shared' },
  { fault: 'stopped by a signal', server: 'legacy', clients: 'modern', isolation: 'session' },
  { fault: 'stopped by a signal', server: 'modern', clients: 'modern', isolation: 'session' },
] as const;

/** A server of which only one can run at a time, and which ends for nothing but SIGKILL: not before the next one could start. */
function exclusive(t: ExecutionContext, era: Era): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-lock-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return ['--shutdown-grace', '2s', ...faulty(era, 'stubborn', `lock=${join(folder, 'lock')}`)];
}

for (const { fault, server, clients, isolation } of SHARED_PROCESSES) {
  const title = `${server} child of several ${clients} clients ${fault}: it is found out and ended, then the next one serves them`;
  test.serial(title, async (t) => {
    // Time enough to start a process, and to call between the timeouts and the end of the process.
    const options = ['--isolation', isolation, '--request-timeout', '8s', '--hang-timeout', '6s'];
    const faults = await startFaulty(t, { era: clients, options, target: exclusive(t, server) });
    const { victim, witness, childPid, recovered } = faults;
    if (fault === 'stops-reading') t.is((await victim.call(fault, 'x')).text, 'x');
    else process.kill(childPid, 'SIGSTOP');
    const unread = ['small', 'x'.repeat(1024 * 1024)].map((text) => victim.call('echo', text));
    for (const { error } of await Promise.all(unread)) t.like(error, TIMED_OUT);
    t.like((await witness.call('echo', 'and I?')).error, HUNG, 'what is open then is told so');
    t.is((await victim.call('echo', 'and on')).text, 'and on');
    await assertGone([childPid]);
    await recovered({ log: ['warn ERR_UPSTREAM_HUNG'] });
  });
}

for (const fault of ['closes-stdout', 'leaves-its-lock-and-dies']) {
  for (const era of ERAS) {
    const title = `${era} child of several clients ${fault}: the next one starts when nothing is left of it, and serves who waits`;
    test.serial(title, async (t) => {
      const options = ['--isolation', 'shared'];
      const { victim, witness, recovered } = await startFaulty(t, { era, options, target: exclusive(t, era) });
      t.like((await victim.call(fault, 'x')).error, EXITED);
      const answers = await Promise.all([victim.call('echo', 'and on'), witness.call('echo', 'me too')]);
      t.deepEqual(
        answers.map(({ text }) => text),
        ['and on', 'me too'],
      );
      await recovered({ log: LOG_OF_AN_EXIT });
    });
  }
}

const UNTIL: Readonly<Record<Era, string>> = { legacy: 'its session ends', modern: 'the bridge ends' };

for (const era of ERAS) {
  test.serial(`${era} child that ignores the end of its input and SIGTERM is killed when ${UNTIL[era]}`, async (t) => {
    const options = ['--log-level', 'debug'];
    const faults = await startFaulty(t, { era, options, target: faulty(era, 'stubborn') });
    const { bridge, victim, childPid: pid } = faults;
    if (era === 'legacy') {
      await victim.leave();
      await assertGone([pid]);
      await faults.recovered();
    } else {
      await bridge.stop();
      says(t, bridge, []);
    }
    const steps = bridge.logs.filter(({ childPid, step }) => childPid === pid && step !== undefined);
    t.deepEqual(
      steps.map(({ level, step }) => `${level} ${step}`),
      ['debug close-stdin', 'debug SIGTERM', 'debug SIGKILL'],
    );
  });
}

test.serial('bridge killed by SIGKILL: children that honor the end of their input are gone', async (t) => {
  const bridge = await startBridge(faulty());
  t.teardown(() => bridge.stop());
  for (let clients = 0; clients < 3; clients += 1) await connectClient(bridge, 'legacy');
  const children = bridge.children();
  t.is(children.length, 3);
  bridge.kill('SIGKILL');
  await bridge.exited;
  await assertGone(children);
});
