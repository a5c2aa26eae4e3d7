/** Callers whose own tokens become tokens of a remote server, by the built program. */

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import test, { type ExecutionContext } from 'ava';
import { decodeJwt } from 'jose';
import { WebSocket } from 'ws';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { answerResult, listenScripted } from '../fixtures/http-servers/scripted.ts';
import { serveModern } from '../fixtures/modern-server/http.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { type ExchangeWorld, startExchangeWorld } from '../support/exchange-world.ts';
import { initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { forwardTo } from '../support/login-world.ts';
import { connectClient, connectStreamable, type SdkClient } from '../support/sdk-client.ts';
import { startHttpSse, startStreamable } from '../support/sdk-servers.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebSocketServer, transportOver } from '../support/websocket-server.ts';

async function start(t: ExecutionContext, world: ExchangeWorld, args: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge([...world.args, '--log-level', 'trace', ...args], { env: world.env });
  t.teardown(() => bridge.stop());
  return bridge;
}

/** The upstream servers, by the era that they are of. */
const SERVERS = {
  legacy: async (t: ExecutionContext): Promise<URL> => {
    const server = await startStreamable();
    t.teardown(() => server.close());
    return server.url;
  },
  modern: async (t: ExecutionContext): Promise<URL> => {
    const server = await serveModern();
    t.teardown(() => server.close());
    return server.url;
  },
} as const;

interface Caller {
  call(): Promise<unknown>;
  close(): Promise<void>;
}

/** Clients of the official SDKs. */
const CLIENTS = {
  legacy: async (url: URL, headers: Record<string, string>): Promise<Caller> => {
    const { client, close }: SdkClient = await connectStreamable(url, { headers });
    return { call: () => client.callTool({ name: 'echo', arguments: { value: 'x' } }), close };
  },
  modern: async (url: URL, headers: Record<string, string>): Promise<Caller> => {
    const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    return { call: () => client.callTool({ name: 'echo', arguments: { value: 'x' } }), close: () => client.close() };
  },
} as const;

/** Sessions of a server that it was shown two callers in. */
function mixedSessions({ seen }: ExchangeWorld): readonly unknown[] {
  const subjects = new Map<unknown, unknown>();
  return seen.flatMap(({ session, subject, client }) => {
    const caller = JSON.stringify([subject, client]);
    if (session === undefined || (subjects.get(session) ?? caller) === caller) {
      subjects.set(session, caller);
      return [];
    }
    return [session];
  });
}

type Era = keyof typeof CLIENTS;
const ERAS = Object.keys(CLIENTS) as readonly Era[];

for (const clientEra of ERAS) {
  for (const serverEra of ERAS) {
    test.serial(
      `each caller of the ${clientEra} era shows a server of the ${serverEra} era a token of its own`,
      async (t) => {
        const world = await startExchangeWorld(t);
        const url = await world.protect(t, await SERVERS[serverEra](t));
        const bridge = await start(t, world, [url.href]);
        const names = ['ada', 'bob'];
        const callers = await Promise.all(
          names.map(async (name) => CLIENTS[clientEra](bridge.url, await world.headersOf(name))),
        );
        await Promise.all([...callers, ...callers].map((caller) => caller.call()));
        await Promise.all(callers.map((caller) => caller.close()));
        await bridge.stop();
        t.true(world.seen.length >= 4);
        t.deepEqual([...new Set(world.seen.map(({ status }) => status))], ['taken']);
        t.deepEqual([...new Set(world.seen.map(({ subject }) => subject))].sort(), names);
        t.is(world.asked.length, 2, 'each token is exchanged once');
        t.deepEqual(mixedSessions(world), []);
        if (serverEra === 'legacy') {
          t.deepEqual(
            world.seen
              .filter(({ method }) => method === 'DELETE')
              .map(({ subject }) => subject)
              .sort(),
            names,
          );
        }
        for (const { parameters } of world.asked) {
          t.is(parameters.get('grant_type'), 'urn:ietf:params:oauth:grant-type:token-exchange');
          t.is(parameters.get('audience'), url.href);
          t.deepEqual(parameters.getAll('resource'), [url.href]);
        }
        const secrets = [...world.seen.map(({ token }) => token), world.env.MCP_PORTAGE_OAUTH_CLIENT_SECRET];
        const log = JSON.stringify(bridge.logs);
        t.false(secrets.some((secret) => log.includes(secret)));
        t.false(world.asked.some(({ parameters }) => log.includes(parameters.get('subject_token') ?? '')));
      },
    );
  }
}

test.serial('twenty callers at once get answers that are their own, by one exchange for each', async (t) => {
  const world = await startExchangeWorld(t);
  const server = await listenScripted(
    {
      'server/discover': (_, response) => void response.writeHead(404).end(),
      'tools/call': (asked, response) =>
        answerResult(asked, response, { content: [{ type: 'text', text: who(asked) }] }),
    },
    { capabilities: { tools: {} } },
  );
  t.teardown(() => server.close());
  const url = await world.protect(t, server.url);
  const bridge = await start(t, world, [url.href]);
  const names = Array.from({ length: 20 }, (_, index) => `caller-${index}`);
  const told = await Promise.all(
    names.map(async (name, index) => {
      const caller = await CLIENTS[index % 2 === 0 ? 'legacy' : 'modern'](bridge.url, await world.headersOf(name));
      const answers = await Promise.all([caller.call(), caller.call()]);
      await caller.close();
      return answers.map((answer) => JSON.stringify(answer).match(/caller-\d+/)?.[0]);
    }),
  );
  t.deepEqual(
    told,
    names.map((name) => [name, name]),
  );
  t.is(world.asked.length, 20);
  t.is(world.atOnce.ofOne, 1);
  t.deepEqual(mixedSessions(world), []);
});

function who({ headers }: { readonly headers: Readonly<Record<string, unknown>> }): string {
  return String(decodeJwt(String(headers.authorization).replace('Bearer ', '')).sub);
}

test.serial('one subject with two clients is two callers, neither of whom finds what the other opened', async (t) => {
  const world = await startExchangeWorld(t);
  const url = await world.protect(t, await SERVERS.legacy(t));
  const bridge = await start(t, world, [url.href]);
  const [one, other] = [await world.headersOf('ada'), await world.headersOf('ada', { client_id: 'other' })];
  const { client, transport, close } = await connectStreamable(bridge.url, { headers: one });
  t.teardown(close);
  await client.callTool({ name: 'echo', arguments: { value: 'x' } });
  const session = { ...POST_HEADERS, 'Mcp-Session-Id': transport.sessionId ?? '' };
  const end = async (headers: Record<string, string>) =>
    (await fetch(bridge.url, { method: 'DELETE', headers: { ...session, ...headers } })).status;
  t.is(await end(other), 404);
  const renewed = await world.headersOf('ada', { iat: world.startedAt + 1 });
  t.is(await end(renewed), 204, 'a renewed token is that of the same caller');
  for (const era of ERAS) {
    for (const headers of [one, other]) {
      const caller = await CLIENTS[era](bridge.url, headers);
      await caller.call();
      await caller.close();
    }
  }
  await bridge.stop();
  t.deepEqual(mixedSessions(world), []);
  t.deepEqual([...new Set(world.seen.map(({ client: shown }) => shown))].sort(), ['app', 'other']);
});

test.serial('a caller without a token of the issuer is refused with the way out, and costs no exchange', async (t) => {
  const world = await startExchangeWorld(t);
  const url = await world.protect(t, await SERVERS.legacy(t));
  const token = 'a-long-token-of-the-operator';
  const args = [...world.args, '--auth-token', 'operator=env:OPERATOR', url.href];
  const bridge = await startBridge(args, { env: { ...world.env, OPERATOR: token } });
  t.teardown(() => bridge.stop());
  const headers = { ...POST_HEADERS, Authorization: `Bearer ${token}` };
  const answer = await fetch(bridge.url, { method: 'POST', headers, body: JSON.stringify(initialize()) });
  t.is(answer.status, 403);
  t.regex(await answer.text(), /not one of the issuer/);
  t.is((await fetch(bridge.url, { method: 'POST', headers: POST_HEADERS, body: '{}' })).status, 401);
  t.is(world.asked.length + world.seen.length, 0);
});

for (const clientEra of ERAS) {
  test.serial(
    `a ${clientEra} client is told why its token is not exchanged, and others are served meanwhile`,
    async (t) => {
      const world = await startExchangeWorld(t);
      const url = await world.protect(t, await SERVERS.legacy(t));
      const bridge = await start(t, world, [url.href]);
      const refused = { status: 400, body: { error: 'invalid_grant', error_description: 'ada has been locked' } };
      world.answer = (usual, { caller }) => (caller.sub === 'ada' ? refused : { status: 200, body: usual });
      const [ada, bob] = [await world.headersOf('ada'), await world.headersOf('bob')];
      const failing = CALLS[clientEra](bridge, ada);
      const served = await CLIENTS[clientEra](bridge.url, bob);
      t.teardown(() => served.close());
      t.truthy(await served.call());
      t.regex(await (await failing).text(), /does not exchange the token of this caller .*ada has been locked/);
      t.is(new Set(world.seen.map(({ subject }) => subject)).size, 1);
      const ready = await fetch(new URL('/readyz', bridge.url));
      t.is(ready.status, 200, 'the server is as ready as before');
    },
  );

  test.serial(
    `a token that the server of a ${clientEra} client takes no more is exchanged anew, and calls wait for a lost server`,
    async (t) => {
      const world = await startExchangeWorld(t);
      const url = await world.protect(t, await SERVERS.legacy(t));
      const bridge = await start(t, world, [url.href]);
      const caller = await CLIENTS[clientEra](bridge.url, await world.headersOf('ada'));
      t.teardown(() => caller.close());
      await caller.call();
      for (const { token } of world.seen) world.revoked.add(token);
      await world.stop();
      const waiting = caller.call();
      await waitFor(() => bridge.logs.some(({ msg }) => msg?.includes('is tried again') === true));
      await world.restart();
      t.truthy(await waiting);
      t.is(world.asked.length, 2);
      for (const { token } of world.seen) world.revoked.add(token);
      world.answer = (usual) => {
        world.revoked.add(String(usual.access_token));
        return { status: 200, body: usual };
      };
      const error = await t.throwsAsync(caller.call());
      t.regex(error?.message ?? '', /does not accept the token that .* gave in exchange for that of this caller/);
      t.is(world.asked.length, 2, 'not anew so soon after the last time');
    },
  );
}

/** What clients of either era begin with. */
const CALLS = {
  legacy: ({ url }: Bridge, headers: Record<string, string>) =>
    fetch(url, { method: 'POST', headers: { ...POST_HEADERS, ...headers }, body: JSON.stringify(initialize()) }),
  modern: ({ url }: Bridge, headers: Record<string, string>) =>
    postModern({ port: Number(url.port) }, modern(1, 'tools/call', { name: 'echo', arguments: {} }), headers),
} as const;

test.serial('a stream of the server that is opened again shows the token of that time', async (t) => {
  const world = await startExchangeWorld(t);
  world.lifeS = 2;
  const posts = forwardTo(await SERVERS.legacy(t));
  const streams: ServerResponse[] = [];
  const url = await world.protect(t, (request, response) => {
    if (request.method !== 'GET') return posts(request, response);
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': open\n\n');
    streams.push(response);
  });
  const bridge = await start(t, world, [url.href]);
  const caller = await CLIENTS.legacy(bridge.url, await world.headersOf('ada'));
  t.teardown(() => caller.close());
  const shown = () => world.seen.filter(({ method }) => method === 'GET');
  await waitFor(() => streams.length === 1);
  const expiresMs = 1000 * Number(decodeJwt(shown()[0]?.token ?? '').exp);
  await waitFor(() => Date.now() > expiresMs);
  streams[0]?.end();
  await waitFor(() => streams.length === 2);
  t.deepEqual(
    shown().map(({ subject, status }) => [subject, status]),
    [
      ['ada', 'taken'],
      ['ada', 'taken'],
    ],
  );
  t.not(shown()[0]?.token, shown()[1]?.token);
});

test.serial('over HTTP+SSE and WebSocket callers show tokens of their own, on either side', async (t) => {
  const world = await startExchangeWorld(t);
  const [sse, socket] = [
    await startHttpSse(),
    await startWebSocketServer({
      refuse: (request) => (world.admitsAtOnce(request) ? undefined : { status: 401 }),
    }),
  ];
  t.teardown(() => Promise.all([sse.close(), socket.stop()]));
  for (const url of [await world.protect(t, sse.url), socket.url]) {
    const bridge = await start(t, world, [url.href]);
    for (const name of ['ada', 'bob']) {
      const headers = await world.headersOf(name);
      const legacy = await CLIENTS.legacy(bridge.url, headers);
      const modern = await CLIENTS.modern(bridge.url, headers);
      const wsUrl = new URL('/ws', bridge.url.href.replace('http', 'ws'));
      const client = new WebSocket(wsUrl, ['mcp'], { headers });
      await once(client, 'open');
      const overSocket = await connectClient(transportOver(client));
      for (const caller of [legacy, modern]) t.truthy(await caller.call());
      t.truthy(await overSocket.client.callTool({ name: 'echo', arguments: { value: 'x' } }));
      await Promise.all([legacy.close(), modern.close(), overSocket.close()]);
    }
    await bridge.stop();
    t.deepEqual([...new Set(world.seen.map(({ subject }) => subject))].sort(), ['ada', 'bob']);
    t.true(world.seen.every(({ status }) => status === 'taken'));
    world.seen.length = 0;
    t.is(world.asked.splice(0).length, 2);
  }
});
