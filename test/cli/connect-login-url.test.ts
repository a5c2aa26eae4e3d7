/** A client that can show URLs is shown where to log in with a code. `npm test` builds the program first. */
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import test, { type ExecutionContext } from 'ava';
import { serveSdk } from '../fixtures/http-servers/sdk.ts';
import { temporaryFolder } from '../http/login/logged-in.ts';
import { forwardTo, type LoginWorld, startLoginWorld } from '../support/login-world.ts';
import { connectClient } from '../support/sdk-client.ts';
import { startStreamable } from '../support/sdk-servers.ts';
import { waitFor } from '../support/wait-for.ts';
import { EXECUTABLE } from './stdio-program.ts';

type Era = 'legacy' | 'modern';
type Action = 'accept' | 'decline' | 'cancel';

/** An official server behind one that wants a login with a code. */
async function protect(t: ExecutionContext, era: Era): Promise<LoginWorld> {
  const server = await (era === 'legacy' ? startStreamable() : serveSdk('modern'));
  t.teardown(() => server.close());
  const world = await startLoginWorld(t);
  world.serve = forwardTo(server.url);
  world.metadata = { device_authorization_endpoint: `${world.issuer}/device` };
  world.answerDevice = () => ({
    status: 200,
    body: {
      device_code: 'device-1',
      user_code: 'WDJB-MJHT',
      verification_uri: `${world.issuer}/enter`,
      expires_in: 600,
      interval: 1,
    },
  });
  return world;
}

interface Connected {
  /** Resolves with the text of the answer; rejects with the error of the call. */
  call(): Promise<string>;
  readonly asked: readonly Record<string, unknown>[];
  /** How often the client was told that an elicitation is complete. */
  completed(): number;
}

async function connect(
  t: ExecutionContext,
  world: LoginWorld,
  era: Era,
  decide: () => Action | Promise<Action>,
): Promise<Connected> {
  const args = [EXECUTABLE, 'connect', '--state-dir', temporaryFolder(t), '--oauth-grant', 'device-code', world.server];
  const command = { command: process.execPath, args, env: { PATH: process.env.PATH ?? '' }, stderr: 'pipe' } as const;
  const asked: Record<string, unknown>[] = [];
  const capabilities = { elicitation: { url: {} } };
  const elicit = async ({ params }: { params: object }): Promise<{ action: Action }> => {
    asked.push({ ...params });
    return { action: await decide() };
  };
  if (era === 'legacy') {
    const { client, notifications, close } = await connectClient(new StdioClientTransport(command), {
      capabilities,
      handlers: (own) => own.setRequestHandler(ElicitRequestSchema, elicit),
    });
    t.teardown(close);
    return {
      asked,
      completed: () => notifications.filter(({ method }) => method === 'notifications/elicitation/complete').length,
      call: async () => textOf(await client.callTool({ name: 'echo', arguments: { value: 'v', text: 'v' } })),
    };
  }
  const client = new ModernClient(
    { name: 'modern', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', elicit as never);
  t.teardown(() => client.close());
  await client.connect(new ModernStdio(command));
  return {
    asked,
    completed: () => 0,
    call: async () => textOf(await client.callTool({ name: 'echo', arguments: { value: 'v', text: 'v' } })),
  };
}

function textOf(result: object): string {
  return 'content' in result ? ((result.content as readonly { text: string }[])[0]?.text ?? '') : '';
}

const PENDING = { status: 400, body: { error: 'authorization_pending' } };

/** From now on the login is gone, and nobody enters the next code. */
function logOut(world: LoginWorld): void {
  world.tokens.clear();
  world.refreshTokens.clear();
  // One of them is what a refresh is told.
  world.refuseTokens = [
    { status: 400, body: { error: 'invalid_grant' } },
    ...Array.from({ length: 500 }, () => PENDING),
  ];
}

for (const client of ['legacy', 'modern'] as const) {
  for (const server of ['legacy', 'modern'] as const) {
    test(`a ${client} client of a ${server} server shows address and code before the login, and its call goes on afterward`, async (t) => {
      const world = await protect(t, server);
      const enterCode = (): Action => {
        world.refuseTokens = [];
        return 'accept';
      };
      const { call, asked, completed } = await connect(t, world, client, enterCode);
      t.is(await call(), 'v');
      t.deepEqual(asked, [], 'nothing is asked before the handshake is over');
      logOut(world);
      const before = world.count('/device');
      t.is(await call(), 'v');
      t.is(asked.length, 1);
      t.like(asked[0], { mode: 'url', url: `${world.issuer}/enter` });
      t.regex(String(asked[0]?.message), /To log in at http:\S+\/mcp, open this page and enter the code WDJB-MJHT/);
      t.is(world.count('/device'), before + 1, 'one code');
      if (client === 'legacy' && server === 'legacy') {
        await waitFor(() => completed() === 1 || undefined, { message: 'the end of the elicitation' });
      }
    });

    test(`a user of a ${client} client of a ${server} server who declines gets the code in the error at once, and may still log in`, async (t) => {
      const world = await protect(t, server);
      const { call, asked } = await connect(t, world, client, () => 'decline');
      t.is(await call(), 'v');
      logOut(world);
      const error = await t.throwsAsync(call());
      t.regex(error?.message ?? '', /enter the code WDJB-MJHT\. Then try again\./);
      t.is(asked.length, 1);
      world.refuseTokens = [];
      await waitFor(() => world.tokens.size > 0 || undefined, { message: 'the login' });
      t.is(await call(), 'v');
      t.is(world.count('/device'), 2, 'the login went on without the call');
    });
  }
}

test('a code that would drive a terminal reaches neither the log nor the client', async (t) => {
  const world = await protect(t, 'legacy');
  const { answerDevice } = world;
  world.answerDevice = (given) => {
    const { status, body } = answerDevice(given);
    return { status, body: { ...(body as object), user_code: 'AB\u001b[2J\u202eCD', interval: 0 } };
  };
  const args = [EXECUTABLE, 'connect', '--state-dir', temporaryFolder(t), '--oauth-grant', 'device-code', world.server];
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: 'pipe' });
  let log = '';
  transport.stderr?.on('data', (chunk) => {
    log += chunk;
  });
  const error = await t.throwsAsync(connectClient(transport));
  t.regex(error?.message ?? '', /gives a user_code that is missing, longer than 64 characters or not printable/);
  t.false(`${log}${error?.message}`.includes('\u001b'));
  t.false(log.includes('CD'));
  t.is(world.count('/token'), 0);
});
