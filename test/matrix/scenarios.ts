import type { Scenario } from './scenario.ts';
import { BETWEEN_CALLS } from './scenarios/between-calls.ts';
import { CALLS, LARGE_PAYLOADS } from './scenarios/calls.ts';
import { DURING_CALLS } from './scenarios/during-calls.ts';
import { LISTS } from './scenarios/lists.ts';
import { QUESTIONS } from './scenarios/questions.ts';
import { SHUTDOWN } from './scenarios/shutdown.ts';
import { TWO_CLIENTS } from './scenarios/two-clients.ts';

/** What holds of a client and a server that speak with each other, whatever stands between. */
export const CONVERSATION: readonly Scenario[] = [
  ...CALLS,
  ...LARGE_PAYLOADS,
  ...LISTS,
  // Before any call is withdrawn: what a server asks for the first time after that, in the same session, is refused.
  ...QUESTIONS,
  ...DURING_CALLS,
  ...BETWEEN_CALLS,
  ...TWO_CLIENTS,
];

/** In this order, as the last one ends the cell. */
export const SCENARIOS: readonly Scenario[] = [...CONVERSATION, ...SHUTDOWN];

/** What is sent and asked in both directions, and how it ends: what a carrier could get wrong. */
export const ESSENTIALS: readonly Scenario[] = [...CALLS, ...QUESTIONS, ...SHUTDOWN];

/** What shows that both sides are joined at all, and part. */
export const MEETING: readonly Scenario[] = [...CALLS, ...SHUTDOWN];
