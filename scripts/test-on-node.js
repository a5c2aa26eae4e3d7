/**
 * `npm run test:node -- 24` runs with that version of Node the tests of what depends on it most: its sockets, its HTTP, its
 * processes, its V8. `npm run test:node -- 24 test/upstream` runs others.
 */
import { spawnSync } from 'node:child_process';

const SENSITIVE = [
  'test/cli/executable.test.ts',
  'test/cli/lifecycle.test.ts',
  'test/contract',
  'test/downstream',
  'test/http',
  'test/io',
  'test/process',
];

const [version = '', ...places] = process.argv.slice(2);
if (!/^\d+(\.\d+){0,2}$/.test(version)) {
  console.error('Usage: npm run test:node -- VERSION [FILE OR FOLDER…], for example: npm run test:node -- 24');
  process.exit(2);
}
const chosen = places.length > 0 ? places : SENSITIVE;
const command = ['-y', '-p', `node@${version}`, '--', 'node', 'scripts/test.js', ...chosen];
const { status, error } = spawnSync('npx', command, { stdio: 'inherit', shell: process.platform === 'win32' });
if (error !== undefined) console.error(`npx cannot be started: ${error.message}`);
process.exitCode = status ?? 1;
