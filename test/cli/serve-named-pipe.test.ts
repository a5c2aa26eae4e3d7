/** Clients at a named pipe of Windows, by the built program. */
import { request } from 'node:http';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import test from 'ava';
import { BRIDGE_COMMAND, REPOSITORY } from '../support/bridge.ts';
import { connectClient } from '../support/sdk-client.ts';
import { startSocketBridge } from '../support/socket-bridge.ts';
import { createSocketFetch } from '../support/socket-fetch.ts';

const SERVER = ['--', process.execPath, 'test/fixtures/servers/tells-environment.js'];
const CALL = { name: 'environment', arguments: { variable: 'pid' } };
const isWindows = process.platform === 'win32';
/** Only Windows has named pipes. */
const onWindows = isWindows ? test : test.skip;
const title = (behavior: string): string => (isWindows ? behavior : `${behavior} (only Windows has named pipes)`);

onWindows(title('a client of HTTP and a client on stdio use a server at a named pipe'), async (t) => {
  const name = `mcp-portage-${process.pid}`;
  const path = `\\\\.\\pipe\\${name}`;
  const bridge = startSocketBridge(t, ['--socket', path, ...SERVER]);
  await bridge.listens();

  const status = await new Promise((resolve, reject) => {
    request({ socketPath: path, path: '/healthz' }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end();
  });
  t.is(status, 200);

  const [command, ...args] = [...BRIDGE_COMMAND, 'connect', `pipe:///${name}#/mcp`];
  for (const transport of [
    new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: createSocketFetch(path) }),
    new StdioClientTransport({ command, args, cwd: REPOSITORY, stderr: 'inherit' }),
  ]) {
    const { client, close } = await connectClient(transport);
    t.regex(JSON.stringify(await client.callTool(CALL)), /"\d+"/);
    await close();
  }

  const second = startSocketBridge(t, ['--socket', path, ...SERVER]);
  t.is((await second.exited).code, 69);
  t.regex(JSON.stringify(second.logs), /Another program listens on the named pipe/);
});
