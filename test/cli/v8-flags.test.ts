import test from 'ava';
import { V8Flags } from '../../src/cli/v8-flags.ts';
import { savedCode } from '../support/saved-code.ts';

const NAME = 'heap-growing-percent';
const changed = { value: 800, byDefault: 0 };
const restored = { value: 0, byDefault: 0 };

test.serial('saved code is reused while flags have their defaults, and only then', (t) => {
  const flags = new V8Flags();
  const isReused = savedCode();
  flags.set(NAME, changed);
  t.false(isReused());
  t.true(flags.withDefaults(isReused));
  t.false(isReused());
  flags.set(NAME, restored);
  t.true(isReused());
});

test.serial('a file that loads another leaves the defaults to the rest of its own load', (t) => {
  const flags = new V8Flags();
  const isReused = savedCode();
  flags.set(NAME, changed);
  flags.withDefaults(() => {
    t.true(flags.withDefaults(isReused));
    t.true(isReused());
  });
  t.false(isReused());
  flags.set(NAME, restored);
});

test.serial('a failed load gives flags their values again', (t) => {
  const flags = new V8Flags();
  const isReused = savedCode();
  flags.set(NAME, changed);
  const failed = new Error('a file is missing');
  const load = () => {
    throw failed;
  };
  t.is(
    t.throws(() => flags.withDefaults(load)),
    failed,
  );
  t.false(isReused());
  flags.set(NAME, restored);
  t.true(isReused());
});
