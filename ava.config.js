import { createHash } from 'node:crypto';
import { basename } from 'node:path';

/** Those that take longest, and mostly wait: the last one to end decides how long all take. */
const LONGEST = [
  'test/observe/status/page',
  'test/matrix/losing-the-server',
  'test/cli/probe-starting-bridge',
  'test/replicas/store/redis/topologies',
  'test/replicas/running/killed-replicas',
  'test/replicas/running/matrix-http-sse-to-streamable',
  'test/replicas/running/matrix-http-sse-to-others',
  'test/cli/serve-hostile-clients',
  'test/cli/serve-wrong-answers',
  'test/cli/connect-login',
  'test/cli/connect',
  'test/cli/serve-endless-calls',
  'test/contract/upstream-streamable',
  'test/contract/upstream-byte-stream',
];

/** Many of these take a minute. Some wait for replicas, some compute, and in the order of their names all of a kind would run at once. */
const TAKES_LONG = /\/test\/(?:faults|matrix|real-peers|replicas\/running)\//;

/**
 * Where a file begins. Those that share a process mostly compute, so they alternate with the ones that wait. Files that take a
 * second come last, so that no processor waits for the last one to end.
 * @param {string} file a bundle in build/
 */
function placeOf(file) {
  const path = file.replaceAll('\\', '/');
  const index = LONGEST.findIndex((name) => path.endsWith(`/${name}.test.js`));
  if (index >= 0) return 2 * index;
  const group = /together-(\d+)\.test\.js$/.exec(path)?.[1];
  if (group !== undefined) return 2 * Number(group) - 1;
  return TAKES_LONG.test(path) ? MIXED : LAST;
}

const MIXED = 1000;
const LAST = 2000;

/** Without the folder of one run: the order is the same each time. */
const digestOf = (file) => createHash('sha1').update(basename(file)).digest('hex');

function compare(a, b) {
  const place = placeOf(a);
  if (place !== placeOf(b)) return place - placeOf(b);
  return place === MIXED ? digestOf(a).localeCompare(digestOf(b)) : a.localeCompare(b);
}

export default {
  files: ['build/*/test/**/*.test.js'],
  workerThreads: false,
  // With room for what is young, V8 moves less of it: a tenth of a test's time is spent there.
  nodeArguments: ['--enable-source-maps', '--max-semi-space-size=32'],
  // A silence that ends while a test's own limit runs is not noticed anymore, so no limit of a test is longer but those of images.
  timeout: '5m',
  concurrency: 4,
  sortTestFiles: compare,
};
