/** Processes that are started ahead of their clients, with clients of the official SDK before a real server. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { startBridge } from '../support/bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { connectStreamable, type SdkClient } from '../support/sdk-client.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';

/** A shell with `tee` records what the server is sent, and Windows has neither. */
const onUnix = process.platform === 'win32' ? test.skip : test;
const SERVER = [process.execPath, serverProgram(new URL('../fixtures/contract-server/server.js', import.meta.url))];
/** Writes all that a process of the server is sent to a file of its own. */
const RECORDED = ['sh', '-c', 'folder=$0; tee "$folder/$$" | "$@"'];

interface Recorded {
  /** Opens one more session, and makes a call. */
  open(name: string): Promise<void>;
  /** By process, the names of the clients whose handshake it was sent. */
  handshakes(): readonly string[][];
}

async function startRecorded(t: ExecutionContext, options: readonly string[]): Promise<Recorded> {
  const { path: folder } = await createConfigFolder(t);
  const bridge = await startBridge([...options, '--', ...RECORDED, folder, ...SERVER]);
  t.teardown(() => bridge.stop());
  const clients: SdkClient[] = [];
  t.teardown(() => Promise.all(clients.map((client) => client.close())));
  return {
    async open(name) {
      const client = await connectStreamable(bridge.url, { name });
      clients.push(client);
      const value = `${name} ${clients.length}`;
      const { content } = await client.client.callTool({ name: 'echo', arguments: { value } });
      t.regex(JSON.stringify(content), new RegExp(value));
      t.is(client.client.getServerVersion()?.name, clients[0]?.client.getServerVersion()?.name);
    },
    handshakes: () =>
      readdirSync(folder).map((file) => {
        const lines = readFileSync(join(folder, file), 'utf8').split('\n');
        const messages = lines.flatMap((line) => (line.includes('"initialize"') ? [JSON.parse(line)] : []));
        return messages.map(({ params }) => String(params.clientInfo.name));
      }),
  };
}

onUnix(
  'the handshake of usual clients is sent ahead, to each process once, and others get one of their own',
  async (t) => {
    const { open, handshakes } = await startRecorded(t, ['--prewarm', '3']);
    const countOf = (name: string): number => handshakes().filter((names) => names.includes(name)).length;
    await open('usual');
    await open('usual');
    await waitFor(() => countOf('usual') === 4, { message: 'two spares to get the handshake of the two clients' });
    t.is(handshakes().length, 5);
    await open('another');
    await open('usual');
    await open('usual');
    t.is(countOf('another'), 1);
    t.true(
      handshakes().every((names) => names.length <= 1),
      JSON.stringify(handshakes()),
    );
  },
);

onUnix('a process that nobody uses keeps no client out where no more may run', async (t) => {
  const limits = ['--prewarm', '2', '--max-children', '4'];
  const { open, handshakes } = await startRecorded(t, limits);
  await open('usual');
  await open('usual');
  await waitFor(() => handshakes().filter(([name]) => name === 'usual').length === 3, {
    message: 'a spare to be asked',
  });
  await waitFor(() => handshakes().length === 4, { message: 'two spares' });
  await open('another');
  await open('a third');
  t.is(handshakes().length, 5);
});
