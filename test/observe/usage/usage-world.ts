/** Clients, servers and a folder, as the tests of the usage need them. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { type Logger, pino } from 'pino';
import type { Clock } from '../../../src/deps.ts';
import { type ThisProcess, thisProcess } from '../../../src/io/owning-process.ts';
import type { ServedEndpoint } from '../../../src/observe/usage/usage.ts';
import { UsageFile } from '../../../src/observe/usage/usage-file.ts';
import { UsageTable } from '../../../src/observe/usage/usage-table.ts';
import type { CallOutcome, ObservedClient, ObservedServer } from '../../../src/relay/observer.ts';

export const NOON_MS = Date.UTC(2026, 10, 1, 12);
export const HOUR_MS = 60 * 60_000;

export const CURSOR: ObservedClient = {
  transport: 'http-sse',
  principal: 'somebody',
  server: 'everything',
  era: 'legacy',
  revision: '2024-11-05',
  name: 'cursor',
  version: '0.42',
};
export const EDITOR: ObservedClient = {
  ...CURSOR,
  transport: 'streamable-http',
  era: 'modern',
  revision: '2026-07-28',
  name: 'editor',
  version: '2',
};
export const LEGACY_SERVER: ObservedServer = { transport: 'stdio', era: 'legacy', revision: '2025-06-18' };

export const SERVED: readonly ServedEndpoint[] = [
  { server: 'everything', transport: 'streamable-http', path: '/mcp', sunset: undefined },
  { server: 'everything', transport: 'http-sse', path: '/sse', sunset: undefined },
];

export interface CallParts {
  readonly method?: string;
  readonly outcome?: CallOutcome;
  readonly durationMs?: number;
  readonly server?: ObservedServer | undefined;
}

export function call(table: UsageTable, client: ObservedClient, parts: CallParts = {}): void {
  const { method = 'tools/call', outcome = { kind: 'answered' }, durationMs = 10 } = parts;
  const server = 'server' in parts ? parts.server : LEGACY_SERVER;
  const ended = table.opened({ client, method, tool: 'echo', requestBytes: 100, openedAtMs: 0, traceId: undefined });
  ended({ outcome, bytes: 1000, durationMs, server });
}

/** A table whose wall clock a test sets. */
export function createTable(served = SERVED) {
  const time = { nowMs: NOON_MS };
  return { time, table: new UsageTable({ wallClock: () => time.nowMs, served }) };
}

/** Gone when the test ends. */
export async function createStateDirectory(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'portage-usage-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return path;
}

export interface OpenedFile {
  readonly file: UsageFile;
  readonly table: UsageTable;
  readonly time: { nowMs: number };
  readonly lines: string[];
}

/** What a process does that begins to count. */
export function openFile(stateDirectory: string, clock: Clock, self: ThisProcess = thisProcess()): OpenedFile {
  const lines: string[] = [];
  const log: Logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const randomId = (): string => randomBytes(16).toString('base64url');
  const { table, time } = createTable();
  return {
    table,
    time,
    lines,
    file: new UsageFile({ table, stateDirectory, self, deps: { clock, log, randomId, wallClock: Date.now } }),
  };
}
