/** Bundles the test files that are given; Stryker calls it in its copy of the project, with mutants in src/. */
import { alone, bundleTests } from '../bundle-tests.js';

await bundleTests(process.argv.slice(2).map(alone), 'build/mutation');
