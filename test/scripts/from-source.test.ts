import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import test from 'ava';
import { VERSION } from '../../src/version.ts';
import { REPOSITORY } from '../support/bridge.ts';
import { EVERYTHING } from '../support/config-bridge.ts';

const { scripts } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'));

/** The script as npm starts it, but for the name of Node. */
const run = (...args: string[]) =>
  promisify(execFile)(process.execPath, [...scripts.start.split(' ').slice(1), ...args], { cwd: REPOSITORY });

test('npm start runs the program from its source', async (t) => {
  t.is((await run('--version')).stdout, `${VERSION}\n`);
  const { stdout } = await run('probe', '--', process.execPath, EVERYTHING);
  t.regex(stdout, /stdio, legacy +yes/);
});

test('npm run debug is npm start with a debugger', (t) => {
  t.is(scripts.debug.replace('--inspect-brk ', ''), scripts.start);
});
