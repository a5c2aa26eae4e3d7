/** gRPC by the built program: clients made of the official library and the SDKs, and servers of others. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { credentials, status } from '@grpc/grpc-js';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import test, { type ExecutionContext } from 'ava';
import { maybeStartGrpcMcpServer } from 'mcp-grpc-transport';
import { z } from 'zod';
import { BRIDGE_COMMAND, type Bridge, startBridge } from '../support/bridge.ts';
import {
  checkHealth,
  type GrpcClientOptions,
  type GrpcServerOptions,
  GrpcSession,
  openStream,
  startGrpcServer,
  transportOverGrpc,
} from '../support/grpc-peers.ts';
import { initialize } from '../support/legacy-clients.ts';
import { ownPort } from '../support/own-port.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';
import { finishCommand } from './finish-command.ts';

const fixture = (path: string): URL => new URL(`../fixtures/${path}`, import.meta.url);
const COMMAND = ['--', process.execPath, serverProgram(fixture('contract-server/server.js'))];
const MODERN = ['--', process.execPath, fileURLToPath(fixture('servers/modern-only.js'))];
const TOKEN = 'a-token-that-nobody-guesses';

/** Where gRPC is spoken, as the log says. */
function addressesOf({ logs }: Bridge): readonly string[] {
  return logs.flatMap(({ endpoint }) => {
    const { label, url = '' } = (endpoint ?? {}) as { label?: string; url?: string };
    return label?.endsWith('gRPC') === true ? [url.replace(/^grpcs?:\/\//, '')] : [];
  });
}

async function serve(t: ExecutionContext, args: readonly string[], env: Record<string, string> = {}) {
  const bridge = await startBridge(args, { env });
  t.teardown(() => bridge.stop());
  const addresses = await waitFor(() => addressesOf(bridge).length > 0 && addressesOf(bridge));
  return { bridge, address: addresses[0] as string, addresses };
}

async function connectSdk(t: ExecutionContext, address: string, options: GrpcClientOptions = {}): Promise<Client> {
  const client = new Client({ name: 'sdk-client', version: '1.0.0' });
  const { stream, close } = openStream(address, options);
  await client.connect(transportOverGrpc(stream, close) as never);
  t.teardown(() => client.close());
  return client;
}

async function connectPiped(t: ExecutionContext, ...args: readonly string[]): Promise<Client> {
  const [command, ...first] = BRIDGE_COMMAND;
  const client = new Client({ name: 'sdk-client', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ command, args: [...first, 'connect', ...args], stderr: 'ignore' }));
  t.teardown(() => client.close());
  return client;
}

const echo = async (client: Client, value: string): Promise<unknown> =>
  (await client.callTool({ name: 'echo', arguments: { value } })).content;
const said = (text: string) => [{ type: 'text', text }];

test('serves clients of the SDK over gRPC beside HTTP, each with a server of its own, and says so', async (t) => {
  const { bridge, address } = await serve(t, ['--grpc', '127.0.0.1:0', '--metrics', ...COMMAND]);
  const clients = await Promise.all([connectSdk(t, address), connectSdk(t, address)]);
  t.deepEqual(await Promise.all(clients.map((client, index) => echo(client, `${index}`))), [said('0'), said('1')]);
  t.is(bridge.children().length, 2);
  t.is(await checkHealth(address, 'mcp.transport.v1.Mcp'), 'SERVING');
  const textOf = async (path: string): Promise<string> => (await fetch(new URL(path, bridge.url))).text();
  const status = JSON.parse(await textOf('/status.json')) as { clients: readonly { speaks: object }[] };
  t.like(status.clients[0]?.speaks, { transport: 'grpc', era: 'legacy' });
  t.regex(await textOf('/metrics'), /^mcp_portage_client_calls_total\{[^}]*transport="grpc"[^}]*\} \d+$/m);
  await Promise.all(clients.map((client) => client.close()));
  await waitFor(() => bridge.children().length === 0);
});

test('serves clients of the SDK v2 over gRPC in both eras', async (t) => {
  for (const [server, name] of [
    [COMMAND, 'echo'],
    [MODERN, undefined],
  ] as const) {
    const { address } = await serve(t, ['--grpc', '127.0.0.1:0', ...server]);
    const client = new ModernClient(
      { name: 'modern', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    const { stream, close } = openStream(address);
    await client.connect(transportOverGrpc(stream, close) as never);
    const { tools } = await client.listTools();
    t.true(tools.length > 0);
    if (name !== undefined) t.true(tools.some((tool) => tool.name === name));
    await client.close();
  }
});

test('takes the token of a caller as metadata, and refuses others with status 16', async (t) => {
  const args = ['--grpc', '127.0.0.1:0', '--auth-token', 'alice=env:ALICE', ...COMMAND];
  const { bridge, address } = await serve(t, args, { ALICE: TOKEN });
  const client = await connectSdk(t, address, { metadata: { authorization: `Bearer ${TOKEN}` } });
  t.deepEqual(await echo(client, 'by alice'), said('by alice'));
  for (const metadata of [{}, { authorization: 'Bearer x' }]) {
    const session = GrpcSession.open(address, { metadata });
    t.is((await session.ended).code, status.UNAUTHENTICATED);
    session.close();
  }
  t.is(await checkHealth(address), 'SERVING');
  t.false(JSON.stringify(bridge.logs).includes(TOKEN));
});

test('serves gRPC over TLS with the certificate of the listener', async (t) => {
  const path = (name: string): string => fileURLToPath(fixture(`tls/${name}.pem`));
  const tls = ['--tls-cert', path('server'), '--tls-key', path('server-key')];
  const { address } = await serve(t, ['--grpc', '127.0.0.1:0', ...tls, ...COMMAND]);
  const client = await connectSdk(t, address, { credentials: credentials.createSsl(readFileSync(path('ca'))) });
  t.deepEqual(await echo(client, 'encrypted'), said('encrypted'));
  const plain = GrpcSession.open(address);
  t.is((await plain.ended).code, status.UNAVAILABLE);
  plain.close();
});

test('a client of one bridge reaches the server of another', async (t) => {
  const { address } = await serve(t, ['--grpc', '127.0.0.1:0', ...COMMAND]);
  const client = await connectPiped(t, `grpc://${address}`);
  t.deepEqual(await echo(client, 'twice'), said('twice'));
});

test('a bridge that ends answers what is open and has status 14; it leaves nothing behind', async (t) => {
  const { bridge, address } = await serve(t, ['--grpc', '127.0.0.1:0', '--shutdown-grace', '0', ...COMMAND]);
  const session = GrpcSession.open(address);
  session.send(initialize());
  await session.next();
  t.is((await bridge.stop()).code, 0);
  t.is((await session.ended).code, status.UNAVAILABLE);
  session.close();
});

test('where it cannot listen, it names the option that was given', async (t) => {
  const { address } = await serve(t, ['--grpc', '127.0.0.1:0', ...COMMAND]);
  await t.throwsAsync(startBridge(['--grpc', address, ...COMMAND]), {
    message: /in use by another program; choose another with --grpc, or port 0 for any free one/,
  });
});

test('reaches a server made with mcp-grpc-transport', async (t) => {
  process.env.ENABLE_GRPC = '1';
  const createMcpServer = (): McpServer => {
    const server = new McpServer({ name: 'of-others', version: '1.0.0' });
    server.registerTool('echo', { inputSchema: { value: z.string() } }, ({ value }) => ({
      content: [{ type: 'text', text: value }],
    }));
    return server;
  };
  const server = await maybeStartGrpcMcpServer({ createMcpServer, bindAddress: '127.0.0.1:0' } as never);
  if (server === undefined) return t.fail('it does not start');
  t.teardown(() => server.shutdown());
  const client = await connectPiped(t, `grpc://${server.address}`);
  t.is(client.getServerVersion()?.name, 'of-others');
  t.deepEqual(await echo(client, 'by others'), said('by others'));
  const { code, stdout } = await finishCommand([...BRIDGE_COMMAND, 'probe', '--json', `grpc://${server.address}`]);
  t.is(code, 0);
  const report = JSON.parse(stdout) as {
    readonly offers: readonly { transport: string; era: string; works: boolean }[];
  };
  t.deepEqual(
    report.offers.map(({ transport, era, works }) => [transport, era, works]),
    [['grpc', 'legacy', true]],
  );
});

test('probe ends with 69 where nothing listens and with 77 where a token is wanted', async (t) => {
  const probe = (target: string) => finishCommand([...BRIDGE_COMMAND, 'probe', target]);
  const unreachable = await probe(`grpc://127.0.0.1:${await ownPort()}`);
  t.is(unreachable.code, 69);
  t.regex(unreachable.stdout, /nothing listens there/);
  const session: GrpcServerOptions['session'] = (stream) =>
    void stream.emit('error', Object.assign(new Error(), { code: status.UNAUTHENTICATED, details: 'no' }));
  const guarded = await startGrpcServer({ session });
  t.teardown(() => guarded.stop());
  const refused = await probe(guarded.target);
  t.is(refused.code, 77);
  t.regex(refused.stdout, /requires authorization \(16 UNAUTHENTICATED\)/);
});
