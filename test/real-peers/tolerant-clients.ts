/** Official clients of both eras before the built program, as a legacy or modern client sees a server through it. */
import {
  StreamableHTTPClientTransport as ModernHttpTransport,
  Client as ModernSdkClient,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdioTransport } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { ExecutionContext } from 'ava';
import { BRIDGE_COMMAND, type Bridge, startBridge } from '../support/bridge.ts';
import { textOf } from './text-of.ts';

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: () => void;
}

/** A client that has connected. */
export interface TolerantClient {
  readonly era: 'legacy' | 'modern';
  readonly verb: 'serve' | 'connect';
  /** Messages from the bridge, in order. */
  readonly heard: readonly object[];
  /** Errors that the SDK could give to nobody. */
  readonly faults: readonly Error[];
  tools(): Promise<readonly string[]>;
  /** The text of what the tool `echo` returns. */
  echo(text: string, options?: CallOptions): Promise<string>;
  close(): Promise<void>;
}

interface Observed {
  readonly heard: object[];
  readonly faults: Error[];
}

type Connect = (bridge: Bridge | undefined, target: readonly string[]) => Promise<TolerantClient>;

function stdioOf(target: readonly string[]) {
  const [command, bin] = BRIDGE_COMMAND;
  return { command, args: [bin, 'connect', ...target], stderr: 'ignore' as const };
}

const connectLegacy: Connect = async (bridge, target) => {
  const observed: Observed = { heard: [], faults: [] };
  const http = bridge && new StreamableHTTPClientTransport(bridge.url);
  // The SDK's own transports do not satisfy its interface under exactOptionalPropertyTypes.
  const transport = (http ?? new StdioClientTransport(stdioOf(target))) as Transport;
  transport.onmessage = (message) => void observed.heard.push(message);
  const client = new Client({ name: 'legacy', version: '1.0.0' });
  client.onerror = (error) => void observed.faults.push(error);
  await client.connect(transport);
  return {
    era: 'legacy',
    verb: bridge === undefined ? 'connect' : 'serve',
    ...observed,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    echo: async (text, options) =>
      textOf(await client.callTool({ name: 'echo', arguments: { text } }, undefined, options)),
    close: async () => {
      await http?.terminateSession().catch(() => undefined);
      await client.close();
    },
  };
};

const connectModern: Connect = async (bridge, target) => {
  const observed: Observed = { heard: [], faults: [] };
  const client = new ModernSdkClient(
    { name: 'modern', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.onerror = (error) => void observed.faults.push(error);
  await client.connect(
    bridge === undefined ? new ModernStdioTransport(stdioOf(target)) : new ModernHttpTransport(bridge.url),
  );
  return {
    era: 'modern',
    verb: bridge === undefined ? 'connect' : 'serve',
    ...observed,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    echo: async (text, options) => textOf(await client.callTool({ name: 'echo', arguments: { text } }, options)),
    close: () => client.close(),
  };
};

/** Has a client of each era use the server through each verb, side by side. The clients and bridges end with it. */
export async function throughEachVerb(
  t: ExecutionContext,
  target: readonly string[],
  use: (client: TolerantClient) => Promise<void>,
): Promise<void> {
  const bridge = await startBridge(target);
  t.teardown(() => bridge.stop());
  const ways = [connectLegacy, connectModern].flatMap((connect) =>
    [bridge, undefined].map(async (front) => {
      const client = await connect(front, target);
      try {
        await use(client);
      } finally {
        await client.close();
      }
    }),
  );
  // All of them have ended before the server does.
  const failed = (await Promise.allSettled(ways)).find(({ status }) => status === 'rejected');
  await bridge.stop();
  if (failed?.status === 'rejected') throw failed.reason;
}
