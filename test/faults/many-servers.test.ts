// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of files.
/** Several servers behind one port: what happens to one, and a file that is read again, disturb no other. */
import test from 'ava';
import type { Bridge } from '../support/bridge.ts';
import {
  ask,
  baseOf,
  ENVIRONMENT,
  fixture,
  type HostClient,
  KIND_NAMES,
  KINDS,
  NODE,
  openClient,
  serveFile,
} from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';

// ---- one bad server harms no other

const BAD: Readonly<Record<string, readonly string[]>> = {
  'is no program': ['no-such-program-anywhere'],
  'ends at once': [NODE, fixture('exits-before-initialize')],
  'never answers': [NODE, fixture('never-answers')],
  'floods its log': [NODE, fixture('floods-stderr')],
  'prints garbage': [NODE, fixture('prints-garbage')],
  'writes without end': [NODE, fixture('writes-huge-line')],
  'never ends': [NODE, fixture('ignores-sigterm')],
};

test.serial('servers that fail in every way change nothing for one that does not', async (t) => {
  const folder = await createConfigFolder(t);
  const bad = Object.entries(BAD).map(([how, [command, ...args]]) => [how, { command, args }]);
  const file = await folder.write('claude.json', {
    mcpServers: {
      ...Object.fromEntries(bad),
      good: { command: NODE, args: [ENVIRONMENT], portage: { required: true } },
      rich: { command: NODE, args: [ENVIRONMENT], portage: { maxSessions: 3, maxChildren: 3, poolSize: 1 } },
    },
  });
  const bridge = await serveFile(t, file, [
    '--request-timeout',
    '5s',
    '--shutdown-grace',
    '500ms',
    '--max-children',
    '40',
  ]);
  const good = await openClient(t, baseOf(bridge, 'good'));
  const pid = await ask(good, 'pid');
  const tries = Object.keys(BAD).flatMap((how) => {
    const base = baseOf(bridge, how.replaceAll(' ', '-'));
    return KIND_NAMES.map(async (kind) => {
      const [client, transport] = KINDS[kind]?.(base) ?? t.fail(kind);
      try {
        await client.connect(transport);
        await client.callTool({ name: 'echo', arguments: {} });
      } finally {
        await client.close();
      }
    });
  });
  const outcomes = Promise.allSettled(tries);
  let isOver = false;
  void outcomes.then(() => {
    isOver = true;
  });
  let calls = 0;
  while (!isOver) {
    t.is(await ask(good, 'pid'), pid);
    calls += 1;
  }
  t.true(calls > 0);
  t.true((await outcomes).filter(({ status }) => status === 'rejected').length >= Object.keys(BAD).length);
  const status = async (path: string) => (await fetch(new URL(path, bridge.url))).status;
  t.is(await status('/readyz'), 200);
  t.is(await status('/good/readyz'), 200);
  t.is(await status('/is-no-program/readyz'), 503);
  for (let count = 0; count < 3; count += 1) await openClient(t, baseOf(bridge, 'rich'));
  await t.throwsAsync(openClient(t, baseOf(bridge, 'rich')), { message: /server processes run|sessions are taken/ });
  t.is(await ask(await openClient(t, baseOf(bridge, 'good')), 'PORTAGE_NOTHING'), '(none)');
});

// ---- reading it again

const server = (env: Readonly<Record<string, string>>) => ({ command: NODE, args: [ENVIRONMENT], env });

/** Calls one server for as long as it is not stopped, and no call fails: a client that is closed fails all further ones at once. */
function callWithoutEnd(client: HostClient) {
  const failures: unknown[] = [];
  const answers = new Set<string>();
  let calls = 0;
  let isStopped = false;
  const run = async (): Promise<void> => {
    while (!isStopped) {
      await ask(client, 'pid').then(
        (pid) => answers.add(pid),
        (error: unknown) => {
          failures.push(error);
          isStopped = true;
        },
      );
      calls += 1;
    }
  };
  const lanes = Promise.all([run(), run(), run(), run()]);
  return {
    failures,
    answers,
    get calls() {
      return calls;
    },
    async stop() {
      isStopped = true;
      await lanes;
    },
  };
}

const said = (bridge: Bridge, pattern: RegExp) => bridge.logs.filter(({ msg = '' }) => pattern.test(msg)).length;
const readAgain = (bridge: Bridge, times: number) =>
  waitFor(() => said(bridge, /was reloaded/) >= times, {
    message: () => `the file to be read ${times} times:\n${bridge.logs.map((line) => JSON.stringify(line)).join('\n')}`,
  });

async function statusOf(bridge: Bridge, name: string): Promise<number> {
  const request = { method: 'POST', headers: POST_HEADERS, body: JSON.stringify(initialize()) };
  const answer = await fetch(new URL('mcp', baseOf(bridge, name)), request);
  await answer.text();
  return answer.status;
}

test.serial(
  'the file is read again under load: no call is lost, and what has not changed keeps its processes',
  async (t) => {
    const folder = await createConfigFolder(t);
    const write = (more: object) => folder.write('claude.json', { mcpServers: { kept: server({ A: '1' }), ...more } });
    const file = await write({ changed: server({ A: 'old' }), gone: server({}) });
    const bridge = await serveFile(t, file);
    const loads = await Promise.all(
      KIND_NAMES.map(async (kind) => callWithoutEnd(await openClient(t, baseOf(bridge, 'kept'), kind))),
    );
    const before = await openClient(t, baseOf(bridge, 'changed'));
    t.is(await ask(before, 'A'), 'old');
    t.is(await statusOf(bridge, 'gone'), 200);

    await write({ changed: server({ A: 'new' }), fresh: server({ A: 'fresh' }) });
    await readAgain(bridge, 1);
    t.is(said(bridge, /1 added|added fresh, changed changed, removed gone, 1 unchanged/), 1);
    t.is(await ask(await openClient(t, baseOf(bridge, 'changed')), 'A'), 'new');
    t.is(await ask(await openClient(t, baseOf(bridge, 'fresh')), 'A'), 'fresh');
    t.is(await statusOf(bridge, 'gone'), 404);

    await folder.write('claude.json', '{ "mcpServers": { "kept": ');
    await waitFor(() => said(bridge, /has mistakes, so the previous configuration stays in use: claude\.json:1:/) > 0);
    t.is(await ask(await openClient(t, baseOf(bridge, 'fresh')), 'A'), 'fresh');

    for (let round = 0; round < 3; round += 1) {
      const changes = said(bridge, /changed changed/);
      await write({ changed: server({ A: `${round}` }) });
      bridge.kill('SIGHUP');
      await waitFor(() => said(bridge, /changed changed/) > changes, {
        message: () => `the change ${round} to be read`,
      });
      t.is(await ask(await openClient(t, baseOf(bridge, 'changed')), 'A'), `${round}`);
    }
    for (const load of loads) {
      await load.stop();
      t.deepEqual(load.failures, []);
      t.is(load.answers.size, 1, 'one process, from first to last');
      t.true(load.calls > 100, `${load.calls}`);
    }
  },
);

test.serial('a variable in a file beside is as good as one in the file, and changing it is a change', async (t) => {
  const folder = await createConfigFolder(t);
  await folder.write('secrets.env', 'A=from-beside\n');
  const file = await folder.write('mcp.json', {
    servers: { one: { command: NODE, args: [ENVIRONMENT], envFile: '${workspaceFolder}/secrets.env' } },
  });
  const bridge = await serveFile(t, file);
  t.is(await ask(await openClient(t, baseOf(bridge, 'one')), 'A'), 'from-beside');
  await folder.write('secrets.env', 'A=renewed\n');
  await readAgain(bridge, 1);
  t.is(await ask(await openClient(t, baseOf(bridge, 'one')), 'A'), 'renewed');
  t.false(/from-beside|renewed/.test(JSON.stringify(bridge.logs)));
});
