/** Clients at a Unix socket, by the built program. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createHttpServer, request } from 'node:http';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import test, { type ExecutionContext } from 'ava';
import { startLegacyHttp } from '../matrix/servers.ts';
import { initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { connectClient } from '../support/sdk-client.ts';
import { createSocketFolder, type SocketBridge, startSocketBridge } from '../support/socket-bridge.ts';
import { createSocketFetch } from '../support/socket-fetch.ts';
import { waitFor } from '../support/wait-for.ts';
import { finishCommand } from './finish-command.ts';

/** Windows has named pipes instead, without modes, owners or files: see serve-named-pipe. */
const isUnix = process.platform !== 'win32';
const onUnix = isUnix ? test : test.skip;
/** Before the others: the server that is probed is of this process, and answers in time only while that is not busy. */
const onUnixAlone = isUnix ? test.serial : test.skip;
const isRoot = process.getuid?.() === 0;
/** Who may become another user can see what another user sees. */
const asRoot = isRoot ? test : test.skip;
/** Not every machine has curl. */
const hasCurl = spawnSync('curl', ['--version']).status === 0;
const withCurl = hasCurl && isUnix ? test : test.skip;

const NOBODY = 65_534;
const SERVER = ['--', process.execPath, 'test/fixtures/servers/tells-environment.js'];

interface Served {
  readonly path: string;
  readonly folder: string;
  readonly bridge: SocketBridge;
}

async function serve(
  t: ExecutionContext,
  options: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Served> {
  const folder = await createSocketFolder(t);
  const path = join(folder, 'mcp.sock');
  const bridge = startSocketBridge(t, ['--socket', path, ...options, ...SERVER], { env });
  await bridge.listens();
  return { path, folder, bridge };
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** One request over the socket. */
function ask(path: string, headers: Readonly<Record<string, string>> = {}, url = '/healthz'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const isPost = url === '/mcp';
    const sent = request(
      { socketPath: path, path: url, headers, agent: false, method: isPost ? 'POST' : 'GET' },
      (answer) => {
        let body = '';
        answer.setEncoding('utf8').on('data', (chunk) => {
          body += chunk;
          if (isPost) answer.destroy();
        });
        answer.on('close', () => resolve({ status: answer.statusCode ?? 0, body }));
        answer.on('error', () => undefined);
      },
    );
    sent.on('error', reject);
    sent.end(isPost ? JSON.stringify(initialize()) : undefined);
  });
}

const post = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  ask(path, { ...POST_HEADERS, ...headers }, '/mcp');

/** What it says when it refuses to start. */
async function refusal(t: ExecutionContext, args: readonly string[]): Promise<string> {
  const bridge = startSocketBridge(t, [...args, ...SERVER]);
  t.is((await bridge.exited).code, 69);
  return bridge.logs.map(({ msg = '' }) => msg).join('\n');
}

/** What another user of this machine gets there. */
async function connectAs(uid: number, path: string): Promise<string> {
  const program = `require('node:net').connect(${JSON.stringify(path)}).on('connect', () => { console.log('connected'); process.exit() }).on('error', ({ code }) => console.log(code))`;
  const child = spawn(process.execPath, ['-e', program], { uid, stdio: ['ignore', 'pipe', 'inherit'] });
  return (await text(child.stdout)).trim();
}

onUnix('official clients of every transport and era use a server at a socket, and no port is opened', async (t) => {
  const { path, folder, bridge } = await serve(t);
  t.is(lstatSync(path).mode & 0o777, 0o600);
  t.deepEqual(readdirSync(folder), ['mcp.sock'], 'nothing is left of how it was made');
  t.notRegex(JSON.stringify(bridge.logs), /https?:\/\//);
  const own = { fetch: createSocketFetch(path) };
  const url = (name: string) => new URL(name, 'http://localhost');
  const call = { name: 'environment', arguments: { variable: 'pid' } };
  for (const transport of [
    new StreamableHTTPClientTransport(url('/mcp'), own),
    new SSEClientTransport(url('/sse'), own),
  ]) {
    const { client, close } = await connectClient(transport);
    t.regex(JSON.stringify(await client.callTool(call)), /"\d+"/);
    await close();
  }
  const modern = new ModernSdk({ name: 'host', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await modern.connect(new ModernHttp(url('/mcp'), own));
  t.regex(JSON.stringify(await modern.callTool(call)), /"\d+"/);
  await modern.close();

  bridge.kill('SIGTERM');
  t.is((await bridge.exited).code, 0);
  t.false(existsSync(path));
});

withCurl(
  `curl reaches it by whatever Host; what tells of a web page is refused${hasCurl ? '' : ' (there is no curl)'}`,
  async (t) => {
    const { path } = await serve(t);
    const curl = async (...args: readonly string[]) =>
      (await finishCommand(['curl', '--silent', '--unix-socket', path, ...args])).stdout;
    t.is(await curl('http://localhost/healthz'), '{"status":"ok"}');
    t.regex(await curl('http://evil.example/status.json'), /"servers":/);
    t.regex(await curl('--header', 'Host:', 'http://localhost/status.json'), /Bad Request|^$|"servers":/);
    t.regex(await curl('--header', 'Origin: https://evil.example', 'http://localhost/status.json'), /ERR_HTTP_ORIGIN/);
    t.regex(await curl('--header', 'Sec-Fetch-Site: cross-site', 'http://localhost/status.json'), /ERR_HTTP_ORIGIN/);
  },
);

onUnix('the port beside it goes on checking the Host', async (t) => {
  const { path, bridge } = await serve(t, ['--port', '0']);
  const port = /http:\/\/127\.0\.0\.1:(\d+)\/mcp/.exec(JSON.stringify(bridge.logs))?.[1];
  t.regex(JSON.stringify(bridge.logs), /unix:\/\/\/[^"]+mcp\.sock#\/mcp/);
  const overPort = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { host: 'evil.example' };
    request({ host: '127.0.0.1', port, path: '/status.json', headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on('error', reject)
      .end();
  });
  t.is(overPort, 403);
  t.is((await ask(path, { host: 'evil.example' }, '/status.json')).status, 200);
});

onUnix('who calls over a socket shows a token where one is asked for', async (t) => {
  const { path } = await serve(t, ['--auth-token', 'alice=env:TOKEN_OF_ALICE'], {
    TOKEN_OF_ALICE: 'a-long-token-of-alice',
  });
  t.is((await post(path)).status, 401);
  t.is((await post(path, { host: 'localhost', authorization: 'Bearer wrong-token' })).status, 401);
  t.is((await post(path, { authorization: 'Bearer a-long-token-of-alice' })).status, 200);
});

/** Some machines keep the folder for temporary files to its owner. */
const othersReachFiles = (statSync(tmpdir()).mode & 0o001) !== 0;
/** Without root nobody becomes another user, and a Node in the folder of one user is no program of another. */
const othersRunNode = isRoot && spawnSync(process.execPath, ['--version'], { uid: NOBODY }).status === 0;
const canBeOther = othersReachFiles && othersRunNode;

(canBeOther ? test : test.skip)(
  `another user cannot connect unless the mode says so${canBeOther ? '' : ' (needs root, to become another user, and a temporary folder and a Node that others reach)'}`,
  async (t) => {
    const closed = await serve(t);
    chmodSync(closed.folder, 0o755);
    t.is(await connectAs(NOBODY, closed.path), 'EACCES');
    const open = await serve(t, ['--socket-mode', '0666']);
    chmodSync(open.folder, 0o755);
    t.is(await connectAs(NOBODY, open.path), 'connected');
    t.regex(JSON.stringify(open.bridge.logs), /Every user of this machine may connect/);
    // What is open to all users shows nobody what the others do.
    t.is((await ask(open.path, {}, '/status.json')).status, 404);
  },
);

onUnix('a socket at which another program listens is not taken', async (t) => {
  const { path } = await serve(t);
  t.regex(
    await refusal(t, ['--socket', path]),
    /Another program listens at the socket .*mcp\.sock; stop it, or choose another path/,
  );
  t.is((await ask(path)).status, 200);
});

onUnix('what a killed bridge has left is replaced', async (t) => {
  const { path, bridge } = await serve(t);
  bridge.kill('SIGKILL');
  await bridge.exited;
  t.true(existsSync(path));
  const next = startSocketBridge(t, ['--socket', path, ...SERVER]);
  await next.listens();
  t.is((await ask(path)).status, 200);
  t.is(lstatSync(path).mode & 0o777, 0o600);
});

onUnix('what is no socket is never replaced', async (t) => {
  const folder = await createSocketFolder(t);
  const path = join(folder, 'notes.txt');
  writeFileSync(path, 'mine');
  t.regex(await refusal(t, ['--socket', path]), /notes\.txt is a file, and no socket: it is not replaced/);
  t.is(readFileSync(path, 'utf8'), 'mine');
  const link = join(folder, 'link');
  symlinkSync(path, link);
  t.regex(await refusal(t, ['--socket', link]), /link is a symbolic link/);
  t.regex(await refusal(t, ['--socket', folder]), /is a directory, and no socket/);
});

asRoot(`a stale socket of another user is not replaced${isRoot ? '' : ' (needs root, to make one)'}`, async (t) => {
  const { path, bridge } = await serve(t);
  bridge.kill('SIGKILL');
  await bridge.exited;
  chownSync(path, NOBODY, NOBODY);
  t.regex(
    await refusal(t, ['--socket', path]),
    /belongs to another user \(uid 65534, this process has 0\): it is not replaced/,
  );
});

onUnix("what has taken its place meanwhile is somebody else's, and stays", async (t) => {
  const { path, bridge } = await serve(t);
  const other = createServer((socket) => void socket.end());
  t.teardown(() => other.close());
  other.listen(`${path}.new`);
  await once(other, 'listening');
  renameSync(`${path}.new`, path);
  bridge.kill('SIGTERM');
  t.is((await bridge.exited).code, 0);
  t.true(existsSync(path));
  const [socket] = [connect(path)];
  await once(socket, 'connect');
  socket.destroy();
  rmSync(path);
});

onUnix('a path that cannot be, says why', async (t) => {
  const folder = await createSocketFolder(t);
  t.regex(await refusal(t, ['--socket', join(folder, 'x'.repeat(120))]), /has at most \d+ bytes on this system/);
  t.regex(
    await refusal(t, ['--socket', join(folder, 'none', 'a.sock')]),
    /The folder of the socket, .*none, does not exist: create it/,
  );
});

onUnix('many clients at once, half of whom leave without a word, leave nothing behind', async (t) => {
  const { path, bridge } = await serve(t);
  const leaving = Array.from({ length: 40 }, async (_, index) => {
    const socket = connect(path);
    await once(socket, 'connect');
    socket.on('error', () => undefined);
    socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"json');
    if (index % 2 === 0) socket.end();
    socket.destroy();
  });
  const staying = Array.from({ length: 40 }, () => ask(path));
  await Promise.all(leaving);
  for (const { status } of await Promise.all(staying)) t.is(status, 200);
  t.false(JSON.stringify(bridge.logs).includes('ERR_INTERNAL'));
});

// ---- sockets that whoever starts the bridge has opened

/** systemd, which opens sockets for others, is there on Linux only. */
const onLinux = process.platform === 'linux' ? test : test.skip;
/** Says in its environment that the descriptor 3 is for it, as systemd does. */
const ACTIVATED = ['sh', '-c', 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', 'sh', process.execPath, 'bin/mcp-portage.js'];

onLinux('a Unix socket of systemd is served, and stays its own at the end', async (t) => {
  const folder = await createSocketFolder(t);
  const path = join(folder, 'activated.sock');
  const listener = createServer();
  listener.listen(path);
  await once(listener, 'listening');
  chmodSync(path, 0o600);
  // Node removes the name when this process closes its end.
  linkSync(path, `${path}.kept`);
  const bridge = startSocketBridge(t, ['--inherit-env', ...SERVER], {
    inherited: [descriptorOf(listener)],
    command: ACTIVATED,
  });
  await bridge.listens();
  listener.close();
  renameSync(`${path}.kept`, path);
  t.notRegex(JSON.stringify(bridge.logs), /https?:\/\//, 'no port beside it');
  t.is((await ask(path, { host: 'anything.example' }, '/status.json')).status, 200);
  const { client, close } = await connectClient(
    new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: createSocketFetch(path) }),
  );
  for (const variable of ['LISTEN_FDS', 'LISTEN_PID']) {
    const { content } = await client.callTool({ name: 'environment', arguments: { variable } });
    t.like(content, [{ text: '(none)' }], `${variable} is for the bridge alone`);
  }
  const { content } = await client.callTool({ name: 'environment', arguments: { variable: 'pid' } });
  const [child] = content as readonly { readonly text: string }[];
  t.false(
    readdirSync(`/proc/${child?.text}/fd`).some((fd) => fd === '3' && isListening(child?.text)),
    'nor does a child have the socket',
  );
  await close();
  bridge.kill('SIGTERM');
  t.is((await bridge.exited).code, 0);
  t.true(existsSync(path));
});

function descriptorOf(listener: Server): number {
  const { _handle: handle } = listener as Server & { readonly _handle?: { readonly fd?: unknown } };
  if (typeof handle?.fd !== 'number') throw new Error('it listens at no descriptor');
  return handle.fd;
}

/** Whether the descriptor 3 of a process is a socket in the list of those that listen. */
function isListening(pid: string | undefined): boolean {
  const inode = readlinkSync(`/proc/${pid}/fd/3`).match(/socket:\[(\d+)\]/)?.[1];
  const row = readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .find((line) => inode !== undefined && line.includes(` ${inode} `));
  return row?.includes('00010000') === true;
}

onLinux('a port of systemd is served by its address: beyond loopback callers have to be known', async (t) => {
  const start = async (host: string) => {
    const listener = createServer();
    listener.listen(0, host);
    await once(listener, 'listening');
    const address = listener.address();
    const bridge = startSocketBridge(t, SERVER, { inherited: [descriptorOf(listener)], command: ACTIVATED });
    listener.close();
    return { bridge, port: typeof address === 'object' ? address?.port : undefined };
  };
  for (const host of ['127.0.0.1', '::1']) {
    const { bridge, port } = await start(host);
    await bridge.listens();
    const answer = await fetch(`http://${host.includes(':') ? `[${host}]` : host}:${port}/healthz`);
    t.is(answer.status, 200);
  }
  const { bridge } = await start('0.0.0.0');
  t.is((await bridge.exited).code, 2);
  t.regex(JSON.stringify(bridge.logs), /The inherited socket 3, 0\.0\.0\.0, lets other machines reach this port/);
});

onUnix('what speaks of descriptors for another process is not followed', async (t) => {
  const { path } = await serve(t, [], { LISTEN_PID: '1', LISTEN_FDS: '5' });
  t.is((await ask(path)).status, 200);
});

// ---- who looks

onUnix('report and top look at a bridge at a socket', async (t) => {
  const { path } = await serve(t, ['--usage', '--state-dir', await createSocketFolder(t)]);
  await post(path);
  const run = (...args: readonly string[]) => finishCommand([process.execPath, 'bin/mcp-portage.js', ...args]);
  const report = await run('report', `unix://${path}#/`, '--json');
  t.notThrows(() => JSON.parse(report.stdout), report.stderr);
  const top = await run('top', `unix://${path}#/mcp`);
  t.is(top.code, 0, top.stderr);
  t.true(top.stdout.includes(`unix://${path}`));
  const gone = await run('top', `unix://${path}.not#/mcp`);
  t.regex(gone.stderr, /Cannot reach unix:\/\/\/.*mcp\.sock\.not: is mcp-portage running there/);
});

onUnix('a health check in a container finds the socket', async (t) => {
  const { path, bridge } = await serve(t);
  const check = async (pid: number) => {
    const child = spawn(process.execPath, ['scripts/healthcheck.js', `${pid}`], {
      env: { MCP_PORTAGE_HOST: '0.0.0.0', MCP_PORTAGE_PORT: '9', MCP_PORTAGE_SOCKET: path },
      stdio: 'ignore',
    });
    const [code] = await once(child, 'exit');
    return code;
  };
  t.is(await check(bridge.pid), 0);
  bridge.kill('SIGTERM');
  await bridge.exited;
  t.is(await check(bridge.pid), 1);
});

// ---- servers at a socket

/** An HTTP server of this test at a socket; what it is asked is kept. */
async function startAt(t: ExecutionContext, path: string, location: (asked: string) => string) {
  const asked: { readonly url: string | undefined; readonly host: string | undefined }[] = [];
  const server = createHttpServer((message, response) => {
    asked.push({ url: message.url, host: message.headers.host });
    message.resume();
    response.writeHead(307, { location: location(message.url ?? '') }).end();
  });
  server.listen(path);
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return asked;
}

const probe = (...args: readonly string[]) => finishCommand([process.execPath, 'bin/mcp-portage.js', 'probe', ...args]);

onUnixAlone(
  'the Host that a server at a socket is asked for is localhost, and no redirect leads away from it',
  async (t) => {
    const folder = await createSocketFolder(t);
    const path = join(folder, 'server.sock');
    const decoy = createHttpServer((_request, response) => void response.end());
    decoy.listen(0, '127.0.0.1');
    await once(decoy, 'listening');
    t.teardown(() => decoy.close());
    let wasReached = false;
    decoy.on('request', () => {
      wasReached = true;
    });
    const address = decoy.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const asked = await startAt(t, path, (url) =>
      url === '/mcp' ? 'http://localhost/elsewhere' : `http://localhost:${port}/mcp`,
    );
    const { code, stdout } = await probe(`unix://${path}#/mcp`);
    t.not(code, 0);
    t.regex(stdout, /unix:\/\/\/.*server\.sock#\/elsewhere|another origin/);
    t.true(
      asked.some(({ url }) => url === '/elsewhere'),
      'a redirect on the socket is followed there',
    );
    t.true(asked.every(({ host }) => host === 'localhost'));
    t.false(wasReached);
  },
);

for (const [kind, shown] of [
  ['http-sse', /HTTP\+SSE, legacy +yes/],
  ['stateless', /Streamable HTTP, legacy +yes/],
] as const) {
  onUnix(`an official server at a socket is found, and served to other clients: ${kind}`, async (t) => {
    const folder = await createSocketFolder(t);
    const path = join(folder, 'server.sock');
    const server = await startLegacyHttp(kind, path);
    t.teardown(server.stop);
    const target = `unix://${path}#${server.url.pathname}`;
    const { code, stdout } = await probe(target);
    t.is(code, 0, stdout);
    t.regex(stdout, shown);
    const front = join(folder, 'front.sock');
    const bridge = startSocketBridge(t, ['--socket', front, target]);
    await bridge.listens();
    const own = { fetch: createSocketFetch(front) };
    const { client, close } = await connectClient(
      new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), own),
    );
    t.true((await client.listTools()).tools.length > 0);
    await close();
  });
}

onUnix('a file of servers names a socket as VS Code does, or beside the url', async (t) => {
  const { path, folder } = await serve(t);
  const file = join(folder, 'mcp.json');
  const entries = {
    vscode: { type: 'http', url: `unix://${path}#/mcp` },
    beside: { url: 'http://localhost/mcp', socket: path },
    alone: { socket: path },
  };
  writeFileSync(file, JSON.stringify({ servers: entries }), { mode: 0o600 });
  for (const name of Object.keys(entries)) {
    const { code, stdout } = await probe('--config', file, name, '--json');
    t.is(code, 0, stdout);
    t.true(stdout.includes(`unix://${path}#/mcp`), stdout);
  }
});

onUnix('a socket without a server is told from one that does not exist', async (t) => {
  const { path, bridge } = await serve(t);
  bridge.kill('SIGKILL');
  await bridge.exited;
  t.regex(
    (await probe(`unix://${path}#/mcp`)).stdout.replaceAll(/\s+/g, ' '),
    /mcp\.sock#\/mcp: nothing listens there\. The server that left the file has ended/,
  );
  t.regex((await probe(`unix://${path}.not#/mcp`)).stdout.replaceAll(/\s+/g, ' '), /there is no such socket/);
  await waitFor(() => existsSync(path));
});
