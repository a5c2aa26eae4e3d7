/**
 * Servers that do one thing otherwise than the specification wants it, and that the official clients get along with: they do so
 * through the built program, in both eras, by `serve` and by `connect`; and `probe` calls them usable.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import type { TestServer } from '../fixtures/http-servers/listen.ts';
import { answerJson } from '../fixtures/http-servers/listen.ts';
import { takings } from '../fixtures/http-servers/old-server.ts';
import {
  answeringNotifications,
  answeringOnStream,
  breakingStream,
  changingIds,
  circling,
  deafToPings,
  listenForgetful,
  listenOldQuirky,
  listenQuirky,
  packing,
  type Refuse,
  redirecting,
  speakingOnly,
  talkingOutOfTurn,
} from '../fixtures/http-servers/quirks.ts';
import type { AskedMessage, Script } from '../fixtures/http-servers/scripted.ts';
import { fixture } from '../process/child-spec.ts';
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { waitFor } from '../support/wait-for.ts';
import { type TolerantClient, throughEachVerb } from './tolerant-clients.ts';

interface Quirky {
  /** What stands on the command line for the server. */
  readonly target: readonly string[];
  /** What else `serve` and `connect` are told. */
  readonly options?: readonly string[];
  /** Between two calls of one client. */
  readonly between?: (t: ExecutionContext, client: TolerantClient) => Promise<void> | void;
  /** When all clients have left, and the bridges have ended. */
  readonly after?: (t: ExecutionContext) => void;
}

async function over<Server extends TestServer>(t: ExecutionContext, starting: Promise<Server>): Promise<Server> {
  const server = await starting;
  t.teardown(() => server.close());
  return server;
}

const program = (name: string, ...args: string[]): Quirky => ({
  target: ['--', process.execPath, fixture(name), ...args],
});

const scripted = async (t: ExecutionContext, script: Script): Promise<Quirky> => ({
  target: [(await over(t, listenQuirky(script))).url.href],
});

// ---- lost sessions

const rpcError = (id: unknown, code: number, message: string) => ({ jsonrpc: '2.0', id, error: { code, message } });
const saying =
  (status: number, text: (id: unknown) => object | string): Refuse =>
  ({ id = null }, response) => {
    const said = text(id);
    const type = typeof said === 'string' ? 'text/plain' : 'application/json';
    response.writeHead(status, { 'Content-Type': type }).end(typeof said === 'string' ? said : JSON.stringify(said));
  };

const LOSSES: Readonly<Record<string, Refuse>> = {
  404: saying(404, () => rpcError(null, -32001, 'Session not found')),
  '400 and the id of the request': saying(400, (id) => rpcError(id, -32000, 'Bad Request: Server not initialized')),
  '400 without any message': saying(400, () => 'Invalid session ID'),
  '403 that names the session': saying(403, () => rpcError(null, -32000, 'Mcp-Session-Id principal mismatch')),
  '503 that names the session': saying(503, () => 'Session not available'),
  '200 and -32600': ({ id }, response) => answerJson(response, rpcError(id, -32600, 'Session not found')),
};

const forgetful =
  (refuse: Refuse) =>
  async (t: ExecutionContext): Promise<Quirky> => {
    const server = await over(t, listenForgetful(refuse));
    return { target: [server.url.href], between: () => server.forget() };
  };

// ---- all of them

/** Two calls at once; while one waits, the other is canceled, and the server answers that with an error. */
async function cancelBesideAnother(t: ExecutionContext, client: TolerantClient): Promise<void> {
  let isHeld = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    isHeld = resolve;
  });
  const waiting = client.echo('hold', { onprogress: isHeld });
  await held;
  const canceling = new AbortController();
  const { signal } = canceling;
  await t.throwsAsync(client.echo('drop', { signal, onprogress: () => canceling.abort() }));
  t.is(await waiting, 'hold');
}

const QUIRKS: Readonly<Record<string, (t: ExecutionContext) => Promise<Quirky> | Quirky>> = {
  'returns ids as texts, on stdio': () => program('changes-ids', 'text'),
  'returns ids as fractions, on stdio': () => program('changes-ids', 'fraction'),
  'returns ids as texts, over HTTP': (t) => scripted(t, changingIds('text')),
  'returns ids as fractions, over HTTP': (t) => scripted(t, changingIds('fraction')),
  'answers notifications with an error without an id, on stdio': () => ({
    ...program('answers-notifications'),
    between: cancelBesideAnother,
  }),
  'answers notifications with an error without an id, over HTTP': (t) => scripted(t, answeringNotifications),
  'refuses the newest revision and lists another, on stdio': () => program('speaks-older-revision', '2025-03-26'),
  'refuses the newest revision with 200 and lists another': (t) => scripted(t, speakingOnly('2025-03-26', 200)),
  'refuses the newest revision with 400 and lists another': (t) => scripted(t, speakingOnly('2025-06-18', 400)),
  'talks before initialize is answered and reports progress of no call, on stdio': () => ({
    ...program('talks-out-of-turn'),
    between: hasHeardInOrder,
  }),
  'talks before initialize is answered and reports progress of no call, over HTTP': async (t) => ({
    ...(await scripted(t, talkingOutOfTurn)),
    between: hasHeardInOrder,
  }),
  'ends the responses to calls empty and answers on the event stream': (t) => scripted(t, answeringOnStream()),
  ...Object.fromEntries(
    ([307, 308] as const).map((status) => [
      `redirects every request with ${status}`,
      async (t: ExecutionContext) => {
        const server = await over(t, listenQuirky(redirecting(status)));
        const real = () => server.received.filter(({ path }) => path === '/real').map(({ method }) => method);
        return {
          target: [server.url.href],
          after: () => t.deepEqual(new Set(real()), new Set(['POST', 'GET', 'DELETE'])),
        };
      },
    ]),
  ),
  'redirects what is no POST in a circle': async (t) => {
    const server = await over(t, listenQuirky(circling('others')));
    const others = () => server.received.filter(({ method }) => method !== 'POST').length;
    // Five redirects for the stream and as many for the end of each session, of which each bridge has a few.
    return { target: [server.url.href], after: () => t.true(others() < 100, `${others()} requests`) };
  },
  'cuts the POST to whose message it answers on the stream': async (t) => ({
    target: [(await over(t, listenOldQuirky({ post: cutCalls }))).url.href],
  }),
  ...Object.fromEntries(
    Object.entries(LOSSES).map(([how, refuse]) => [`tells of lost sessions by ${how}`, forgetful(refuse)]),
  ),
  ...Object.fromEntries(
    (['gzip', 'br', 'deflate'] as const).map((name) => [
      `compresses its answers with ${name}`,
      async (t: ExecutionContext): Promise<Quirky> => ({
        ...(await scripted(t, packing(name))),
        options: ['--max-message-bytes', '1m'],
        between: async (_, client) => {
          await t.throwsAsync(client.echo('bomb'), { message: /up to 1048576 are allowed|--max-message-bytes/ });
        },
      }),
    ]),
  ),
  'is silent before a handshake': () => program('silent-before-initialize'),
  'refuses with 400 to open its event stream again after a break': async (t) => {
    const { script, asked } = breakingStream();
    const changed = ({ heard }: TolerantClient) => JSON.stringify(heard).includes('tools/list_changed');
    return {
      ...(await scripted(t, script)),
      between: async (_, client) => {
        if (client.era === 'legacy') await waitFor(() => changed(client), { message: 'a notification on the stream' });
      },
      after: () => t.true([...asked.values()].some((times) => times >= 3)),
    };
  },
  ...Object.fromEntries(
    Object.entries(takings).map(([how, postToStream]) => [
      `speaks HTTP+SSE where a POST is ${how}`,
      async (t: ExecutionContext) => ({
        target: [(await over(t, listenOldQuirky({ postToStream }))).url.href],
      }),
    ]),
  ),
  'answers no pings, but calls': async (t) => {
    const server = await over(t, listenQuirky(deafToPings));
    return {
      target: [server.url.href],
      options: ['--keep-alive', '300ms'],
      between: async (_, { era }) => {
        // Over HTTP, sessions of the pool are not pinged.
        if (era === 'modern') return;
        const pings = (): number => server.order.filter((method) => method === 'ping').length;
        const before = pings();
        await waitFor(() => pings() > before + 4, { message: 'pings that stay without an answer' });
      },
      // Each of the two has kept its session.
      after: () => t.is(server.messages.filter(isLegacyHandshake).length, 2),
    };
  },
};

/** Handshakes of legacy clients pass as they are. */
function isLegacyHandshake({ message: { method, params } }: AskedMessage): boolean {
  return method === 'initialize' && JSON.stringify(params?.clientInfo).includes('"legacy"');
}

function cutCalls(response: Parameters<typeof answerJson>[0], { method }: { readonly method?: string }): void {
  if (method === 'tools/call') response.destroy();
  else response.writeHead(202).end();
}

/** The answer to its handshake came first, and progress only of its own calls. */
function hasHeardInOrder(t: ExecutionContext, { era, heard, faults }: TolerantClient): void {
  if (era === 'legacy') t.true('result' in (heard[0] ?? {}), JSON.stringify(heard[0]));
  t.notRegex(JSON.stringify(heard), /nobody-gave-this/);
  t.deepEqual(
    faults.map(({ message }) => message),
    [],
  );
}

const execute = promisify(execFile);

/** What `probe` says, and its exit code. */
async function probe(target: readonly string[]): Promise<{ readonly verdict: string; readonly problems: string[] }> {
  const [command, bin] = BRIDGE_COMMAND;
  const { stdout } = await execute(command, [bin, 'probe', '--json', ...target]);
  return JSON.parse(stdout);
}

for (const [quirk, start] of Object.entries(QUIRKS)) {
  // Each starts half a dozen processes.
  test.serial(`clients of both eras use a server that ${quirk}`, async (t) => {
    const { target, options = [], between, after } = await start(t);
    await throughEachVerb(t, [...options, ...target], async (client) => {
      t.deepEqual(await client.tools(), ['echo'], `${client.era} client of ${client.verb}`);
      t.is(await client.echo('one'), 'one', `${client.era} client of ${client.verb}`);
      await between?.(t, client);
      t.is(await client.echo('two'), 'two', `${client.era} client of ${client.verb}`);
    });
    after?.(t);
    const { verdict, problems } = await probe(target);
    t.true(verdict === 'usable' || verdict === 'partly-usable', problems.join('\n'));
  });
}

test.serial('a server that redirects in a circle is given up, and clients are told so', async (t) => {
  const server = await over(t, listenQuirky(circling('all')));
  const using = throughEachVerb(t, [server.url.href], async (client) => {
    await client.tools();
  });
  await t.throwsAsync(using, { message: /redirect/i });
  t.true(server.received.length < 200, `${server.received.length} requests`);
});
