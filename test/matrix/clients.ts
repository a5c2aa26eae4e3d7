import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { BRIDGE_COMMAND, type Bridge, type LogLine, parseLog, REPOSITORY, startBridge } from '../support/bridge.ts';
import { assertGone, descendantsOf } from '../support/processes.ts';
import { LegacyClient } from './legacy-client.ts';
import type { MatrixClient } from './matrix-client.ts';

/** The bridge as one kind of client uses it: one process a client, or one for all of them. */
export interface Front {
  readonly logs: readonly LogLine[];
  connect(name: string): Promise<MatrixClient>;
  /** Bridges and what runs below them. */
  processes(): readonly number[];
  /** Ends what still runs; fails when something stays behind. May be called twice. */
  stop(): Promise<void>;
}

export interface ClientKind {
  readonly title: string;
  /** @param target URL, or `--` and a command */
  start(target: readonly string[]): Promise<Front>;
}

export const CLIENTS = {
  stdio: { title: 'stdio', start: async (target) => new StdioFront(target) },
  httpSse: {
    title: 'HTTP+SSE',
    start: (target) =>
      serve(target, (bridge, name) => LegacyClient.connect(new SSEClientTransport(bridge.sseUrl), { name })),
  },
  streamable: {
    title: 'Streamable HTTP',
    start: (target) =>
      serve(target, (bridge, name) => {
        const transport = new StreamableHTTPClientTransport(bridge.url);
        // A session that is gone already is as good.
        const leave = () => transport.terminateSession().catch(() => undefined);
        return LegacyClient.connect(transport, { name, leave });
      }),
  },
} as const satisfies Record<string, ClientKind>;

export type ClientName = keyof typeof CLIENTS;

/** `mcp-portage connect …`, started by each client as its server. */
class StdioFront implements Front {
  readonly logs: LogLine[] = [];
  readonly #target: readonly string[];
  readonly #transports: StdioClientTransport[] = [];

  constructor(target: readonly string[]) {
    this.#target = target;
  }

  async connect(name: string): Promise<MatrixClient> {
    const [command, ...args] = BRIDGE_COMMAND;
    const transport = new StdioClientTransport({
      command,
      args: [...args, 'connect', '--log-format', 'json', ...this.#target],
      cwd: REPOSITORY,
      stderr: 'pipe',
    });
    this.#transports.push(transport);
    if (transport.stderr !== null) {
      createInterface({ input: transport.stderr as Readable }).on('line', (line) => this.logs.push(parseLog(line)));
    }
    return LegacyClient.connect(transport, { name });
  }

  processes(): readonly number[] {
    return this.#transports.flatMap(({ pid }) => (pid === null ? [] : [pid, ...descendantsOf(pid)]));
  }

  async stop(): Promise<void> {
    const processes = this.processes();
    await Promise.all(this.#transports.map((transport) => transport.close()));
    await assertGone(processes);
  }
}

/** `mcp-portage serve …`, one for all clients. */
async function serve(
  target: readonly string[],
  dial: (bridge: Bridge, name: string) => Promise<MatrixClient>,
): Promise<Front> {
  const bridge = await startBridge(target);
  return {
    logs: bridge.logs,
    connect: (name) => dial(bridge, name),
    processes: () => [bridge.pid, ...bridge.children()],
    stop: async () => {
      const { code, signal } = await bridge.stop();
      if (code !== 0) throw new Error(`the bridge ended with ${code ?? signal}`);
    },
  };
}
