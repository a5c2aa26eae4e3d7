import type { Attempt } from './steady-client.ts';

/** What a server tells of what it saw: `message` is one of its client. */
export interface Seen {
  readonly session: string;
  readonly kind: string;
  readonly value?: {
    readonly method?: string;
    readonly params?: { readonly arguments?: { readonly value?: string }; readonly inputResponses?: unknown };
  };
}

/** How often each call was run, by its words. One that a modern client goes on with is the same call. */
function runsOf(entries: readonly Seen[]): ReadonlyMap<string, number> {
  const runs = new Map<string, number>();
  for (const { kind, value } of entries) {
    const isCall = kind === 'message' && value?.method === 'tools/call' && value.params?.inputResponses === undefined;
    const words = isCall ? value.params?.arguments?.value : undefined;
    if (words !== undefined) runs.set(words, (runs.get(words) ?? 0) + 1);
  }
  return runs;
}

/** Calls that ran more often than they may: one that was answered ran once, one that failed once at most. */
export function wrongRuns(attempts: readonly Attempt[], entries: readonly Seen[]): readonly string[] {
  const runs = runsOf(entries);
  return attempts.flatMap(({ words, outcome, isRecorded }) => {
    const count = runs.get(words) ?? 0;
    const isWrong = outcome === 'answered' && isRecorded ? count !== 1 : count > 1;
    return isWrong ? [`${words} (${outcome}) ran ${count} times`] : [];
  });
}
