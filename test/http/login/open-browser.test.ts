import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { openBrowser } from '../../../src/http/login/create-login.ts';
import { collectLog } from '../../process/collected-log.ts';
import { waitFor } from '../../support/wait-for.ts';
import { temporaryFolder } from './logged-in.ts';

const PAGE = new URL('https://auth.example/authorize?a=1&b=$(touch%20x);c=%22');

test('hands the address to a program as one word, past every shell', async (t) => {
  const file = join(temporaryFolder(t), 'address');
  const script = "require('node:fs').writeFileSync(process.argv[1], process.argv.slice(2).join('\\n'))";
  const { log } = collectLog();
  openBrowser([process.execPath, '-e', script, file, '--at=%s', '%s'], PAGE, log);
  const read = () => {
    try {
      return readFileSync(file, 'utf8') || undefined;
    } catch {
      return undefined;
    }
  };
  t.is(await waitFor(read), `--at=${PAGE.href}\n${PAGE.href}`);
});

test('a program that is not there costs a line of the log', async (t) => {
  const { log, entries } = collectLog();
  // A bare name would be looked for in PATH, where a folder that is closed to this user is another error.
  openBrowser([join(temporaryFolder(t), 'no-such-browser'), '%s'], PAGE, log);
  await waitFor(() => JSON.stringify(entries).includes('ENOENT'));
  t.pass();
});

test('so does an address that is too long for the system to start a program with', (t) => {
  const { log, entries } = collectLog();
  const page = new URL(`https://auth.example/authorize?x=${'y'.repeat(8 * 1024 * 1024)}`);
  t.notThrows(() => openBrowser([process.execPath, '--version', '%s'], page, log));
  t.regex(JSON.stringify(entries), /cannot open a browser/);
});
