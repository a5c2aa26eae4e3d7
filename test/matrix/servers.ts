import { fileURLToPath } from 'node:url';
import { startServerProcess } from '../support/server-process.ts';

/** What a server process has to say about what it saw; see servers/record.js. */
export interface RecordEntry {
  readonly session: string;
  readonly kind: 'opened' | 'closed' | 'stream' | 'deleted' | 'message' | 'aborted' | 'answered';
  readonly value?: unknown;
}

export interface ServerView {
  /** Open now, whoever looks aside. */
  readonly connections: number;
  readonly entries: readonly RecordEntry[];
}

export interface RunningServer {
  /** What the user would give to mcp-portage. */
  readonly target: readonly string[];
  /** Asked beside the protocol; undefined for one on stdio, whose processes belong to the bridge. */
  readonly look: (() => Promise<ServerView>) | undefined;
  stop(): Promise<void>;
}

export interface ServerKind {
  readonly title: string;
  start(): Promise<RunningServer>;
}

const LEGACY = fileURLToPath(new URL('./servers/legacy.js', import.meta.url));

const LEGACY_STDIO: readonly string[] = [process.execPath, LEGACY, 'stdio'];

export type LegacyHttpKind =
  | 'http-sse'
  | 'stateful'
  | 'stateful-resumable'
  | 'stateful-json'
  | 'stateless'
  | 'stateless-json';

/** @param port 0 picks one */
export const startLegacyHttp = (kind: LegacyHttpKind, port = 0) => startServerProcess(LEGACY, [kind, String(port)]);

export const SERVERS = {
  stdio: {
    title: 'stdio',
    start: async () => ({ target: ['--', ...LEGACY_STDIO], look: undefined, stop: async () => {} }),
  },
  httpSse: { title: 'HTTP+SSE', start: () => startLegacy('http-sse') },
  stateful: { title: 'Streamable HTTP', start: () => startLegacy('stateful') },
  resumable: { title: 'Streamable HTTP, resumable', start: () => startLegacy('stateful-resumable') },
  json: { title: 'Streamable HTTP, JSON answers', start: () => startLegacy('stateful-json') },
  stateless: { title: 'Streamable HTTP without sessions', start: () => startLegacy('stateless') },
  statelessJson: {
    title: 'Streamable HTTP without sessions, JSON answers',
    start: () => startLegacy('stateless-json'),
  },
} as const satisfies Record<string, ServerKind>;

export type ServerName = keyof typeof SERVERS;

async function startLegacy(kind: LegacyHttpKind): Promise<RunningServer> {
  const server = await startLegacyHttp(kind);
  const look = async () => (await (await fetch(new URL('/record', server.url))).json()) as ServerView;
  return { target: [server.url.href], look, stop: server.stop };
}
