/**
 * `npm test` builds the program and the tests and runs all but those of PARTS; `--part=long` runs one of these, and
 * `--part=fast,long` runs both together.
 * `npm test -- test/wire/ndjson.test.ts` runs one file, `npm test -- test/wire` a folder. Options of AVA, such as
 * `--match='*ping*'`, go to AVA. Any other argument is an error.
 */
import { spawn } from 'node:child_process';
import { rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { bundlePrograms } from './bundle-programs.js';
import { bundlesOf, bundleTests, testFilesIn } from './bundle-tests.js';
import { readTestArguments } from './test-arguments.js';

/** Of this run alone: two may run side by side. */
const OUT = `build/${process.pid}`;

/**
 * What runs apart, since it takes longer than all others together. `long`: every pair of client and server, every failure of a
 * network or a process, and whatever needs programs of others. `cluster`, `image` and `binary`: what needs Redis and HAProxy,
 * a container engine, and an executable of its own.
 */
const PARTS = {
  long: ['test/matrix', 'test/faults', 'test/real-peers', 'test/library', 'test/package', 'test/observe/traces'],
  cluster: ['test/replicas/running', 'test/replicas/store/redis'],
  image: ['test/image'],
  binary: ['test/binary'],
};

/** What is fetched from other machines, some of which are known by certificates of their own only. */
const FETCHES = 'test/image/';

/** All parts together take a third of this on a slow machine. */
const MAX_RUN_MS = 45 * 60_000;
/** AVA names the tests that are pending when it is interrupted, and waits for its workers, of which one may not end. */
const INTERRUPTED_MS = 15_000;

/** What is in none of PARTS. */
const FAST = 'fast';

const given = readTestArguments(process.argv.slice(2), {
  parts: [FAST, ...Object.keys(PARTS)],
  isPlace: (argument) => statSync(argument, { throwIfNoEntry: false }) !== undefined,
});
if ('error' in given) {
  console.error(given.error);
  process.exit(2);
}
const { chosen, places, options } = given;
const files = filesToRun();
const bundles = bundlesOf(files);
// Node decodes these certificates and all its own at each start, which takes longer than the rest of a start.
if (!files.some((file) => file.startsWith(FETCHES))) delete process.env.NODE_EXTRA_CA_CERTS;

/** Somebody who runs all of a part waits for some minutes, and should know that. */
const isWhole = places.length === 0;
const started = performance.now();
if (isWhole)
  console.log(`${files.length} test files. All of npm run check takes 10 to 20 minutes with two processors.`);

try {
  const building = [import('./build.js'), bundleTests(bundles, OUT)];
  // One bundle starts too few servers for that to pay.
  if (bundles.length > 1) building.push(bundlePrograms(`${OUT}/servers`));
  await Promise.all(building);
  if (bundles.length > 1) process.env.BUNDLED_SERVERS = resolve(OUT, 'servers');
  process.exitCode = await runAva([...options, `${OUT}/test/**/*.test.js`]);
} finally {
  rmSync(OUT, { recursive: true, force: true });
  if (isWhole) console.log(`Took ${Math.ceil((performance.now() - started) / 60_000)} min.`);
}

function filesToRun() {
  if (places.length > 0) return places.flatMap(testFilesIn);
  return (chosen.length > 0 ? chosen : [FAST]).flatMap(filesOfPart);
}

function filesOfPart(part) {
  if (part === FAST) return testFilesIn('test').filter((file) => !runsApart(file));
  return PARTS[part].flatMap(testFilesIn);
}

function runsApart(file) {
  return Object.values(PARTS)
    .flat()
    .some((folder) => file.startsWith(`${folder}/`));
}

/** AVA's own limit is for tests, and does not see a worker that cannot end, nor any silence behind a test with a longer limit. */
function runAva(args) {
  const ava = join('node_modules', 'ava', 'entrypoints', 'cli.mjs');
  const child = spawn(process.execPath, [ava, ...args], { stdio: 'inherit' });
  const limit = setTimeout(() => {
    console.error(`The tests have not ended within ${MAX_RUN_MS / 60_000} minutes.`);
    child.kill('SIGINT');
    setTimeout(() => child.kill('SIGKILL'), INTERRUPTED_MS).unref();
  }, MAX_RUN_MS);
  return new Promise((resolve) =>
    child.on('close', (code) => {
      clearTimeout(limit);
      resolve(code ?? 1);
    }),
  );
}
