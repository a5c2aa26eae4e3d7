import { PassThrough, type Writable } from 'node:stream';
import type { ExecutionContext } from 'ava';
import { StdioEndpoint } from '../../src/downstream/stdio/endpoint.ts';
import { forEveryCaller } from '../../src/relay/dialer-adapters.ts';
import type { CallContext, ServerListener, UpstreamLink } from '../../src/relay/ports.ts';
import { SessionRegistry } from '../../src/relay/sessions/session-registry.ts';
import { collectLog } from '../process/collected-log.ts';
import { createCalls } from '../support/calls.ts';
import { createFakeDeps } from '../support/fake-peers.ts';
import { FakeServer } from '../support/fake-server.ts';

export interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Keeps what each of its connections was asked for. */
export class ContextServer extends FakeServer {
  readonly contexts: (CallContext | undefined)[] = [];

  override dial(listener: ServerListener): UpstreamLink {
    const link = super.dial(listener);
    this.contexts.push(undefined);
    return link;
  }

  override dialCalls(listener: ServerListener, context: CallContext): UpstreamLink {
    const link = super.dialCalls(listener, context);
    this.contexts.push(context);
    return link;
  }
}

export interface EndpointOptions {
  readonly maxMessageBytes?: number;
  readonly maxSentBytes?: number;
  readonly output?: Writable;
}

/** A stdio endpoint with its client's ends of the pipes, before a fake server. */
export function openEndpoint(
  t: ExecutionContext,
  { maxMessageBytes = 1024 * 1024, maxSentBytes, output = new PassThrough() }: EndpointOptions = {},
) {
  const { log, entries } = collectLog();
  const deps = { ...createFakeDeps(), log };
  const server = new ContextServer();
  const sessions = new SessionRegistry({
    dialers: forEveryCaller(server),
    deps,
    maxSessions: 2,
    sessionTimeoutMs: 1000,
    calls: createCalls(deps.clock),
    requestTimeoutMs: 0,
  });
  const input = new PassThrough();
  const endpoint = new StdioEndpoint({
    input,
    output,
    sessions,
    deps,
    maxMessageBytes,
    maxSentBytes,
    maxJsonDepth: 1000,
  });
  const lines: string[] = [];
  let rest = '';
  const wakers: (() => void)[] = [];
  output.on('data', (chunk: Buffer) => {
    const parts = (rest + chunk.toString()).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
    for (const wake of wakers.splice(0)) wake();
  });
  /** The next line the client reads. */
  const nextLine = async (): Promise<string> => {
    while (lines.length === 0) await new Promise<void>((resolve) => wakers.push(resolve));
    return lines.shift() as string;
  };
  const next = async (): Promise<Message> => JSON.parse(await nextLine()) as Message;
  const say = (message: object | string): void => {
    input.write(`${typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  };
  const handshake = async (protocolVersion = '2025-06-18'): Promise<void> => {
    say({ id: 0, method: 'initialize', params: { protocolVersion, capabilities: {} } });
    t.like(await next(), { id: 0, result: { protocolVersion } });
    say({ method: 'notifications/initialized' });
    await server.latest.next('notifications/initialized');
  };
  return { deps, entries, server, sessions, input, output, endpoint, say, next, nextLine, handshake, lines };
}

const META = 'io.modelcontextprotocol/';

/** What a modern request says of its client. */
export const ENVELOPE = {
  [`${META}protocolVersion`]: '2026-07-28',
  [`${META}clientCapabilities`]: {},
  [`${META}clientInfo`]: { name: 'modern', version: '1' },
};

/** A request of a modern client. */
export function modern(id: string | number, method: string, params: { _meta?: object; [key: string]: unknown } = {}) {
  return { id, method, params: { ...params, _meta: { ...ENVELOPE, ...params._meta } } };
}
