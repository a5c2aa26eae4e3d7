/** What one bridge has recorded, replayed by another: real servers, and clients of the official SDKs of both eras. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { ClientName } from '../matrix/clients.ts';
import { startFront } from '../matrix/fronts.ts';
import type { MatrixClient } from '../matrix/matrix-client.ts';

const EVERYTHING = fileURLToPath(new URL('../fixtures/everything/server.js', import.meta.url));

const SERVERS = {
  legacy: ['--', process.execPath, EVERYTHING, '--stdio'],
  modern: ['--', process.execPath, EVERYTHING, '--modern-stdio'],
} as const;

async function use<T>(
  name: ClientName,
  target: readonly string[],
  work: (client: MatrixClient) => Promise<T>,
): Promise<T> {
  const front = await startFront(name, target);
  try {
    const client = await front.connect({ name });
    const content = { username: 'ann', email: 'ann@example.com', response: 'yes' };
    client.answer('elicitation/create', () => ({ action: 'accept', content }));
    client.answer('sampling/createMessage', () => ({
      role: 'assistant',
      model: 'fake',
      content: { type: 'text', text: 'said' },
    }));
    const done = await work(client);
    await client.close();
    return done;
  } finally {
    await front.stop();
  }
}

/** What a user might do, as far as results show it. */
async function session(client: MatrixClient): Promise<unknown> {
  const tools = await client.list('tools');
  const called = [
    await client.callTool('test_simple_text'),
    await client.callTool('test_tool_with_progress'),
    await client.callTool('test_sampling', { prompt: 'Hi' }),
    await client.callTool('test_elicitation', { message: 'Well?' }),
    await client.callTool('test_error_handling'),
  ];
  return {
    names: tools.items.map((tool) => tool.name),
    called: called.map(({ text, isError }) => ({ text, isError })),
    prompts: (await client.list('prompts')).items.map((prompt) => prompt.name),
    server: client.serverInfo().name,
  };
}

function folderOf(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-recorded-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

for (const [era, server] of Object.entries(SERVERS)) {
  for (const recorded of ['stdio', 'modernHttp'] as const) {
    test(`a ${era} server that was recorded with a client over ${recorded} is replayed to clients of both eras`, async (t) => {
      const file = join(folderOf(t), 'session.jsonl');
      const original = await use(recorded, ['--record', file, ...server], session);
      for (const replayed of ['stdio', 'streamable', 'modernStdio', 'modernHttp'] as const) {
        t.deepEqual(await use(replayed, [`replay:${file}`], session), original, replayed);
      }
    });
  }
}
