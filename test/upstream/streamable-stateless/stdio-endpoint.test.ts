/** A modern client on a pipe of a modern server over HTTP: only the transport is another. */

import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import test, { type ExecutionContext } from 'ava';
import { StdioEndpoint } from '../../../src/downstream/stdio/endpoint.ts';
import { BridgeError } from '../../../src/errors.ts';
import { forEveryCaller } from '../../../src/relay/dialer-adapters.ts';
import { SessionRegistry } from '../../../src/relay/sessions/session-registry.ts';
import { subscriptionOf } from '../../contract/modern-client.ts';
import type { Message } from '../../contract/relayed-client.ts';
import { modern } from '../../downstream/stdio-endpoint.ts';
import { event, listenScripted, notification, openStream, type Script } from '../../fixtures/http-servers/scripted.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { createCalls } from '../../support/calls.ts';
import { waitFor } from '../../support/wait-for.ts';
import { dialStateless } from '../remote-dialers.ts';
import { askedFor } from './connect-modern.ts';

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

async function openPipe(t: ExecutionContext, script: Script) {
  const server = await listenScripted(script);
  const dialer = dialStateless(server.url);
  const { deps } = createTestDeps();
  const limits = {
    maxSessions: 1,
    sessionTimeoutMs: 60_000,
    calls: createCalls(deps.clock),
    requestTimeoutMs: 0,
  };
  const sessions = new SessionRegistry({ dialers: forEveryCaller(dialer), deps, ...limits });
  const [input, output] = [new PassThrough(), new PassThrough()];
  new StdioEndpoint({ input, output, sessions, deps, maxMessageBytes: 1024 * 1024, maxJsonDepth: 1000 });
  t.teardown(async () => {
    sessions.close(new BridgeError('ERR_SESSION_CLOSED', 'the test is over'));
    await dialer.close();
    await server.close();
  });
  const lines: string[] = [];
  output.on('data', (chunk: Buffer) => void lines.push(...chunk.toString().split('\n').filter(Boolean)));
  const say = (message: object | string): void => {
    input.write(`${typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  };
  const nextLine = (): Promise<string> => waitFor(() => lines.shift());
  const next = async (): Promise<Message> => JSON.parse(await nextLine());
  return { server, say, nextLine, next };
}

test('what a server over HTTP asks for and its state pass to a pipe byte for byte, both ways', async (t) => {
  const state = '"\\u0061\\/ opaque é \\ud83d\\ude00"';
  const result = `{"resultType":"input_required", "inputRequests":{"who":{"method":"roots/list"}},"requestState" : ${state}}`;
  const { server, say, nextLine } = await openPipe(t, {
    'prompts/get': ({ message }, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(`{"jsonrpc":"2.0","id":${message.id},"result":${result}}`);
    },
  });
  const request = modern('mine', 'prompts/get', { name: 'ask' });
  say(request);
  t.is(await nextLine(), `{"jsonrpc":"2.0","id":"mine","result":${result}}`);
  const retry = JSON.stringify({ jsonrpc: '2.0', ...request }).replace(
    '"name":"ask"',
    `"name":"ask","inputResponses":{"who":{"roots":[ ]}},"requestState":${state}`,
  );
  say(retry);
  await nextLine();
  const [first, second] = askedFor(server, 'prompts/get');
  t.is(second?.body, retry.replace('"id":"mine"', `"id":${second?.message.id}`));
  t.not(first?.message.id, second?.message.id);
});

test('a call that is canceled on a pipe is withdrawn by closing its connection', async (t) => {
  let waiting: ServerResponse | undefined;
  const { server, say } = await openPipe(t, {
    'prompts/get': (_, response) => {
      waiting = response;
    },
  });
  say(modern('mine', 'prompts/get', { name: 'x' }));
  await waitFor(() => waiting !== undefined);
  say({ method: 'notifications/cancelled', params: { requestId: 'mine' } });
  await waitFor(() => waiting?.destroyed);
  t.deepEqual(server.order, ['prompts/get']);
});

test('a subscription on a pipe is told of under the id the client gave it', async (t) => {
  const ids: unknown[] = [];
  const { say, next } = await openPipe(t, {
    'subscriptions/listen': ({ message: { id, params } }, response) => {
      ids.push(id);
      openStream(response);
      const _meta = { [SUBSCRIPTION_ID]: id };
      const { notifications } = params ?? {};
      response.write(event(notification('notifications/subscriptions/acknowledged', { notifications, _meta })));
      response.write(event(notification('notifications/tools/list_changed', { _meta })));
    },
  });
  for (const id of ['one', 1]) {
    say(modern(id, 'subscriptions/listen', { notifications: { toolsListChanged: true } }));
    const told = [await next(), await next()];
    t.deepEqual(
      told.map((message) => [message.method, subscriptionOf(message)]),
      [
        ['notifications/subscriptions/acknowledged', id],
        ['notifications/tools/list_changed', id],
      ],
    );
  }
  t.false(ids.includes('one'));
  t.is(new Set(ids).size, 2);
});
