import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import test, { type ExecutionContext } from 'ava';
import { WebSocket } from 'ws';
import { startBridge } from '../support/bridge.ts';
import { EVERYTHING, NODE } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { ownPort } from '../support/own-port.ts';
import { connectSse, connectStreamable, type SdkClient } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { ROOT } from './documents.ts';

/** The examples for reverse proxies, run by the proxies themselves where they are installed. */
const PROXIES = {
  nginx: {
    path: 'examples/proxies/nginx.conf',
    prefix: '/tools',
    /** In a folder of its own, and without TLS, which is not what the test is about. */
    adapt: (text: string, { port, folder, bridge }: Place) =>
      `pid ${folder}/nginx.pid; error_log stderr; daemon off; events {} http { access_log off;
       client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
       uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
       ${text
         .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
         .replaceAll(/^ *ssl_certificate.*$/gm, '')
         .replace('127.0.0.1:8000', bridge)} }`,
    args: (file: string) => ['-e', 'stderr', '-c', file],
  },
  caddy: {
    path: 'examples/proxies/Caddyfile',
    prefix: '',
    adapt: (text: string, { port, bridge }: Place) =>
      // Without a limit it would wait for streams when it ends.
      `{\n\tadmin off\n\tauto_https off\n\tgrace_period 10ms\n}\n${text
        .replace(/^tools\.example\.com \{/m, `http://127.0.0.1:${port} {`)
        .replace('127.0.0.1:8000', bridge)}`,
    args: (file: string) => ['run', '--adapter', 'caddyfile', '--config', file],
  },
  haproxy: {
    path: 'examples/proxies/haproxy.cfg',
    prefix: '/tools',
    adapt: (text: string, { port, bridge }: Place) =>
      text
        .replace('bind :443 ssl crt /etc/haproxy/tools.pem', `bind 127.0.0.1:${port}`)
        .replace('127.0.0.1:8000', bridge),
    args: (file: string) => ['-f', file],
  },
} as const;

interface Place {
  readonly port: number;
  readonly folder: string;
  /** Host and port of the bridge. */
  readonly bridge: string;
}

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
});

for (const name of ['nginx', 'caddy', 'haproxy'] as const) {
  const { path, prefix, adapt, args } = PROXIES[name];
  const isHere = spawnSync(name, [name === 'caddy' ? 'version' : '-v']).status === 0;
  const testBehind = isHere ? test : test.skip;

  testBehind(
    `${path} passes calls and streams as they come${isHere ? '' : ` (skipped: ${name} is not here)`}`,
    async (t) => {
      const bridgePort = await ownPort();
      const bridge = await startBridge([
        ...['--port', String(bridgePort), '--base-url', `https://tools.example.com${prefix}`],
        ...['--', NODE, EVERYTHING],
      ]);
      t.teardown(() => bridge.stop());
      const folder = await createConfigFolder(t);
      const port = await ownPort();
      const text = await readFile(new URL(path, ROOT), 'utf8');
      const place = { port, folder: folder.path, bridge: `127.0.0.1:${bridgePort}` };
      const file = await folder.write('proxy.conf', adapt(text, place));
      await runProxy(t, { name, args: args(file), port });

      const { client, progress } = await opened(t, connectStreamable(new URL(`http://127.0.0.1:${port}${prefix}/mcp`)));
      let isAnswered = false;
      const call = client
        .callTool({ name: 'trigger-long-running-operation', arguments: { duration: 2, steps: 4 } }, undefined, {
          onprogress: () => undefined,
        })
        .finally(() => {
          isAnswered = true;
        });
      await waitFor(() => progress.length > 0 || undefined, { message: 'progress' });
      t.false(isAnswered, 'progress came with the answer: the proxy buffers');
      t.regex(JSON.stringify(await call), /completed/);

      const old = await opened(t, connectSse(new URL(`http://127.0.0.1:${port}${prefix}/sse`)));
      const result = await old.client.callTool({ name: 'echo', arguments: { message: 'hello' } });
      t.regex(JSON.stringify(result), /hello/);

      const socket = new WebSocket(`ws://127.0.0.1:${port}${prefix}/ws`, 'mcp');
      t.teardown(() => socket.terminate());
      await once(socket, 'open');
      socket.send(INITIALIZE);
      const [answer] = await once(socket, 'message');
      t.like(JSON.parse(String(answer)), { id: 1 });
    },
  );
}

async function opened<C extends SdkClient>(t: ExecutionContext, connecting: Promise<C>): Promise<C> {
  const connected = await connecting;
  t.teardown(() => connected.close());
  return connected;
}

interface Start {
  readonly name: string;
  readonly args: readonly string[];
  readonly port: number;
}

/** Resolves when it listens; ended with the test. */
async function runProxy(t: ExecutionContext, { name, args, port }: Start): Promise<void> {
  const proxy = spawn(name, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  proxy.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  const ended = once(proxy, 'exit');
  t.teardown(async () => {
    proxy.kill('SIGTERM');
    await ended;
  });
  await waitFor(
    async () => {
      if (proxy.exitCode !== null) throw new Error(`${name} ended: ${said}`);
      const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
      await response?.body?.cancel();
      return response;
    },
    { message: () => `${name} to listen; it said:\n${said}` },
  );
}
