import test from 'ava';
import { enter, leave, record, resume, type Step, suspend, withoutOlderTimers } from '../../scripts/trace/recorder.ts';
import { FakeClock } from '../support/fake-clock.ts';

const enterNamed = (name: string) => enter('file.ts', 1, name);
const call = (name: string): void => leave(enterNamed(name));
/** Each step as the trace prints it, without its file. */
const shown = (steps: readonly Step[]): string[] => steps.map(({ name, depth }) => `${'  '.repeat(depth)}${name}`);

test.serial('a function that waits lets its caller run on, and is the caller again when it goes on', async (t) => {
  const steps = await record(async () => {
    const outer = enterNamed('outer');
    const waits = enterNamed('waits');
    const answer = suspend(waits, Promise.resolve());
    call('after the wait began');
    leave(outer);
    resume(waits, await answer);
    call('after the wait');
    leave(waits);
    call('called by Node');
  });
  t.deepEqual(shown(steps), ['outer', '  waits', '  after the wait began', '    after the wait', 'called by Node']);
});

test.serial('a function that waits since before the recording is a step when it goes on', async (t) => {
  const waits = enterNamed('waits');
  suspend(waits, undefined);
  const steps = await record(async () => {
    resume(waits, undefined);
    call('called');
    leave(waits);
  });
  t.deepEqual(shown(steps), ['waits', '  called']);
});

test.serial('a function that ends with the rejection it waited for leaves nobody as the caller', async (t) => {
  const steps = await record(async () => {
    const waits = enterNamed('waits');
    suspend(waits, undefined);
    leave(waits);
    call('next');
  });
  t.deepEqual(shown(steps), ['waits', 'next']);
});

test.serial('timers that were set before the recording are left out', async (t) => {
  const real = new FakeClock();
  const clock = withoutOlderTimers(real);
  clock.every(10, () => call('older, periodic'));
  clock.after(10, () => call('older'));
  const steps = await record(async () => {
    clock.after(10, () => call('of the call'));
    real.advance(10);
    call('next');
  });
  t.deepEqual(shown(steps), ['of the call', 'next']);
});
