/** Messages that a server which ignores case reads otherwise than the bridge, over every carrier. Needs a current build. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test, { type ExecutionContext } from 'ava';
import { WebSocket } from 'ws';
import { Inbox } from '../contract/inbox.ts';
import { openBridge, startHost } from '../library/host.ts';
import { BRIDGE_COMMAND, type Bridge, startBridge } from '../support/bridge.ts';
import { fixture } from '../support/config-bridge.ts';
import { initialize, openHttpSession, openSseStream } from '../support/legacy-clients.ts';
import { LineClient } from '../support/line-client.ts';
import { waitFor } from '../support/wait-for.ts';

const NODE = process.execPath;
const SERVER = fixture('ignores-case');
const COMMAND = ['--', NODE, SERVER];

/** Each has the server run the hidden tool, or list it, if it comes through. */
const ATTACKS = [
  '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"secret"}}',
  '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shown"},"Params":{"name":"secret"}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shown"},"paramſ":{"name":"secret"}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shown","Name":"secret"}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shown","n\\u0041me":"secret"}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["secret"]}}',
] as const;
const SHOWN = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shown"}}';
/** The only revision with arrays. */
const HELLO = initialize('2025-03-26');

/** Sends one message and resolves with everything that is said about it. */
type Ask = (message: string) => Promise<string>;

async function serve(t: ExecutionContext, args: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge([...args, ...COMMAND]);
  t.teardown(async () => void (await bridge.stop()));
  return bridge;
}

async function overPost(port: number): Promise<Ask> {
  const session = await openHttpSession(port, HELLO);
  return async (message) => (await session.post(message)).text();
}

const CARRIERS: Readonly<Record<string, (t: ExecutionContext, args: readonly string[]) => Promise<Ask>>> = {
  'Streamable HTTP': async (t, args) => overPost(Number((await serve(t, args)).url.port)),
  'HTTP+SSE': async (t, args) => {
    const session = await openSseStream(Number((await serve(t, args)).url.port));
    await session.post(HELLO);
    await session.stream.next();
    return async (message) => {
      const accepted = await session.post(message);
      if (accepted.status !== 202) return accepted.text();
      const first = (await session.stream.next()).data;
      // The answers to an array of two come one by one.
      return message.startsWith('[') ? first + (await session.stream.next()).data : first;
    };
  },
  WebSocket: async (t, args) => {
    const bridge = await serve(t, args);
    const inbox = new Inbox();
    const socket = new WebSocket(new URL('/ws', `ws://${bridge.url.host}`), 'mcp');
    t.teardown(() => socket.terminate());
    socket.on('message', (data) => inbox.put(String(data)));
    await once(socket, 'open');
    socket.send(JSON.stringify(HELLO));
    await inbox.next();
    return (message) => {
      socket.send(message);
      return inbox.next();
    };
  },
  'a byte stream': async (t, args) => {
    const bridge = await serve(t, ['--stream', 'tcp://127.0.0.1:0', ...args]);
    const port = await waitFor(() => /"tcp:[^"]*:(\d+)/.exec(JSON.stringify(bridge.logs))?.[1]);
    const client = await LineClient.connect({ port: Number(port) });
    t.teardown(() => client.socket.destroy());
    client.write(HELLO);
    await client.next();
    return (message) => {
      client.write(`${message}\n`);
      return client.next();
    };
  },
  stdio: async (t, args) => {
    const [command, bin] = BRIDGE_COMMAND;
    const child = spawn(command, [bin, 'connect', ...args, ...COMMAND], { stdio: ['pipe', 'pipe', 'ignore'] });
    const exited = once(child, 'exit');
    t.teardown(async () => {
      child.stdin.end();
      await exited;
    });
    const inbox = new Inbox();
    createInterface({ input: child.stdout }).on('line', (line) => inbox.put(line));
    const ask = (message: string): Promise<string> => {
      child.stdin.write(`${message}\n`);
      return inbox.next();
    };
    await ask(JSON.stringify(HELLO));
    return ask;
  },
  'the library': async (t, args) => {
    const [option, value] = args;
    const given = option === '--audit-file' ? { auditFile: value } : { excludeTool: [value ?? ''] };
    const bridge = await openBridge(t, { server: { command: NODE, args: [SERVER] }, ...given });
    const { url } = await startHost(t, (request, response) => void bridge.handle(request, response));
    return overPost(Number(url.port));
  },
};

for (const [carrier, open] of Object.entries(CARRIERS)) {
  test(`over ${carrier} no message runs or lists a hidden tool at a server that ignores case`, async (t) => {
    const ask = await open(t, ['--exclude-tool', 'secret']);
    for (const attack of ATTACKS) {
      const answer = await ask(attack);
      t.regex(answer, /"error"/, attack);
      t.notRegex(answer, /secret/, attack);
      const answers = await ask(`[${attack},${SHOWN.replace('"id":1', '"id":2')}]`);
      t.regex(answers, /"id":1,"error"/, attack);
      t.notRegex(answers, /secret/, attack);
    }
    t.regex(await ask(SHOWN), /ran shown/);
  });
}

for (const [carrier, open] of Object.entries(CARRIERS)) {
  test(`over ${carrier} the audit file has every call that such a server has run, under its name`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'portage-look-alikes-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, 'audit.log');
    const ask = await open(t, ['--audit-file', path]);
    for (const attack of ATTACKS) t.regex(await ask(attack), /"error"/, attack);
    t.regex(await ask(SHOWN), /ran shown/);
    const answered = await waitFor(async () => {
      const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line.includes('"tools/call"'));
      const found = lines.filter((line) => line.includes('"answered"'));
      return found.length > 0 ? found : undefined;
    });
    t.deepEqual(
      answered.map((line) => (JSON.parse(line) as { readonly tool: string }).tool),
      ['shown'],
    );
  });
}
