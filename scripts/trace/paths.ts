/**
 * The paths that a call can take, and how one warm call of each is made: the bridge as its composition root makes it, in
 * this process; a server of the official SDK in a process of its own; and a client that is no more than its bytes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { runBridge } from '../../src/bridge.ts';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import type { Deps } from '../../src/deps.ts';
import { configOf } from '../../test/bridge/config-of.ts';
import { record, type Step, withoutOlderTimers } from './recorder.ts';

/** How short the way of a call is meant to be. */
interface Goal {
  readonly files: number;
  readonly objects: number;
}

const PASS_THROUGH: Goal = { files: 45, objects: 10 };
const TRANSLATED: Goal = { files: 65, objects: 20 };

export interface Path {
  readonly title: string;
  readonly client: 'streamable' | 'http-sse' | 'modern' | 'pipe';
  readonly server: '--stdio' | '--http' | '--modern-stdio' | '--modern-http';
  readonly goal: Goal;
  /** Options of the bridge. */
  readonly options: readonly string[];
}

const path = (
  title: string,
  client: Path['client'],
  server: Path['server'],
  goal: Goal,
  ...options: string[]
): Path => ({
  title,
  client,
  server,
  goal,
  options,
});

export const PATHS: Readonly<Record<string, Path>> = {
  streamable: path('Streamable HTTP → stdio', 'streamable', '--stdio', PASS_THROUGH),
  'http-sse': path('HTTP+SSE → stdio', 'http-sse', '--stdio', PASS_THROUGH),
  shared: path('Streamable HTTP → shared stdio', 'streamable', '--stdio', PASS_THROUGH, '--isolation', 'shared'),
  modern: path('modern HTTP → modern stdio', 'modern', '--modern-stdio', PASS_THROUGH),
  url: path('Streamable HTTP → Streamable HTTP', 'streamable', '--http', PASS_THROUGH),
  'modern-url': path('modern HTTP → modern HTTP', 'modern', '--modern-http', PASS_THROUGH),
  connect: path('stdio → Streamable HTTP (connect)', 'pipe', '--http', PASS_THROUGH),
  'modern-to-legacy': path('modern HTTP → stdio, translated', 'modern', '--stdio', TRANSLATED),
  'legacy-to-modern': path('Streamable HTTP → modern stdio, translated', 'streamable', '--modern-stdio', TRANSLATED),
};

const SERVER = fileURLToPath(new URL('../../test/fixtures/everything/server.js', import.meta.url));
/** Answers with one text, and asks nothing. */
const TOOL = 'test_simple_text';
/** The first calls find out what the server speaks, open its sessions and connections, and fill caches. */
const WARM_UP_CALLS = 5;

/** Returns what one warm call goes through. Opens what the path needs and closes it again. */
export async function trace({ client: kind, server, options }: Path): Promise<readonly Step[]> {
  const { target, stop } = await startServer(server);
  const pipes = { input: new PassThrough(), output: new PassThrough(), isOrphaned: () => false };
  const verb = kind === 'pipe' ? ['connect'] : ['serve', '--port', '0'];
  const bridge = await runBridge(configOf(...verb, ...options, ...target), traceDeps(), () => pipes);
  const client = kind === 'pipe' ? new PipeClient(pipes) : new HttpClient(kind, urlOf(bridge.urls, kind));
  try {
    if (kind !== 'pipe') await findOutWith(new HttpClient(kind, urlOf(bridge.urls, kind)));
    await client.open();
    for (let calls = 0; calls < WARM_UP_CALLS; calls += 1) await client.call();
    return await record(() => client.call());
  } finally {
    client.close();
    await bridge.shutdown('SIGTERM');
    stop();
  }
}

/** The first session of a bridge finds out what the server speaks, and keeps what did that. All others do without. */
async function findOutWith(first: HttpClient): Promise<void> {
  await first.open();
  await first.call();
  first.close();
}

function traceDeps(): Deps {
  const deps = createSystemDeps(pino({ level: 'warn' }, pino.destination(2)));
  return { ...deps, clock: withoutOlderTimers(deps.clock) };
}

function urlOf(urls: readonly { readonly url: string }[], kind: Path['client']): URL {
  const ending = kind === 'http-sse' ? '/sse' : '/mcp';
  const found = urls.find(({ url }) => url.endsWith(ending));
  if (found === undefined) throw new Error(`the bridge serves no ${ending}`);
  return new URL(found.url);
}

/** What is given to the bridge as its target: a command that it starts itself, or the URL of a server that runs. */
async function startServer(mode: Path['server']): Promise<{ target: readonly string[]; stop: () => void }> {
  if (mode.endsWith('stdio')) return { target: ['--', process.execPath, SERVER, mode], stop: () => undefined };
  const server = spawn(process.execPath, [SERVER, mode, '0'], { stdio: ['ignore', 'inherit', 'pipe'] });
  const stop = () => void server.kill();
  process.once('exit', stop);
  return { target: [await listeningUrl(server)], stop };
}

async function listeningUrl({ stderr }: ChildProcess): Promise<string> {
  if (stderr === null) throw new Error('the server has no stderr');
  for await (const line of createInterface({ input: stderr })) {
    const [url] = /http:\S+/.exec(line) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error('the server has ended before it listened');
}

interface Message {
  readonly id?: number;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

const clientInfo = { name: 'trace', version: '1.0.0' };
const LEGACY_REVISION = '2025-11-25';
const MODERN_REVISION = '2026-07-28';
const INITIALIZE: Message = {
  id: 0,
  method: 'initialize',
  params: { protocolVersion: LEGACY_REVISION, capabilities: {}, clientInfo },
};
const INITIALIZED: Message = { method: 'notifications/initialized' };
const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': MODERN_REVISION,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {},
};
const MODERN_HEADERS = { 'MCP-Protocol-Version': MODERN_REVISION, 'Mcp-Method': 'tools/call', 'Mcp-Name': TOOL };

const encode = (message: Message): string => JSON.stringify({ jsonrpc: '2.0', ...message });

function checkAnswer(text: string): void {
  if (!text.includes('"result":')) throw new Error(`instead of a result came: ${text}`);
}

/** A client of any transport over HTTP, with one connection for all that it posts. */
class HttpClient {
  readonly #kind: Path['client'];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #url: URL;
  #headers: Record<string, string> = {};
  /** HTTP+SSE sends every answer on this one stream. */
  #stream: IncomingMessage | undefined;
  #calls = 0;

  constructor(kind: Path['client'], url: URL) {
    this.#kind = kind;
    this.#url = url;
  }

  async open(): Promise<void> {
    if (this.#kind === 'modern') {
      this.#headers = MODERN_HEADERS;
      return;
    }
    if (this.#kind === 'http-sse') await this.#openStream();
    const { headers } = await this.#ask(INITIALIZE);
    const session = headers['mcp-session-id'];
    if (typeof session === 'string')
      this.#headers = { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': LEGACY_REVISION };
    await this.#post(INITIALIZED);
  }

  async call(): Promise<void> {
    this.#calls += 1;
    const meta = this.#kind === 'modern' ? { _meta: MODERN_META } : {};
    await this.#ask({ id: this.#calls, method: 'tools/call', params: { name: TOOL, arguments: {}, ...meta } });
  }

  close(): void {
    this.#stream?.destroy();
    this.#agent.destroy();
  }

  async #openStream(): Promise<void> {
    const sent = request(this.#url, { headers: { Accept: 'text/event-stream' } }).end();
    const [stream] = (await once(sent, 'response')) as [IncomingMessage];
    this.#stream = stream.setEncoding('utf8');
    const [event] = (await once(stream, 'data')) as [string];
    this.#url = new URL(/^data: ?(.*)$/m.exec(event)?.[1] ?? '', this.#url);
  }

  /** Resolves when the answer is there, and the response to the post has ended. */
  async #ask(message: Message): Promise<IncomingMessage> {
    if (this.#stream === undefined) {
      const { response, text } = await this.#post(message);
      checkAnswer(text);
      return response;
    }
    const [{ response }, [event]] = await Promise.all([this.#post(message), once(this.#stream, 'data')]);
    checkAnswer(String(event));
    return response;
  }

  async #post(message: Message): Promise<{ response: IncomingMessage; text: string }> {
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...this.#headers,
    };
    const sent = request(this.#url, { method: 'POST', agent: this.#agent, headers }).end(encode(message));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    return { response, text };
  }
}

/** A client that has started the bridge, and speaks to it in lines. */
class PipeClient {
  readonly #input: PassThrough;
  readonly #output: PassThrough;
  #calls = 0;

  constructor({ input, output }: { readonly input: PassThrough; readonly output: PassThrough }) {
    this.#input = input;
    this.#output = output.setEncoding('utf8');
  }

  async open(): Promise<void> {
    await this.#ask(INITIALIZE);
    this.#input.write(`${encode(INITIALIZED)}\n`);
  }

  async call(): Promise<void> {
    this.#calls += 1;
    await this.#ask({ id: this.#calls, method: 'tools/call', params: { name: TOOL, arguments: {} } });
  }

  close(): void {
    this.#input.end();
  }

  async #ask(message: Message): Promise<void> {
    const answered = once(this.#output, 'data');
    this.#input.write(`${encode(message)}\n`);
    checkAnswer(String(await answered));
  }
}
