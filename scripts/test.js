/**
 * `npm test` builds the program and the tests and runs all but those of `npm run test:long` and `test:cluster`, which take longer than all
 * others together. `npm test -- test/wire/ndjson.test.ts` runs one file, `npm test -- test/wire` a folder. Other arguments,
 * such as `--match='*ping*'`, go to AVA.
 */
import { spawn } from 'node:child_process';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { bundleServers, bundlesIn, bundleTests } from './bundle-tests.js';

/** Of this run alone: two may run side by side. */
const OUT = `build/${process.pid}`;

/**
 * What `npm run test:long` and `npm run test:cluster` run: every pair of client and server, every way that a network or a
 * process can fail, and both with several replicas.
 */
const LONG = ['matrix', 'faults', 'replicas', 'image', 'binary'];

const given = process.argv.slice(2);
const places = given.filter((argument) => statSync(argument, { throwIfNoEntry: false }));
const bundles = (places.length === 0 ? everythingElse() : places).flatMap(bundlesIn);

try {
  const building = [import('./build.js'), bundleTests(bundles, OUT)];
  // One bundle starts too few servers for that to pay.
  if (bundles.length > 1) building.push(bundleServers(`${OUT}/servers`));
  await Promise.all(building);
  if (bundles.length > 1) process.env.BUNDLED_SERVERS = resolve(OUT, 'servers');
  const options = given.filter((argument) => !places.includes(argument));
  process.exitCode = await runAva([...options, `${OUT}/test/**/*.test.js`]);
} finally {
  rmSync(OUT, { recursive: true, force: true });
}

function everythingElse() {
  return readdirSync('test')
    .filter((name) => !LONG.includes(name) && (!name.includes('.') || name.endsWith('.test.ts')))
    .map((name) => join('test', name));
}

function runAva(args) {
  const ava = join('node_modules', 'ava', 'entrypoints', 'cli.mjs');
  const child = spawn(process.execPath, [ava, ...args], { stdio: 'inherit' });
  return new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)));
}
