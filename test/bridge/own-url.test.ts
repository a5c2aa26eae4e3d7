/** A bridge whose server's URL is its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { runBridge } from '../../src/bridge.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { startMosquitto, WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { ownPort } from '../support/own-port.ts';
import { waitFor } from '../support/wait-for.ts';
import { configOf } from './config-of.ts';

const mqtt = WHY_NO_MOSQUITTO === undefined ? test : test.skip;
if (WHY_NO_MOSQUITTO !== undefined) test(`no broker: ${WHY_NO_MOSQUITTO}`, (t) => t.pass());

const LOOP = /called itself: the URL of one of its servers leads back to it/;

const MESSAGES: Readonly<Record<string, { readonly headers: Record<string, string>; readonly message: object }>> = {
  legacy: {
    headers: {},
    message: {
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
    },
  },
  modern: {
    headers: { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' },
    message: {
      method: 'tools/list',
      params: {
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {},
          'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
        },
      },
    },
  },
};

async function startAt(t: ExecutionContext, url: (port: number) => string, ...options: string[]): Promise<number> {
  const port = await ownPort();
  const config = configOf('serve', '--port', String(port), ...options, url(port));
  const bridge = await runBridge(config, createTestDeps().deps, () => {
    throw new Error('it serves no pipes');
  });
  t.teardown(() => bridge.shutdown('SIGTERM'));
  return port;
}

async function ask(port: number, era: string): Promise<string> {
  const { headers = {}, message } = MESSAGES[era] ?? {};
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  });
  return response.text();
}

for (const era of Object.keys(MESSAGES)) {
  test(`a bridge that is its own server tells a ${era} client so`, async (t) => {
    const port = await startAt(t, (own) => `http://127.0.0.1:${own}/mcp`);
    t.regex(await ask(port, era), LOOP);
  });

  test(`a bridge that is its own server over HTTP+SSE tells a ${era} client so`, async (t) => {
    const port = await startAt(t, (own) => `http://127.0.0.1:${own}/sse`, '--transport', 'sse');
    t.regex(await ask(port, era), LOOP);
  });

  test(`a bridge that is its own server over WebSocket refuses itself, and tells a ${era} client of it`, async (t) => {
    const port = await startAt(t, (own) => `ws://127.0.0.1:${own}/ws`);
    t.regex(await ask(port, era), /508/);
  });

  test(`a bridge that is its own server on a byte stream tells a ${era} client so`, async (t) => {
    const stream = await ownPort();
    const address = `tcp://127.0.0.1:${stream}`;
    const port = await startAt(t, () => address, '--stream', address);
    t.regex(await ask(port, era), LOOP);
  });

  test(`a bridge that is its own server at the port of HTTP, asked for lines, tells a ${era} client so`, async (t) => {
    const port = await startAt(t, (own) => `tcp://localhost:${own}`);
    t.regex(await ask(port, era), LOOP);
  });

  test(`a bridge that is its own server at a Unix socket tells a ${era} client so`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-own-'));
    t.teardown(() => rm(folder, { recursive: true }));
    const address = `unix://${join(folder, 'lines.sock')}`;
    const port = await startAt(t, () => address, '--stream', address);
    t.regex(await ask(port, era), LOOP);
  });

  mqtt(`a bridge that is its own server through a broker tells a ${era} client so`, async (t) => {
    const broker = await startMosquitto();
    t.teardown(() => broker.stop());
    const address = `${broker.url}/own/name`;
    const port = await startAt(t, () => address, '--protocol', era, '--dial', address, '--status');
    await waitFor(async () => /"hubs":"connected"/.test(await textAt(port, '/readyz')));
    t.regex(await ask(port, era), LOOP);
    t.regex(await textAt(port, '/status.json'), /"sessions":0,/);
  });
}

async function textAt(port: number, path: string): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}${path}`)).text();
}
