import { rm, stat } from 'node:fs/promises';
import test, { type ExecutionContext } from 'ava';
import { type BridgeCommand, parseCommandLine } from '../../src/cli/command-line.ts';
import { loadConfig } from '../../src/cli/load-config.ts';
import { Reload } from '../../src/cli/reload.ts';
import type { Config } from '../../src/config.ts';
import { collectLog } from '../process/collected-log.ts';
import { type ConfigFolder, createConfigFolder } from '../support/config-folder.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { waitFor } from '../support/wait-for.ts';

interface World {
  readonly folder: ConfigFolder;
  readonly file: string;
  readonly clock: FakeClock;
  readonly reload: Reload;
  /** The names of the servers that the bridge was given, each time. */
  readonly updates: (readonly string[])[];
  /** The servers that the bridge was given last. */
  readonly given: () => Config['servers'] | undefined;
  readonly lines: () => readonly string[];
  /** How often the file was read. */
  readonly reads: () => number;
}

const FIRST = { mcpServers: { one: { command: 'a' }, two: { command: 'b' } } };

/** Time goes on until this is so. */
async function until({ clock }: Pick<World, 'clock'>, condition: () => boolean, message: string): Promise<void> {
  const check = (): boolean => {
    clock.advance(1000);
    return condition();
  };
  await waitFor(check, { message });
}

/** So much time goes on that a change would have been seen: the disk is asked at least as often here. */
async function quietly({ clock, file }: World): Promise<void> {
  for (let count = 0; count < 20; count += 1) {
    clock.advance(1000);
    await stat(file).catch(() => undefined);
  }
}

async function start(t: ExecutionContext, content: object = FIRST): Promise<World> {
  const folder = await createConfigFolder(t);
  const file = await folder.write('mcp.json', content);
  const parsed = parseCommandLine(['serve', '--config', file]);
  if (parsed.kind !== 'bridge') throw new Error(`got ${parsed.kind}`);
  const command: BridgeCommand = parsed;
  const around = { env: {}, cwd: folder.path, platform: process.platform, stderrIsTerminal: false };
  let reads = 0;
  const load = () => {
    reads += 1;
    return loadConfig(command, around);
  };
  const loaded = await load();
  const updates: (readonly string[])[] = [];
  const { log, entries } = collectLog();
  const clock = new FakeClock();
  let given: Config['servers'] | undefined;
  const bridge = {
    urls: [],
    update(servers: Config['servers']) {
      given = servers;
      const names = servers.map(({ listing }) => listing?.name ?? '');
      updates.push(names);
      return { added: [], changed: [], removed: [], unchanged: names.length };
    },
  };
  const reload = new Reload({ bridge, loaded, load, clock, log });
  t.teardown(reload.start());
  return {
    folder,
    file,
    clock,
    reload,
    updates,
    given: () => given,
    lines: () => entries.map(({ msg }) => msg),
    reads: () => reads - 1,
  };
}

test('a file that stays as it is is not read again', async (t) => {
  const world = await start(t);
  await quietly(world);
  t.is(world.reads(), 0);
});

test('a file that has changed is read once, and the bridge is given what it says', async (t) => {
  const world = await start(t);
  await world.folder.write('mcp.json', { mcpServers: { one: { command: 'a' }, three: { command: 'c' } } });
  await until(world, () => world.updates.length > 0, 'the new list');
  await quietly(world);
  t.deepEqual(world.updates, [['one', 'three']]);
  t.true(world.lines().some((line) => /mcp\.json was reloaded: 2 unchanged$/.test(line)));
});

test('a file with variables counts as the file that names it', async (t) => {
  const world = await start(t, { mcpServers: { one: { command: 'a', envFile: 'one.env' } } }).catch(() => undefined);
  t.is(world, undefined, 'a file that is not there is a mistake at the start');
  const folder = await createConfigFolder(t);
  await folder.write('one.env', 'A=1\n');
  const ready = await start(t, { mcpServers: { one: { command: 'a', envFile: `${folder.path}/one.env` } } });
  await folder.write('one.env', 'A=2\n');
  await until(ready, () => ready.updates.length === 1, 'the new variable');
  t.is(ready.reads(), 1);
});

test('a file that became wrong changes nothing and says where, and counts again when it is mended', async (t) => {
  const world = await start(t);
  await world.folder.write('mcp.json', { mcpServers: { one: { command: 7, env: { KEY: 'hunter2' } } } });
  await until(world, () => world.lines().length > 0, 'the mistake');
  t.deepEqual(world.updates, []);
  const [line = ''] = world.lines();
  t.regex(line, /so the previous configuration stays in use: .*mcpServers\.one\.command: expected a string/);
  t.false(line.includes('hunter2'));
  await rm(world.file);
  await until(world, () => world.lines().length === 2, 'that it is gone');
  t.deepEqual(world.updates, []);
  await world.folder.write('mcp.json', { mcpServers: { one: { command: 'a' } } });
  await until(world, () => world.updates.length > 0, 'the new list');
  t.deepEqual(world.updates, [['one']]);
});

test('an entry that became wrong changes nothing for its server, and the others are read', async (t) => {
  const world = await start(t);
  await world.folder.write('mcp.json', {
    mcpServers: { one: { command: 7 }, two: { command: 'b' }, three: { command: 'c' } },
  });
  await until(world, () => world.updates.length > 0, 'the new list');
  t.deepEqual(world.updates, [['two', 'three', 'one']]);
  t.true(world.lines().some((line) => /^The server "one" is left out.*mcpServers\.one\.command/.test(line)));
  await world.folder.write('mcp.json', { mcpServers: { two: { command: 'b' }, one: { command: 8 } } });
  await until(world, () => world.updates.length > 1, 'the next list');
  t.deepEqual(world.updates[1], ['two', 'one']);
  await world.folder.write('mcp.json', { mcpServers: { two: { command: 'b' } } });
  await until(world, () => world.updates.length > 2, 'the last list');
  t.deepEqual(world.updates[2], ['two']);
});

test('the aggregate goes on to take the headers of a server whose entry became wrong', async (t) => {
  const portage = { forwardHeader: 'X-User' };
  const one = { url: 'https://one.example/mcp', portage };
  const all = { aggregate: true };
  const world = await start(t, { mcpServers: { one, two: { command: 'b' } }, portage: all });
  await world.folder.write('mcp.json', {
    mcpServers: { one: { url: 7, portage }, two: { command: 'c' } },
    portage: all,
  });
  await until(world, () => world.updates.length > 0, 'the new list');
  t.deepEqual(world.updates, [['', 'two', 'one']]);
  t.deepEqual(
    world.given()?.[0].remote.forwardHeaders.map(({ name }) => name),
    ['x-user'],
  );
});

test('what it says of the listener is for the next start, and the log says so', async (t) => {
  const world = await start(t);
  await world.folder.write('mcp.json', { ...FIRST, portage: { port: 9 } });
  await until(world, () => world.updates.length > 0, 'the new list');
  t.true(world.lines().some((line) => /take effect at the next start/.test(line)));
});

test('told to read it, it does so at once, and however often it is told meanwhile, once more', async (t) => {
  const world = await start(t);
  const asked = Array.from({ length: 100 }, () => world.reload.reload());
  await Promise.all(asked);
  await waitFor(() => world.updates.length === 2, { message: 'two readings' });
  t.is(world.reads(), 2);
});
