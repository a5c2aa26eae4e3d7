import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../src/cli/system-deps.ts';
import type { ToolDigests } from '../../src/mcp/classify/tool-definition.ts';
import { acceptPins, waitingIn } from '../../src/pins/accept.ts';
import { PinFile, readPins } from '../../src/pins/pin-file.ts';
import { formatPins, type Pins, pinFirst } from '../../src/pins/pins.ts';
import { collectLog } from '../process/collected-log.ts';
import { waitFor } from '../support/wait-for.ts';

const digest = (letter: string) => letter.repeat(43);
const A: ToolDigests = { description: digest('a') };
const B: ToolDigests = { description: digest('b'), title: digest('c') };
const pin =
  (server: string, tool: string, digests = A) =>
  (pins: Pins) =>
    pinFirst(pins, server, new Map([[tool, { legacy: digests }]]));
const sighting = (tool: string, digests: ToolDigests | undefined, server = 'one') =>
  ({ server, tool, era: 'legacy', digests }) as const;

function placeOf(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'portage-pins-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'pins.json');
}

function open(path: string) {
  const { log, entries } = collectLog();
  let ids = 0;
  const file = new PinFile(path, { clock: systemClock, log, randomId: () => `${Math.random()}-${ids++}` });
  return { file, entries };
}

test('a file is made with the first pins, only for its user, and nothing stays beside it', async (t) => {
  const path = placeOf(t);
  const { file } = open(path);
  t.is(file.pins.size, 0);
  await file.change(pin('one', 'echo'));
  t.is(statSync(path).mode & 0o777, 0o600);
  t.deepEqual(readdirSync(join(path, '..')), ['pins.json']);
  t.deepEqual(readPins(path), file.pins);
  t.is(readFileSync(path, 'utf8'), formatPins(file.pins));
});

test('many that pin at a time lose nothing of each other, and the first sight of a server counts', async (t) => {
  const path = placeOf(t);
  const files = Array.from({ length: 8 }, () => open(path).file);
  // The timers of those that wait do not keep the process alive.
  const held = setInterval(() => {}, 1000);
  t.teardown(() => clearInterval(held));
  await Promise.all(files.map((file, index) => file.change(pin(`server-${index}`, 'echo'))));
  await Promise.all(files.map((file, index) => file.change(pin('common', `tool-${index}`))));
  const pins = readPins(path);
  t.is(pins.size, files.length + 1);
  t.is(pins.get('common')?.pinned.size, 1);
});

test('what another process has changed is seen at the next look', async (t) => {
  const path = placeOf(t);
  const [mine, theirs] = [open(path).file, open(path).file];
  await theirs.change(pin('one', 'echo'));
  t.is(mine.pins.size, 0);
  const before = mine.version;
  mine.look();
  t.is(mine.pins.size, 1);
  t.true(mine.version > before);
  const after = mine.version;
  mine.look();
  t.is(mine.version, after);
});

test('what waits is no change of what is pinned', async (t) => {
  const path = placeOf(t);
  const [mine, theirs] = [open(path).file, open(path).file];
  await mine.change(pin('one', 'echo'));
  theirs.look();
  const versions = [mine.version, theirs.version];
  mine.note(sighting('echo', B));
  await mine.close();
  theirs.look();
  t.deepEqual(waitingIn(theirs.pins), [{ server: 'one', tool: 'echo', parts: ['title', 'description'] }]);
  t.deepEqual([mine.version, theirs.version], versions);
});

test('sightings are written soon, together, and at most once a second', async (t) => {
  const path = placeOf(t);
  const { file } = open(path);
  await file.change(pin('one', 'echo'));
  file.note(sighting('echo', B));
  file.note(sighting('new', A));
  file.note(sighting('new', B));
  await waitFor(() => waitingIn(readPins(path)).length === 2);
  t.deepEqual(readPins(path).get('one')?.waiting.get('new'), { legacy: B });
  file.note(sighting('another', A));
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.is(waitingIn(readPins(path)).length, 2);
  await waitFor(() => waitingIn(readPins(path)).length === 3);
});

test('accepting is seen by a process that runs', async (t) => {
  const path = placeOf(t);
  const { file } = open(path);
  await file.change(pin('one', 'echo'));
  file.note(sighting('echo', B));
  await file.close();
  const version = file.version;
  t.deepEqual(await acceptPins(open(path).file, ['echo']), [
    { server: 'one', tool: 'echo', parts: ['title', 'description'] },
  ]);
  file.look();
  t.true(file.version > version);
  t.deepEqual(file.pins.get('one'), { pinned: new Map([['echo', { legacy: B }]]), waiting: new Map() });
});

test('only what is named is accepted, and a name that is no such tool accepts nothing', async (t) => {
  const path = placeOf(t);
  const { file } = open(path);
  await file.change(pin('one', 'echo'));
  await file.change(pin('two', 'echo'));
  for (const server of ['one', 'two']) file.note(sighting('echo', B, server));
  file.note(sighting('new', A));
  await file.close();
  const text = readFileSync(path, 'utf8');
  await t.throwsAsync(acceptPins(file, ['new', 'nope']), {
    code: 'ERR_CONFIG_OPTION',
    message: /^No tool "nope" waits .* There wait "echo", "new", "echo"\.$/,
  });
  await t.throwsAsync(acceptPins(file, ['echo']), { message: /several servers .* accept "one\/echo" or "two\/echo"/ });
  t.is(readFileSync(path, 'utf8'), text);
  t.like(await acceptPins(file, ['two/echo', 'new']), [{ server: 'two' }, { server: 'one', parts: undefined }]);
  t.like(await acceptPins(file, []), [{ server: 'one', tool: 'echo' }]);
  t.deepEqual(await acceptPins(file, []), []);
});

test('a damaged file is refused, and stays as it is', (t) => {
  const path = placeOf(t);
  for (const [text, reason] of [
    ['', 'it is empty'],
    ['{"version":1,"serv', 'it is not JSON, or not all of it is there'],
  ] as const) {
    writeFileSync(path, text, { mode: 0o600 });
    t.throws(() => open(path), {
      code: 'ERR_CONFIG_PINS',
      message: new RegExp(`pins.json cannot be used: ${reason}\\.`),
    });
    t.is(readFileSync(path, 'utf8'), text);
  }
});

test('a file that others can write to is refused', async (t) => {
  const path = placeOf(t);
  await open(path).file.change(pin('one', 'echo'));
  chmodSync(path, 0o622);
  t.throws(() => open(path), { code: 'ERR_CONFIG_PINS', message: /other users can write to it/ });
});

test('a file that is damaged while it is used changes nothing, and is not written', async (t) => {
  const path = placeOf(t);
  const { file, entries } = open(path);
  await file.change(pin('one', 'echo'));
  const { pins, version } = file;
  writeFileSync(path, '{');
  file.look();
  file.look();
  t.is(file.pins, pins);
  t.is(file.version, version);
  t.deepEqual(
    entries.map(({ code }) => code),
    ['ERR_CONFIG_PINS'],
  );
  await t.throwsAsync(file.change(pin('two', 'echo')), { code: 'ERR_CONFIG_PINS' });
  t.is(readFileSync(path, 'utf8'), '{');
});

test('a file that is deleted while it is used is written again with all that was in it', async (t) => {
  const path = placeOf(t);
  const { file } = open(path);
  await file.change(pin('one', 'echo'));
  unlinkSync(path);
  file.look();
  t.is(file.pins.size, 1);
  await file.change(pin('two', 'echo'));
  t.deepEqual([...readPins(path).keys()], ['one', 'two']);
});

test('a link to a file stays a link', async (t) => {
  const path = placeOf(t);
  await open(path).file.change(pin('one', 'echo'));
  const link = `${path}.link`;
  symlinkSync(path, link);
  await open(link).file.change(pin('two', 'echo'));
  t.true(lstatSync(link).isSymbolicLink());
  t.deepEqual([...readPins(path).keys()], ['one', 'two']);
});

test('a folder that cannot be written to is an error with the place', async (t) => {
  const path = join(placeOf(t), 'no', 'pins.json');
  await t.throwsAsync(open(path).file.change(pin('one', 'echo')), {
    code: 'ERR_CONFIG_PINS',
    message: /ENOENT|ENOTDIR/,
  });
});
