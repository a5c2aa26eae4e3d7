/** docs/guide/scaling.md, command by command, in a shell, as they stand there but for the ports. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { blocksOf, commandsOf, documentAt } from '../../docs/documents.ts';
import { REPOSITORY } from '../../support/bridge.ts';
import { callHttp } from '../../support/http-call.ts';
import { installedPrograms } from '../../support/installed-programs.ts';
import { ownPort } from '../../support/own-port.ts';
import { connectStreamable } from '../../support/sdk-client.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';

const path = 'docs/guide/scaling.md';
const [
  oneBridge = '',
  redis = '',
  key = '',
  first = '',
  second = '',
  third = '',
  sed = '',
  haproxy = '',
  probe = '',
  top = '',
] = blocksOf({ path, text: documentAt(path) })
  .filter(({ language }) => language === 'sh')
  .flatMap(commandsOf);

const testWithCluster = WHY_NO_CLUSTER === undefined && process.platform !== 'win32' ? test : test.skip;
const [STORE, BALANCER, ...REPLICAS] = ['6379', '8000', '8001', '8002', '8003'];

/** A user with a terminal for each program that does not end by itself, all of them in one folder. */
async function sitDown(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'portage-replicas-'));
  await symlink(join(REPOSITORY, 'examples'), join(folder, 'examples'));
  const { PATH = process.env.PATH } = await installedPrograms(t);
  const env = { ...process.env, PATH: [PATH, '/usr/sbin', '/usr/local/sbin'].join(delimiter) };
  const ports = new Map<string, number>();
  for (const port of [STORE, BALANCER, ...REPLICAS]) ports.set(port ?? '', await ownPort());
  const portOf = (written: string | undefined): number => ports.get(written ?? '') ?? t.fail(written);
  const here = (command: string): string =>
    [...ports]
      .reduce(
        (so, [written, port]) =>
          so.replaceAll(new RegExp(`(?<=127\\.0\\.0\\.1:|--port )${written}\\b`, 'g'), `${port}`),
        command,
      )
      // Its own default is not in its command.
      .replace(/^redis-server /, `redis-server --port ${portOf(STORE)} --dir ${folder} `);

  const children: ChildProcess[] = [];
  const endAll = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  process.once('exit', endAll);
  t.teardown(async () => {
    await Promise.all(children.map((child) => end(child)));
    process.off('exit', endAll);
    await rm(folder, { recursive: true, force: true });
  });
  return {
    portOf,
    /** Runs a command that ends by itself. */
    run: (command: string): Promise<string> =>
      new Promise((resolve, reject) => {
        execFile('sh', ['-c', here(command)], { cwd: folder, env }, (error, stdout, stderr) =>
          error === null ? resolve(stdout) : reject(new Error(`${command}: ${stderr}`)),
        );
      }),
    /** Starts one that runs until it is stopped, and waits until it says that it is ready. */
    async start(command: string, port: number): Promise<ChildProcess> {
      const child = spawn('sh', ['-c', `exec ${here(command)}`], { cwd: folder, env, stdio: 'ignore' });
      children.push(child);
      await waitFor(() => isReady(command, port), { message: command });
      return child;
    },
  };
}

/** Redis speaks no HTTP, and a program that waits for it says so itself. */
async function isReady(command: string, port: number): Promise<boolean> {
  if (command.startsWith('redis-server')) return true;
  return callHttp({ port, path: '/readyz' }).then(
    ({ status }) => status === 200,
    () => false,
  );
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

testWithCluster('the guide goes from one bridge to three replicas that are used as one', async (t) => {
  const { portOf, run, start } = await sitDown(t);
  const origin = `http://127.0.0.1:${portOf(BALANCER)}`;
  const callTool = async (port: number): Promise<string> => {
    const { client, close } = await connectStreamable(new URL(`http://127.0.0.1:${port}/mcp`));
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
    await close();
    return JSON.stringify(content);
  };

  const bridge = await start(oneBridge, portOf('8001'));
  t.regex(await callTool(portOf('8001')), /hello/);
  await end(bridge);

  await start(redis, portOf(STORE));
  await run(key);
  const replicas = [first, second, third].map((command, index) => ({ command, port: portOf(REPLICAS[index]) }));
  const running = await Promise.all(replicas.map(({ command, port }) => start(command, port)));
  await run(sed);
  await start(haproxy, portOf(BALANCER));

  t.regex(await run(probe), /Streamable HTTP, modern +yes/);
  t.regex(await run(top), /^3 replicas$/m);
  const page = await callHttp({ port: portOf(BALANCER), path: '/status?replicas=all' });
  t.is(page.status, 200);

  // A client whose session is at the replica that ends: it gets 404, and opens a new one.
  const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const post = async (session: string | undefined, body: object): Promise<Response> =>
    fetch(`${origin}/mcp`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...(session !== undefined && { 'Mcp-Session-Id': session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    });
  const sessions = await Promise.all(
    replicas.map(async (_, id) => {
      const response = await post(undefined, { id, method: 'initialize', params: initialize });
      await response.text();
      return response.headers.get('Mcp-Session-Id') ?? t.fail();
    }),
  );
  const statusesOf = () =>
    Promise.all(
      sessions.map(async (session) => {
        const response = await post(session, { id: 1, method: 'ping' });
        await response.text();
        return response.status;
      }),
    );
  t.deepEqual(await statusesOf(), [200, 200, 200]);
  await end(running[0] ?? t.fail());
  t.deepEqual((await statusesOf()).sort(), [200, 200, 404]);
  t.regex(await callTool(portOf(BALANCER)), /hello/);

  await start(first, portOf('8001'));
  await waitFor(async () => /^3 replicas$/m.test(await run(top)), { message: 'the replica to take part again' });
});
