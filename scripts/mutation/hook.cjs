/**
 * Loaded behind Stryker's own hook into the process in which AVA runs a test file. Stryker's hook writes what the mutants
 * did into a file named for the process that it is in; Stryker looks for one named for the process that it started, which
 * is AVA's command line, the parent of this one.
 */
const { existsSync, renameSync } = require('node:fs');
const { resolve } = require('node:path');

const written = resolve(`stryker-output-${process.pid}.json`);
const expected = resolve(`stryker-output-${process.ppid}.json`);

process.on('exit', () => {
  if (existsSync(written)) renameSync(written, expected);
});
