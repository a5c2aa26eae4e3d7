import { CLIENTS, type ClientName } from './clients.ts';
import { crossingOf, FEATURES, type Feature, type Outcome } from './features.ts';
import { SERVERS, type ServerName } from './servers.ts';

/** A pair that cannot do what others of their eras can; without clients, whatever the client is. */
export interface Limit {
  readonly clients?: readonly ClientName[];
  readonly servers: readonly ServerName[];
  readonly features: readonly Feature[];
  readonly why: string;
  /** By each side. */
  readonly seen: string;
}

/** Of the modern era, several of which a bridge serves at once. */
const MODERN_SERVED = ['modernHttp', 'modernSocket', 'autoHttp', 'modernWebSocket'] as const;
const LEGACY_CLIENTS = ['stdio', 'httpSse', 'streamable', 'socket', 'stream', 'webSocket'] as const;
/** Of the legacy era. */
const ONE_STREAM = ['stdio', 'stream', 'httpSse', 'webSocket', 'json'] as const;
const STATELESS = ['stateless', 'statelessJson'] as const;

/** What the ways of single clients and servers make impossible, besides what FEATURES says of the eras. */
export const LIMITS: readonly Limit[] = [
  {
    servers: STATELESS,
    features: ['session', 'ownSession', 'cancel'],
    why: 'each POST meets a new instance of the server, which knows nothing of those before',
    seen: 'the client is answered as if it had asked for the first time; a call that is canceled continues, and its result is discarded',
  },
  {
    clients: LEGACY_CLIENTS,
    servers: STATELESS,
    features: ['logging'],
    why: 'the level is set at one instance of the server, and the call meets another',
    seen: 'log messages come as if no level had been set',
  },
  {
    servers: STATELESS,
    features: ['betweenCalls', 'ownNotificationsBetween', 'looseQuestions', 'rootsChanged', 'serverPing'],
    why: 'a server without sessions has no GET stream',
    seen: 'the client hears nothing between calls, and the server reaches nobody',
  },
  {
    servers: STATELESS,
    features: ['questions', 'questionErrors', 'ownQuestions', 'incapable'],
    why: 'the answer comes in another POST, and so to another instance of the server than the one that asked',
    seen: 'the client may be asked, and the server waits until its own time is up',
  },
  {
    servers: ['statelessJson'],
    features: ['callMessages', 'oneOrder', 'logging', 'ownNotificationsDown'],
    why: 'an answer in JSON cannot carry other messages, and without sessions there is no GET stream',
    seen: 'the client gets the answer alone',
  },
  {
    servers: ['json'],
    features: ['oneOrder'],
    why: 'an answer in JSON cannot carry other messages, so they go on the GET stream, which has an order of its own',
    seen: 'messages of a call may come after its answer',
  },
  {
    clients: MODERN_SERVED,
    servers: ONE_STREAM,
    features: ['manyLogging'],
    why: 'the server has one stream for all that it says in a session, and does not say which call it is about; clients of one name that cannot be asked anything share the session',
    seen: 'log messages that may be of several calls go to none',
  },
  {
    clients: MODERN_SERVED,
    servers: ['modernStdio', 'modernStream', 'modernWebSocket'],
    features: ['manyLogging'],
    why: 'one process or connection serves all clients, and does not say which call a log message is about',
    seen: 'log messages that may be of several calls go to none',
  },
];

/** Why a pair cannot do something. */
export interface Hindrance {
  readonly kind: 'limited' | 'absent' | 'impossible';
  readonly why: string;
}

/** The first that stands against any of these features. */
export function findHindrance(
  client: ClientName,
  server: ServerName,
  features: readonly Feature[],
): Hindrance | undefined {
  for (const feature of features) {
    const outcome: Outcome = FEATURES[feature].outcomes[crossingOf(CLIENTS[client].era, SERVERS[server].era)];
    if (outcome.kind === 'absent' || outcome.kind === 'impossible') return outcome;
    const limit = LIMITS.find(
      (candidate) => appliesTo(candidate, client, server) && candidate.features.includes(feature),
    );
    if (limit !== undefined) return { kind: 'limited', why: limit.why };
  }
  return undefined;
}

function appliesTo({ clients, servers }: Limit, client: ClientName, server: ServerName): boolean {
  return servers.includes(server) && (clients?.includes(client) ?? true);
}
