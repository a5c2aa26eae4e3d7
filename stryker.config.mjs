/**
 * `npm run mutation` changes src/ in thousands of small ways, one at a time (each is a mutant), and runs the tests that
 * reach the changed place: a mutant that no test notices has survived, and shows what the tests do not look at.
 * `-- --mutate src/http/server/access-policy.ts` tries one part. docs/internals/long-checks.md says how to read the result.
 */

import { existsSync } from 'node:fs';
import { testFilesIn } from './scripts/bundle-tests.js';

/** These take seconds, with sockets, the official SDK or much memory, and would be run for nearly every mutant that survives. */
const SLOW_RELAY = [
  'test/relay/shared/modern/sdk-server.test.ts',
  'test/relay/shared/modern/over-http.test.ts',
  'test/relay/shared/modern/modern-memory.test.ts',
  'test/relay/shared/legacy/shared-memory.test.ts',
];
const WITHDRAWN = 'test/relay/shared/withdrawn-requests.test.ts';

const SLOW_POOL = ['http-server', 'input', 'sdk-server', 'sdk-tasks', 'stdio-server'].map(
  (name) => `test/eras/modern-to-legacy/${name}.test.ts`,
);

/** The parts that carry the promises, and the tests that are there to notice when one of them is broken. */
const PARTS = [
  {
    source: 'src/http/server/access-policy.ts',
    tests: ['test/http/server/access-policy.test.ts', 'test/downstream/access.test.ts'],
  },
  {
    source: 'src/http/auth',
    tests: [
      'test/http/auth',
      'test/downstream/access.test.ts',
      'test/downstream/authentication.test.ts',
      'test/downstream/mapped-headers.test.ts',
      'test/downstream/listener',
    ],
  },
  { source: 'src/http/login', tests: ['test/http/login'] },
  // What a withdrawn request holds is measured with so many bytes that no other part waits for it.
  { source: 'src/relay/shared/shared-client.ts', tests: ['test/relay/shared'], except: SLOW_RELAY },
  // The pool of sessions for modern clients is on such a server, with a policy of its own.
  {
    source: 'src/relay/shared/legacy',
    tests: ['test/relay/shared', 'test/eras/modern-to-legacy'],
    except: [...SLOW_RELAY, WITHDRAWN, ...SLOW_POOL],
  },
  { source: 'src/relay/shared', tests: ['test/relay/shared'], except: [...SLOW_RELAY, WITHDRAWN] },
  {
    source: 'src/relay',
    tests: ['test/relay'],
    except: [
      ...SLOW_RELAY,
      WITHDRAWN,
      'test/relay/shared/legacy/shared-isolation.test.ts',
      'test/relay/shared/modern/modern-isolation.test.ts',
    ],
  },
  // Its tests alone: those of the rest of src/wire take a minute of processor time, and pass through the same lines.
  { source: 'src/wire/json', tests: ['test/wire/json'], except: ['test/wire/json/check-json-limits.test.ts'] },
  { source: 'src/wire', tests: ['test/wire'] },
  { source: 'src/process', tests: ['test/process'] },
];

for (const { source } of PARTS) {
  if (!existsSync(source))
    throw new Error(`${source} is a part of the program in stryker.config.mjs, and does not exist`);
}

/** What `--mutate` names, without line numbers; undefined when everything is to be tried. */
const named = namedBy(process.argv);
/** Only the tests of the parts that are named are built and run: all others would pass through the same lines for hours. */
const testFiles = [
  ...new Set(
    PARTS.filter((part) => named === undefined || named.some((pattern) => partOf(pattern) === part)).flatMap(
      ({ tests, except = [] }) =>
        tests.flatMap((place) => testFilesIn(place).toSorted()).filter((file) => !except.includes(file)),
    ),
  ),
];

export default {
  mutate: PARTS.map(({ source }) => (source.endsWith('.ts') ? source : `${source}/**/*.ts`)),
  testRunner: 'in-process',
  plugins: ['./scripts/mutation/runner.js'],
  // The mutant that is tried is chosen while a test runs, so that one bundle of each test file serves all of them.
  buildCommand: `node scripts/mutation/build.js ${testFiles.join(' ')}`,
  inProcess: {
    testFiles: testFiles.map((file) => `build/mutation/${file.replace(/\.ts$/, '.js')}`),
  },
  coverageAnalysis: 'perTest',
  // In percent: the run fails when fewer mutants are noticed.
  thresholds: { high: 100, low: 95, break: 90 },
  concurrency: 1,
  // What TypeScript or Biome would refuse is not looked for here: only what a test can notice.
  disableTypeChecks: true,
  // Stryker would rewrite tsconfig.json with functions that TypeScript 7 does not have; esbuild needs nothing rewritten.
  tsconfigFile: 'tsconfig-is-left-alone.json',
  ignorePatterns: ['build', 'dist', 'bench', 'docs', 'coverage'],
  tempDirName: 'build/stryker',
  reporters: ['clear-text', 'progress-append-only', 'html', 'json'],
  htmlReporter: { fileName: 'build/mutation.html' },
  jsonReporter: { fileName: 'build/mutation.json' },
  clearTextReporter: { logTests: false, allowColor: false },
};

function partOf(pattern) {
  return PARTS.find(({ source }) => pattern.startsWith(source));
}

function namedBy(args) {
  const at = args.findIndex((arg) => /^(-m|--mutate)(=|$)/.test(arg));
  if (at < 0) return undefined;
  const patterns = args[at].includes('=') ? args[at].slice(args[at].indexOf('=') + 1) : (args[at + 1] ?? '');
  return patterns.split(',').map((pattern) => pattern.replace(/:[\d:-]+$/, ''));
}
