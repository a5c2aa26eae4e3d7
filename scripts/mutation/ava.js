/**
 * What stands for AVA's `test` in the files that run against mutants: it hands the tests on to scripts/mutation/runner.js, which
 * loads the file. The assertions are AVA's own.
 */

/** @type {(title: string, run: Function, args: unknown[]) => void} */
const declare = globalThis.declareTestForMutants;

function test(...given) {
  const title = typeof given[0] === 'string' ? given.shift() : undefined;
  const [run, ...args] = given;
  declare(run.title?.(title, ...args) ?? title, run.exec ?? run, args);
}

export default Object.assign(test, {
  serial: Object.assign((...given) => test(...given), { skip() {} }),
  skip() {},
  macro: (macro) => macro,
});
