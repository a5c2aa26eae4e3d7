/** The official SDK v2 before published servers, which are of the legacy era. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { CLIENTS } from '../matrix/clients.ts';
import { startFront } from '../matrix/fronts.ts';
import { fromServer, type MatrixClient } from '../matrix/matrix-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { EVERYTHING, filesystem } from './servers/commands.ts';

const CLIENT_NAMES = ['modernHttp', 'modernStdio'] as const;

/** Everything is gone when the test ends. */
async function connect(
  t: ExecutionContext,
  client: (typeof CLIENT_NAMES)[number],
  server: readonly string[],
): Promise<MatrixClient> {
  const front = await startFront(client, ['--', ...server]);
  t.teardown(() => front.stop());
  const connected = await front.connect({ name: client });
  t.teardown(() => connected.close());
  // Asked for as soon as there is a session, which a modern client hears of with its first call.
  connected.answer('roots/list', () => ({ roots: [{ uri: 'file:///nowhere', name: 'nowhere' }] }));
  return connected;
}

for (const name of CLIENT_NAMES) {
  const { title } = CLIENTS[name];

  test.serial(`${title}: server-everything shows itself, its lists and what its tools say`, async (t) => {
    const client = await connect(t, name, EVERYTHING);
    t.is(client.era, 'modern');
    t.is(client.serverInfo().name, 'mcp-servers/everything');
    for (const list of ['tools', 'resources', 'prompts'] as const) t.true((await client.list(list)).items.length > 0);
    const message = 'naïve 日本語 🦊 \u2028 "\\"';
    t.is((await client.callTool('echo', { message })).text, `Echo: ${message}`);
    const { structured } = await client.callTool('get-structured-content', { location: 'New York' });
    t.deepEqual(Object.keys(structured ?? {}).sort(), ['conditions', 'humidity', 'temperature']);
    t.deepEqual(client.faults, []);
  });

  test.serial(`${title}: server-everything asks the model and the user during a call`, async (t) => {
    const client = await connect(t, name, EVERYTHING);
    client.answer('sampling/createMessage', () => ({
      role: 'assistant',
      model: 'fake',
      content: { type: 'text', text: 'the model speaks' },
    }));
    client.answer('elicitation/create', () => ({
      action: 'accept',
      content: { name: 'Ada', check: true, integer: 7 },
    }));
    t.regex((await client.callTool('trigger-sampling-request', { prompt: 'be brief' })).text, /the model speaks/);
    const { text } = await client.callTool('trigger-elicitation-request');
    t.regex(text, /Name: Ada/);
    t.regex(text, /Favorite Integer: 7/);
  });

  test.serial(`${title}: server-everything reports progress, and updates of what is listened to`, async (t) => {
    const client = await connect(t, name, EVERYTHING);
    const args = { duration: 0.4, steps: 4 };
    await client.callTool('trigger-long-running-operation', args, { onProgress: () => {} });
    const progress = fromServer(client, 'notifications/progress').map(({ params }) => params?.progress);
    t.deepEqual(progress, [1, 2, 3, 4]);

    const uri = 'demo://resource/dynamic/text/1';
    await client.subscribe(uri);
    await client.callTool('toggle-subscriber-updates');
    const isUpdated = () =>
      fromServer(client, 'notifications/resources/updated').some((told) => told.params?.uri === uri);
    await waitFor(isUpdated, { message: 'the update' });
  });

  test.serial(`${title}: server-filesystem is told the roots and reads a file below them`, async (t) => {
    // The server compares real paths; the temporary folder may be a link.
    const root = await realpath(await mkdtemp(join(tmpdir(), 'mcp-portage-files-')));
    t.teardown(() => rm(root, { recursive: true }));
    await writeFile(join(root, 'note.txt'), 'read through the bridge\n');
    const front = await startFront(name, ['--', ...filesystem(root)]);
    t.teardown(() => front.stop());
    const client = await front.connect({ name });
    t.teardown(() => client.close());
    client.answer('roots/list', () => ({ roots: [{ uri: pathToFileURL(root).href, name: 'files' }] }));
    const { text } = await client.callTool('read_text_file', { path: join(root, 'note.txt') });
    t.is(text, 'read through the bridge\n');
  });
}
