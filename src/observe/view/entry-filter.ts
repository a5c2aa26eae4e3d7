import type { CallOutcome, Entry } from './pair-calls.ts';

/** Returns true if the pattern matches the whole name. */
export type MatchName = (name: string) => boolean;

/** Which entries are shown. An absent pattern matches everything. */
export interface EntryFilter {
  readonly outcomes: 'all' | 'failed';
  /** Also matches a call by the questions in it. */
  readonly method?: MatchName | undefined;
  /** A client that is not known has an empty name. */
  readonly client?: MatchName | undefined;
  readonly server?: MatchName | undefined;
}

export function isShown(entry: Entry, { outcomes, method, client, server }: EntryFilter): boolean {
  if (outcomes === 'failed' && !hasFailed(entry)) return false;
  if (server !== undefined && !server(entry.server)) return false;
  if (client !== undefined && !client(entry.client ?? '')) return false;
  return method === undefined || methodsOf(entry).some(method);
}

function hasFailed(entry: Entry): boolean {
  return entry.kind !== 'notification' && !SUCCESSES.has(entry.outcome.kind);
}

const SUCCESSES: ReadonlySet<CallOutcome['kind']> = new Set(['answered', 'input-required']);

function methodsOf(entry: Entry): readonly string[] {
  switch (entry.kind) {
    case 'call':
      return [entry.request, ...entry.questions].map(({ method }) => method);
    case 'notification':
      return [entry.method];
    case 'answer':
      return [];
  }
}
