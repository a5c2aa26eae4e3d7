/** Bundles the test files that are given; Stryker calls it in its copy of the project, with mutants in src/. */
import { resolve } from 'node:path';
import { alone, bundleTests } from '../bundle-tests.js';

await bundleTests(process.argv.slice(2).map(alone), 'build/mutation', {
  ava: resolve('scripts/mutation/ava.js'),
});
