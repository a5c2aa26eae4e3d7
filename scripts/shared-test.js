/**
 * What stands for AVA's `test` in a file that shares a process with others. A title names the file it stands in, as AVA does where
 * each has a process of its own. One test runs at a time: with all of them side by side, what one computes would be waited for by
 * those that have a time limit.
 */
import test from 'ava';

/** @param {string} file as it begins the titles */
export function testOf(file) {
  const serial = Object.assign(named(file, test.serial), { skip: named(file, test.serial.skip) });
  return Object.assign(named(file, test.serial), { macro: test.macro, serial, skip: serial.skip });
}

/** @returns a function that takes what AVA's takes: maybe a title, a function or a macro, and what that is given */
function named(file, declare) {
  return (...given) => {
    const title = typeof given[0] === 'string' ? given.shift() : undefined;
    const [run, ...values] = given;
    const full = run?.title?.(title, ...values) ?? title;
    return declare(`${file} › ${full}`, run?.exec ?? run, ...values);
  };
}
