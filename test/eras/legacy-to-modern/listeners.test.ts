import { PassThrough } from 'node:stream';
import test, { type ExecutionContext } from 'ava';
import { StdioEndpoint } from '../../../src/downstream/stdio/endpoint.ts';
import { BridgeError } from '../../../src/errors.ts';
import { forEveryCaller } from '../../../src/relay/dialer-adapters.ts';
import type { SessionDialer } from '../../../src/relay/ports.ts';
import { SessionRegistry } from '../../../src/relay/sessions/session-registry.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { createCalls } from '../../support/calls.ts';
import { asUpstream } from '../../support/dialers.ts';
import { initialize, notification, openHttpSession, openSseStream } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { Message } from './legacy-session.ts';
import { dialModernHttp, dialModernStdio, startTranslatedHarness, translate } from './modern-servers.ts';

/** One client after its handshake. */
interface Connected {
  readonly initialized: Message;
  request(method: string, params: object): Promise<Message>;
}

type Connect = (t: ExecutionContext, dialer: SessionDialer) => Promise<(revision: string) => Promise<Connected>>;

const over: Readonly<Record<string, Connect>> = {
  'Streamable HTTP': async (t, dialer) => {
    const { port } = await startTranslatedHarness(t, () => dialer);
    return async (revision) => {
      const session = await openHttpSession(port, initialize(revision));
      t.is((await session.post(notification('notifications/initialized'))).status, 202);
      const request = async (method: string, params: object): Promise<Message> =>
        (await session.post({ jsonrpc: '2.0', id: 1, method, params })).json();
      return { initialized: JSON.parse(session.initialized), request };
    };
  },
  'HTTP+SSE': async (t, dialer) => {
    const { port } = await startTranslatedHarness(t, () => dialer);
    return async (revision) => {
      const { post, stream } = await openSseStream(port);
      const ask = async (message: object): Promise<Message> => {
        t.is((await post(message)).status, 202);
        return stream.message<Message>();
      };
      const initialized = await ask(initialize(revision));
      await post(notification('notifications/initialized'));
      return { initialized, request: (method, params) => ask({ jsonrpc: '2.0', id: 1, method, params }) };
    };
  },
  stdio: async (t, dialer) => {
    const upstream = translate(t, dialer);
    return async (revision) => {
      const { ask, say } = openStdio(t, upstream);
      const initialized = await ask(initialize(revision));
      say(notification('notifications/initialized'));
      return { initialized, request: (method, params) => ask({ jsonrpc: '2.0', id: 1, method, params }) };
    };
  },
};

function openStdio(t: ExecutionContext, dialer: SessionDialer) {
  const { deps } = createTestDeps();
  const limits = {
    maxSessions: 1,
    sessionTimeoutMs: 60_000,
    calls: createCalls(deps.clock),
    requestTimeoutMs: 0,
  };
  const sessions = new SessionRegistry({ dialers: forEveryCaller(asUpstream(dialer)), deps, ...limits });
  const [input, output] = [new PassThrough(), new PassThrough()];
  new StdioEndpoint({ input, output, sessions, deps, maxMessageBytes: 1024 * 1024, maxJsonDepth: 1000 });
  t.teardown(() => sessions.close(new BridgeError('ERR_SESSION_CLOSED', 'the test is over')));
  let heard = '';
  output.on('data', (chunk: Buffer) => {
    heard += chunk;
  });
  const say = (message: object): void => void input.write(`${JSON.stringify(message)}\n`);
  const ask = async (message: object): Promise<Message> => {
    heard = '';
    say(message);
    return JSON.parse(await waitFor(() => heard.endsWith('\n') && heard));
  };
  return { say, ask };
}

for (const [server, dial] of [
  ['over HTTP', dialModernHttp],
  ['on stdio', dialModernStdio],
] as const) {
  for (const [harness, connect] of Object.entries(over)) {
    test(`clients of every legacy revision over ${harness} are served by a modern server ${server}`, async (t) => {
      const open = await connect(t, await dial(t));
      for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
        const { initialized, request } = await open(revision);
        t.is(initialized.result?.protocolVersion, revision);
        t.deepEqual(initialized.result?.serverInfo, { name: 'modern', version: '1.0.0' });
        const { tools } = (await request('tools/list', {})).result;
        t.true(tools.some(({ name }: { name: string }) => name === 'echo'));
        const called = await request('tools/call', { name: 'echo', arguments: { text: revision } });
        t.deepEqual(called, {
          jsonrpc: '2.0',
          id: 1,
          result: { content: [{ type: 'text', text: revision }] },
        } as never);
      }
    });
  }
}
