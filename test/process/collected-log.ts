import { type Logger, pino } from 'pino';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import type { Deps } from '../../src/deps.ts';

export type LogEntry = Readonly<Record<string, unknown>> & { readonly level: number; readonly msg: string };

export interface CollectedLog {
  readonly log: Logger;
  /** Grows as things are logged; all levels. */
  readonly entries: readonly LogEntry[];
}

export function collectLog(): CollectedLog {
  const entries: LogEntry[] = [];
  const log = pino({ level: 'trace' }, { write: (line) => void entries.push(JSON.parse(line)) });
  return { log, entries };
}

/** Real time and chance, with a log that is kept. */
export function createTestDeps(): { readonly deps: Deps; readonly entries: readonly LogEntry[] } {
  const { log, entries } = collectLog();
  return { deps: createSystemDeps(log), entries };
}
