/** Servers that do not start: each time, the log says once why. Needs a current build. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { fixture } from '../process/child-spec.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { says } from '../support/says.ts';
import { waitFor } from '../support/wait-for.ts';
import type { Era } from './fault-clients.ts';

const SILENT = ['--', process.execPath, fixture('exits-before-initialize')];

/** What the client that comes first is told, which is no answer of a server. */
async function answerTo(bridge: Bridge, client: Era): Promise<string> {
  const port = Number(bridge.url.port);
  if (client === 'modern') return (await postModern({ port }, modern(1, 'tools/list'))).text();
  return (await callHttp({ port, method: 'POST', headers: POST_HEADERS, body: JSON.stringify(initialize()) })).text();
}

/** What the links to the processes say. */
const exitsOf = ({ logs }: Bridge): readonly string[] =>
  logs.filter(({ msg }) => msg?.startsWith('Server "')).map(({ level, code }) => `${level} ${code}`);

/** What stands between the client and the process makes no line of its own. */
const WAYS = [
  { client: 'legacy', protocol: 'legacy', isolation: 'session' },
  { client: 'legacy', protocol: 'legacy', isolation: 'shared' },
  { client: 'legacy', protocol: 'modern', isolation: 'shared' },
  { client: 'modern', protocol: 'auto', isolation: 'session' },
  { client: 'modern', protocol: 'legacy', isolation: 'shared' },
  { client: 'modern', protocol: 'modern', isolation: 'session' },
] as const;

for (const { client, protocol, isolation } of WAYS) {
  const options = ['--protocol', protocol, '--isolation', isolation];
  const way = `a ${client} client, ${options.join(' ')}`;

  test.serial(
    `each process that exits before it has answered is said once, with its last words (${way})`,
    async (t) => {
      const bridge = await startBridge([...options, ...SILENT]);
      t.teardown(() => bridge.stop());
      const answer = await answerTo(bridge, client);
      t.regex(
        answer,
        /exited with code 3 .*before it answered anything\. Its last words on stderr: SOME_KEY is not set/,
      );
      await bridge.stop();
      says(t, bridge, exitsOf(bridge));
      for (const { code, msg } of bridge.logs) if (code && msg?.includes('exited')) t.regex(msg, /SOME_KEY is not set/);
    },
  );

  test.serial(`a command that is not there anymore is said once (${way})`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-start-'));
    const command = join(folder, 'server');
    writeFileSync(command, '');
    chmodSync(command, 0o755);
    const bridge = await startBridge([...options, '--', command]);
    t.teardown(() => bridge.stop());
    rmSync(folder, { recursive: true });
    t.regex(await answerTo(bridge, client), /does not exist; correct the path after --/);
    await bridge.stop();
    says(t, bridge, ['warn ERR_UPSTREAM_SPAWN']);
  });
}

for (const isolation of ['session', 'shared']) {
  for (const protocol of ['auto', 'legacy']) {
    const options = ['--prewarm', '1', '--isolation', isolation, '--protocol', protocol];
    test.serial(
      `a process that is started ahead of its clients and exits is said once (${options.join(' ')})`,
      async (t) => {
        const bridge = await startBridge([...options, ...SILENT]);
        t.teardown(() => bridge.stop());
        await waitFor(() => exitsOf(bridge).length > 1);
        await bridge.stop();
        says(t, bridge, exitsOf(bridge));
      },
    );
  }
}
