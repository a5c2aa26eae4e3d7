/** Those that take longest, and mostly wait: they begin first, since the last one to end decides how long all take. */
const LONGEST = [
  'test/observe/status/page',
  'test/store/redis/topologies',
  'test/replicas/killed-replicas',
  'test/replicas/matrix-http-sse-to-streamable',
  'test/replicas/matrix-http-sse-to-others',
  'test/cli/serve-hostile-clients',
  'test/cli/serve-wrong-answers',
  'test/cli/connect-login',
  'test/cli/connect',
  'test/cli/serve-endless-calls',
  'test/contract/upstream-streamable',
  'test/contract/upstream-byte-stream',
];

/** @param {string} file a bundle in build/ */
const rank = (file) => {
  const index = LONGEST.findIndex((name) => file.replaceAll('\\', '/').endsWith(`/${name}.test.js`));
  // Next come files that share a process.
  if (index < 0) return LONGEST.length + (/together-\d+\.test\.js$/.test(file) ? 0 : 1);
  return index;
};

export default {
  files: ['build/*/test/**/*.test.js'],
  workerThreads: false,
  // With room for what is young, V8 moves less of it: a tenth of a test's time is spent there.
  nodeArguments: ['--enable-source-maps', '--max-semi-space-size=32'],
  timeout: '2m',
  concurrency: 4,
  sortTestFiles: (a, b) => rank(a) - rank(b) || a.localeCompare(b),
};
