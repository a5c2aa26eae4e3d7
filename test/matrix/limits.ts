import type { ClientName } from './clients.ts';
import type { ServerName } from './servers.ts';

/**
 * What a scenario may need of a pair of client and server, the bridge aside.
 * - `session`: what one request sets up holds for the next.
 * - `call-messages`: the server can say something while a call runs, on behalf of it.
 * - `one-order`: and that comes before the answer of the call.
 * - `between-calls`: the server can say something when no call runs.
 * - `questions`: the server can ask the client, and gets the answer.
 */
export type Feature = 'session' | 'call-messages' | 'one-order' | 'between-calls' | 'questions';

/** A pair that cannot do something; without a client, whatever the client is. */
export interface Limit {
  readonly client?: ClientName;
  readonly server: ServerName;
  readonly feature: Feature;
  readonly reason: string;
}

const NEW_INSTANCE = 'each POST meets a new instance of the server, which knows nothing of those before';
const NO_STREAM = 'a server without sessions has no GET stream';
const OTHER_POST = 'the answer comes in another POST, and so to another instance of the server than the one that asked';
const JSON_ONLY = 'an answer in JSON has no room for other messages, and without sessions there is no GET stream';

/** Everything the matrix does not test, and why. Shown beside the results; nothing else is left out. */
export const LIMITS: readonly Limit[] = [
  {
    server: 'json',
    feature: 'one-order',
    reason:
      'an answer in JSON has no room for other messages, so they go on the GET stream, which has an order of its own',
  },
  { server: 'stateless', feature: 'session', reason: NEW_INSTANCE },
  { server: 'stateless', feature: 'between-calls', reason: NO_STREAM },
  { server: 'stateless', feature: 'questions', reason: OTHER_POST },
  { server: 'statelessJson', feature: 'session', reason: NEW_INSTANCE },
  { server: 'statelessJson', feature: 'between-calls', reason: NO_STREAM },
  { server: 'statelessJson', feature: 'questions', reason: OTHER_POST },
  { server: 'statelessJson', feature: 'call-messages', reason: JSON_ONLY },
  { server: 'statelessJson', feature: 'one-order', reason: JSON_ONLY },
];

export function findLimit(client: ClientName, server: ServerName, features: readonly Feature[]): Limit | undefined {
  return LIMITS.find(
    (limit) =>
      limit.server === server &&
      (limit.client === undefined || limit.client === client) &&
      features.includes(limit.feature),
  );
}
