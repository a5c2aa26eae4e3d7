/**
 * A test runner for Stryker that keeps the test files loaded: a mutant is turned on while they run, so trying it takes as long as
 * the tests that reach it, and not the start of a process for each of their files.
 *
 * The tests and their assertions are AVA's. A mutant is noticed when a test fails, but only if the same test passes without the
 * mutant directly afterward: a failure that an earlier mutant left behind ends the process, and the mutant is tried in a new one.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** The parts of AVA that run one test have no public name. They are found beside the one that has. */
const avaFolder = dirname(dirname(fileURLToPath(import.meta.resolve('ava'))));
const [{ default: AvaTest }, { default: ContextRef }] = await Promise.all(
  ['test.js', 'context-ref.js'].map((file) => import(pathToFileURL(resolve(avaFolder, 'lib', file)).href)),
);

/** Stryker's names for how a run and a test end. */
const COMPLETE = 'complete';
const SUCCESS = 0;
const FAILED = 1;

/** A test that takes longer than this, and many times longer than without mutants, waits for something that never happens. */
const TEST_TIMEOUT_MS = 2000;
const TIMES_LONGER = 3;
/** A test that takes longer without mutants tries none: all mutants that survive would be tried with it, each as long. */
const SLOWEST_TEST_MS = 3000;
/** Of the run without mutants. */
const WITHOUT_LIMIT_MS = 120_000;
const TEARDOWN_MS = 500;
const TOOK_TOO_LONG = 'took too long';

/** How many tests that have just noticed a mutant are tried before all others. */
const MAX_LATEST = 3;

/**
 * Written by the run without mutants: how long each test took. The fastest are tried first, since one that fails is enough.
 */
const TIMES = 'build/mutation/times.json';
/** Written by it as well: how often each test passed through the place of each mutant. */
const HITS = 'build/mutation/hits.json';
/** A test that passes through the place of a mutant so many times more often than without it goes round for ever. */
const TIMES_MORE_OFTEN = 20;
const FEWEST_HITS = 100_000;

class InProcessRunner {
  /** Test files by where they are bundled, and whether they have been loaded. */
  #files;
  /** By id, which names the file and the title. */
  #tests = new Map();
  /** Those that noticed a mutant most recently: its neighbors are often noticed by the same. */
  #latest = [];
  #times = new Map(existsSync(TIMES) ? JSON.parse(readFileSync(TIMES, 'utf8')) : []);
  #hits = existsSync(HITS) ? JSON.parse(readFileSync(HITS, 'utf8')) : {};
  #loaded = new Set();
  #errors = new Set();
  #mutants;

  constructor({ inProcess }) {
    this.#files = inProcess.testFiles;
    this.#mutants = globalThis.__stryker__ ??= {};
    process.on('uncaughtException', (error) => this.#errors.add({ error }));
    const rejections = new Map();
    process.on('unhandledRejection', (error, promise) => {
      const entry = { error };
      rejections.set(promise, entry);
      this.#errors.add(entry);
    });
    process.on('rejectionHandled', (promise) => this.#errors.delete(rejections.get(promise)));
  }

  /** A process is started anew for a mutant that takes effect while files are loaded. */
  capabilities() {
    return { reloadEnvironment: false };
  }

  async dryRun() {
    this.#mutants.mutantCoverage = { static: {}, perTest: {} };
    for (const file of this.#files) await this.#load(file);
    const tests = [];
    for (const [id, test] of this.#tests) {
      this.#mutants.currentTestId = id;
      const startedAt = performance.now();
      const failure = await this.#run(test, WITHOUT_LIMIT_MS);
      this.#mutants.currentTestId = undefined;
      const status = failure === undefined ? SUCCESS : FAILED;
      tests.push({ id, name: id, status, timeSpentMs: performance.now() - startedAt, failureMessage: failure });
    }
    writeFileSync(TIMES, JSON.stringify(tests.map(({ id, timeSpentMs }) => [id, timeSpentMs])));
    writeFileSync(HITS, JSON.stringify(this.#mutants.mutantCoverage.perTest));
    return { status: COMPLETE, tests, mutantCoverage: this.#mutants.mutantCoverage };
  }

  async mutantRun({ activeMutant, mutantActivation, testFilter }) {
    const isStatic = mutantActivation === 'static';
    this.#activate(isStatic ? activeMutant.id : undefined);
    for (const file of this.#files) {
      if (testFilter === undefined || testFilter.some((id) => id.startsWith(`${file} `))) await this.#load(file);
    }
    let nrOfTests = 0;
    for (const id of this.#inOrder(testFilter ?? [...this.#tests.keys()], activeMutant.fileName)) {
      const test = this.#tests.get(id);
      nrOfTests += 1;
      const hitLimit = Math.max(FEWEST_HITS, TIMES_MORE_OFTEN * (this.#hits[id]?.[activeMutant.id] ?? 0));
      this.#activate(activeMutant.id, hitLimit);
      const limitMs = Math.max(TEST_TIMEOUT_MS, TIMES_LONGER * this.#timeOf(id));
      const failureMessage = await this.#run(test, limitMs);
      const hitCount = this.#mutants.hitCount;
      if (hitCount > hitLimit) return { status: 'timeout', reason: `Hit limit reached (${hitCount}/${hitLimit})` };
      if (failureMessage === undefined) continue;
      if (!isStatic) await this.#mustPassWithoutMutant(id, test, limitMs);
      if (failureMessage === TOOK_TOO_LONG) return { status: 'timeout', reason: `${id} ${TOOK_TOO_LONG}` };
      this.#latest = [id, ...this.#latest.filter((other) => other !== id)].slice(0, MAX_LATEST);
      return { status: 'killed', killedBy: [id], failureMessage, nrOfTests };
    }
    return { status: 'survived', nrOfTests };
  }

  /** Tests that failed just now come first, then those of the file that is changed, and in each group the fastest. */
  #inOrder(ids, source) {
    const own =
      source
        .split(/[\\/]src[\\/]/)
        .at(-1)
        ?.replace(/\.ts$/, '.test.js') ?? '';
    const fastestFirst = ids.toSorted((a, b) => this.#timeOf(a) - this.#timeOf(b));
    const isOwn = (id) => id.includes(`/test/${own.replaceAll('\\', '/')} `);
    return [...new Set([...this.#latest, ...fastestFirst.filter(isOwn), ...fastestFirst])].filter(
      (id) => ids.includes(id) && this.#timeOf(id) <= SLOWEST_TEST_MS,
    );
  }

  #timeOf(id) {
    return this.#times.get(id) ?? 0;
  }

  async #mustPassWithoutMutant(id, test, limitMs) {
    this.#activate(undefined);
    const failure = await this.#run(test, limitMs);
    if (failure !== undefined) throw new Error(`${id} fails without a mutant, after one: ${failure}`);
  }

  #activate(id, hitLimit) {
    this.#mutants.activeMutant = id;
    this.#mutants.hitCount = hitLimit === undefined ? undefined : 0;
    this.#mutants.hitLimit = hitLimit;
  }

  async #load(file) {
    if (this.#loaded.has(file)) return;
    this.#loaded.add(file);
    globalThis.declareTestForMutants = (title, run, args) => {
      const id = `${file} › ${title}`;
      this.#tests.set(id, { title, run: (t) => run(t, ...args) });
    };
    await import(pathToFileURL(resolve(file)).href);
  }

  /** @returns why the test failed, or undefined */
  async #run({ title, run }, limitMs) {
    this.#errors.clear();
    const test = new AvaTest({
      contextRef: new ContextRef(),
      failWithoutAssertions: true,
      fn: run,
      metadata: { failing: false, inline: false, taskIndex: 0 },
      notifyTimeoutUpdate() {},
      registerUniqueTitle: () => true,
      title,
    });
    test.timeout(limitMs, TOOK_TOO_LONG);
    const { passed, error } = await Promise.race([test.run(), afterTeardown(limitMs)]);
    // Node reports a rejection that nobody handles when the microtasks are done.
    await new Promise((done) => setImmediate(done));
    if (!passed) return textOf(error);
    const [outside] = this.#errors;
    return outside === undefined ? undefined : textOf(outside.error);
  }
}

/** What a test waits for in vain can keep its teardown waiting as well. */
async function afterTeardown(limitMs) {
  await setTimeout(limitMs + TEARDOWN_MS, undefined, { ref: false });
  return { passed: false, error: new Error(TOOK_TOO_LONG) };
}

function textOf(error) {
  const { message = String(error), cause } = error ?? {};
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

const create = (options) => new InProcessRunner(options);
create.inject = ['options'];

export const strykerPlugins = [{ kind: 'TestRunner', name: 'in-process', factory: create }];

/** The options that Stryker lets through to this runner. */
export const strykerValidationSchema = {
  properties: {
    inProcess: {
      type: 'object',
      properties: { testFiles: { type: 'array', items: { type: 'string' } } },
      required: ['testFiles'],
    },
  },
};
