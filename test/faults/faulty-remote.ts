import type { ServerResponse } from 'node:http';
import type { ExecutionContext } from 'ava';
import { listen, type TestServer } from '../fixtures/http-servers/listen.ts';
import {
  type AskedMessage,
  answerResult,
  event,
  listenScripted,
  openStream,
  type Script,
} from '../fixtures/http-servers/scripted.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import type { Era } from './fault-clients.ts';
import { type Faulty, startFaulty } from './faulty-bridge.ts';

/** One call, and the two places where its server can say something. */
export interface AskedCall {
  readonly id: unknown;
  readonly text: string;
  /** The response to its POST; nothing has been written yet. */
  readonly response: ServerResponse;
  /** The stream that its answer travels on: that of the response, or the session's. Opened by the first look. */
  readonly stream: ServerResponse;
  /** Nothing more follows on the stream, if it is this call's alone. */
  done(): void;
}

export type Answer = (call: AskedCall) => void;

export interface RemoteServer {
  readonly url: URL;
  answer: Answer;
  /** Open now. */
  readonly connections: number;
  close(): Promise<void>;
}

/** Says again what was sent. */
export const echo: Answer = (call) => {
  call.stream.write(resultOf(call, call.text));
  call.done();
};

/** As an event. */
export function resultOf({ id }: Pick<AskedCall, 'id'>, text: string): string {
  return event({ jsonrpc: '2.0', id, result: { resultType: 'complete', content: [{ type: 'text', text }] } });
}

export interface RemoteKind {
  readonly title: string;
  /** Of the clients that this is shown with. */
  readonly era: Era;
  start(): Promise<RemoteServer>;
}

const discovery = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  ttlMs: 0,
  cacheScope: 'public',
};

export const REMOTE_KINDS = {
  streamable: { title: 'Streamable HTTP', era: 'legacy', start: () => startPosts({}) },
  modern: {
    title: 'modern Streamable HTTP',
    era: 'modern',
    start: () => startPosts({ 'server/discover': (asked, response) => answerResult(asked, response, discovery) }),
  },
  httpSse: { title: 'HTTP+SSE', era: 'legacy', start: startSse },
} as const satisfies Record<string, RemoteKind>;

export type RemoteName = keyof typeof REMOTE_KINDS;
export const REMOTE_NAMES = Object.keys(REMOTE_KINDS) as readonly RemoteName[];

const textOf = ({ message }: Pick<AskedMessage, 'message'>): string =>
  String((message.params?.arguments as { text?: string } | undefined)?.text);

function remoteOf({ url, open, close }: TestServer): RemoteServer {
  return {
    url,
    answer: echo,
    get connections() {
      return open.size;
    },
    close,
  };
}

/** A notification that a remote server never says it has taken. */
export const UNTAKEN = 'notifications/untaken';

/** An answer is what its POST responds. */
async function startPosts(script: Script): Promise<RemoteServer> {
  const server = await listenScripted({
    ...script,
    [UNTAKEN]: () => undefined,
    'tools/call': (asked, response) =>
      remote.answer({
        id: asked.message.id,
        text: textOf(asked),
        response,
        get stream() {
          return response.headersSent ? response : openStream(response);
        },
        done: () => void response.end(),
      }),
  });
  const remote = remoteOf(server);
  return remote;
}

/** Idle connections would be counted among what has stayed of a fault. */
const NOT_KEPT = { Connection: 'close' };

/** All answers come on the stream of the session. */
async function startSse(): Promise<RemoteServer> {
  const streams: ServerResponse[] = [];
  const server = await listen(
    (asked, response) => {
      if (asked.method === 'GET') {
        streams.push(openStream(response));
        return void response.write(`event: endpoint\ndata: /messages?session=${streams.length}\n\n`);
      }
      const stream = streams[Number(/session=(\d+)/.exec(asked.path)?.[1]) - 1];
      if (stream === undefined) return void response.writeHead(405).end();
      const message = JSON.parse(asked.body);
      if (message.method === 'tools/call') {
        return remote.answer({
          id: message.id,
          text: textOf({ message }),
          response,
          get stream() {
            if (!response.headersSent) response.writeHead(202, NOT_KEPT).end();
            return stream;
          },
          done: () => undefined,
        });
      }
      response.writeHead(202, NOT_KEPT).end();
      const result = message.method === 'initialize' ? { protocolVersion: '2024-11-05', capabilities: {} } : {};
      if (message.id !== undefined) stream.write(event({ jsonrpc: '2.0', id: message.id, result }));
    },
    { path: '/sse' },
  );
  const remote = remoteOf(server);
  return remote;
}

export interface Remote extends Faulty {
  readonly server: RemoteServer;
  readonly network: FaultProxy;
}

/** The bridge before a server at a URL that echoes, with a network in between. */
export async function startRemote(
  t: ExecutionContext,
  name: RemoteName,
  options: readonly string[] = [],
): Promise<Remote> {
  const { start, era }: RemoteKind = REMOTE_KINDS[name];
  const server = await start();
  const network = await startFaultProxy(server.url);
  t.teardown(async () => {
    await network.close();
    await server.close();
  });
  return { server, network, ...(await startFaulty(t, { options, era, target: [network.through(server.url).href] })) };
}
