/** Clients, calls and servers for the tests of what shows them. */
import type { InspectedServer, Inspection } from '../../../src/observe/inspection.ts';
import type { Activity } from '../../../src/observe/status/activity.ts';
import { Refusals } from '../../../src/observe/status/refusals.ts';
import type { UsageStatus } from '../../../src/observe/status/status-document.ts';
import type {
  CallEnding,
  CallOutcome,
  ObservedCall,
  ObservedClient,
  ObservedServer,
} from '../../../src/relay/observer.ts';

export const START_MS = Date.parse('2026-11-24T10:00:00Z');

/** A wall clock that a test sets. */
export class WallClock {
  nowMs = START_MS;

  readonly now = (): number => this.nowMs;

  advance(byMs: number): void {
    this.nowMs += byMs;
  }
}

const CURSOR: ObservedClient = {
  transport: 'http-sse',
  principal: 'somebody@example.org',
  server: 'everything',
  era: 'legacy',
  revision: '2024-11-05',
  name: 'cursor',
  version: '0.42.3',
};

export function client(given: Partial<ObservedClient> = {}): ObservedClient {
  return { ...CURSOR, ...given };
}

/** Known by its calls only. */
export function modernClient(given: Partial<ObservedClient> = {}): ObservedClient {
  const modern = { era: 'modern', transport: 'streamable-http', revision: '2026-07-28', name: 'claude-code' } as const;
  return client({ ...modern, version: '3.1.0', ...given });
}

export const LEGACY_STDIO: ObservedServer = { transport: 'stdio', era: 'legacy', revision: '2025-11-25' };
export const MODERN_HTTP: ObservedServer = { transport: 'streamable-http', era: 'modern', revision: '2026-07-28' };

export function call(given: Partial<ObservedCall> = {}): ObservedCall {
  return {
    client: CURSOR,
    method: 'tools/call',
    tool: 'echo',
    requestBytes: 120,
    openedAtMs: 0,
    traceId: undefined,
    ...given,
  };
}

export function ending(given: Partial<CallEnding> = {}): CallEnding {
  return { outcome: { kind: 'answered' }, bytes: 480, durationMs: 12, server: LEGACY_STDIO, ...given };
}

/** Nothing was refused. */
export const NO_REFUSALS = new Refusals({ wallClock: () => START_MS });

export const FAILED: CallOutcome = { kind: 'failed', code: 'ERR_UPSTREAM_EXITED' };

/** A call that begins and ends at once. */
export function runCall(activity: Activity, given: Partial<ObservedCall> = {}, end: Partial<CallEnding> = {}): void {
  activity.opened(call(given))(ending(end));
}

export function inspectedServer(given: Partial<InspectedServer> = {}): InspectedServer {
  return {
    name: 'everything',
    url: 'http://127.0.0.1:8808/everything/mcp',
    sseUrl: 'http://127.0.0.1:8808/everything/sse',
    sunset: undefined,
    wsUrl: 'ws://127.0.0.1:8808/everything/ws',
    hubs: [],
    kind: 'command',
    state: 'ready',
    sinceMs: undefined,
    problem: undefined,
    verdicts: [LEGACY_STDIO],
    sessions: 2,
    openCalls: 1,
    processes: 2,
    restarts: 0,
    queues: [],
    ...given,
  };
}

export function inspection(given: Partial<Inspection> = {}): Inspection {
  return {
    startedAtMs: START_MS - 2 * 60 * 60_000,
    version: '0.1.0',
    servers: [inspectedServer()],
    openCalls: 1,
    maxOpenCalls: 1000,
    processes: 2,
    maxProcesses: 100,
    connections: 3,
    unsentBytes: 0,
    ...given,
  };
}

export const USAGE: UsageStatus = {
  days: 30,
  verdicts: [
    {
      server: 'everything',
      transport: 'http-sse',
      verdict: 'not-yet',
      text: 'last used 2 days ago by cursor 0.42.3 (3 sessions)',
    },
    {
      server: 'weather',
      transport: 'http-sse',
      verdict: 'safe',
      text: 'unused for 30 days: switch it off with --no-sse',
    },
  ],
  rows: [
    {
      client: 'cursor',
      clientVersion: '0.42.3',
      speaks: { transport: 'http-sse', revision: '2024-11-05' },
      server: 'everything',
      serverSpeaks: { transport: 'stdio', revision: '2025-11-25' },
      sessions: 3,
      calls: 1204,
      errors: 7,
      p50Ms: 12,
      p95Ms: 90,
      firstSeenMs: START_MS - 20 * 24 * 60 * 60_000,
      lastSeenMs: START_MS - 2 * 24 * 60 * 60_000,
      deprecated: ['HTTP+SSE', 'sampling'],
    },
  ],
};

/** Several servers and clients, and ten busy minutes. */
export function fillActivity(activity: Activity, clock: WallClock): void {
  const servers = ['everything', 'weather', 'files'];
  const clients = [
    client(),
    client({
      name: 'Claude Desktop',
      version: '1.9.0',
      transport: 'streamable-http',
      revision: '2025-11-25',
      server: 'weather',
    }),
    client({ name: 'vscode', version: '1.120', transport: 'streamable-http', revision: '2025-06-18', server: 'files' }),
    modernClient({ server: 'files' }),
    client({ name: undefined, version: undefined, transport: 'stdio', revision: '2025-03-26', server: 'weather' }),
  ];
  clock.nowMs -= 10 * 60_000;
  for (const some of clients) {
    if (some.era === 'legacy') activity.connected(some, some.server === 'weather' ? MODERN_HTTP : LEGACY_STDIO);
  }
  const tools = ['echo', 'get_forecast', 'read_file', 'list_directory', 'search_files'];
  for (let step = 0; step < 120; step += 1) {
    clock.advance(5000);
    const busy = Math.max(0, Math.round(6 + 5 * Math.sin(step / 9) + 3 * Math.sin(step / 2.3)));
    for (let number = 0; number < busy; number += 1) {
      const from = clients[(step + number) % clients.length] ?? client();
      const durationMs = 8 + ((step * 7 + number * 13) % 40) + (number % 7 === 6 ? 240 : 0);
      const isWrong = (step * 3 + number) % 41 === 0;
      const outcome: CallOutcome = isWrong
        ? number % 2 === 0
          ? FAILED
          : { kind: 'error', code: -32602 }
        : { kind: 'answered' };
      const isList = number % 6 === 5;
      runCall(
        activity,
        {
          client: from,
          method: isList ? 'tools/list' : 'tools/call',
          tool: isList ? undefined : tools[(step + number) % tools.length],
        },
        {
          outcome,
          durationMs,
          bytes: 300 + ((step * 97 + number * 391) % 9000),
          server: from.server === 'weather' ? MODERN_HTTP : LEGACY_STDIO,
        },
      );
    }
  }
  void servers;
  activity.opened(call({ client: clients[2] ?? client(), tool: 'search_files' }));
  clock.advance(3000);
}
