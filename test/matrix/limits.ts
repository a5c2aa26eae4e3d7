import { CLIENTS, type ClientName } from './clients.ts';
import { crossingOf, FEATURES, type Feature, type Outcome } from './features.ts';
import { SERVERS, type ServerName } from './servers.ts';

/** A pair that cannot do what others of their eras can. */
export interface Limit {
  /** Without them, whatever the client is. */
  readonly clients?: readonly ClientName[];
  readonly servers: readonly ServerName[];
  /** Whose way it is. Default: that of the servers. */
  readonly of?: 'clients';
  readonly features: readonly Feature[];
  readonly why: string;
  /** By each side. */
  readonly seen: string;
}

/** Of the modern era, several of which a bridge serves at once. */
const MODERN_SERVED = [
  'modernHttp',
  'modernSocket',
  'autoHttp',
  'modernWebSocket',
  'modernGrpc',
  'modernMqtt',
] as const;
const LEGACY_CLIENTS = ['stdio', 'httpSse', 'streamable', 'socket', 'stream', 'webSocket', 'grpc', 'mqtt'] as const;
/** Of the legacy era. */
const ONE_STREAM = ['stdio', 'stream', 'httpSse', 'webSocket', 'grpc', 'mqtt', 'json'] as const;
/** Of the legacy era. */
const WITH_SESSIONS = [...ONE_STREAM, 'stateful', 'resumable', 'socket'] as const;
const STATELESS = ['stateless', 'statelessJson'] as const;
/** The capability topic of an instance. */
const TOLD_TO_ALL = 'MCP over MQTT tells all clients of an instance at once that a list has changed';

/** What the ways of single clients and servers make impossible, besides what FEATURES says of the eras. */
export const LIMITS: readonly Limit[] = [
  {
    servers: STATELESS,
    features: ['session', 'ownSession', 'cancel'],
    why: 'each POST meets a new instance',
    seen: 'nothing is remembered, and a canceled call continues',
  },
  {
    clients: LEGACY_CLIENTS,
    servers: STATELESS,
    features: ['logging'],
    why: 'the call meets another instance than the one that knows the level',
    seen: 'messages come as if no level had been set',
  },
  {
    servers: STATELESS,
    features: ['betweenCalls', 'ownNotificationsBetween', 'looseQuestions', 'rootsChanged', 'serverPing'],
    why: 'there is no GET stream',
    seen: 'between calls, neither side hears from the other',
  },
  {
    servers: STATELESS,
    features: ['questions', 'questionErrors', 'ownQuestions', 'incapable'],
    why: 'the answer meets another instance than the one that asked',
    seen: 'the server waits until its own timeout',
  },
  {
    servers: ['statelessJson'],
    features: ['callMessages', 'oneOrder', 'logging', 'ownNotificationsDown'],
    why: 'a JSON response carries only the answer, and there is no GET stream',
    seen: 'the client gets the answer alone',
  },
  {
    servers: ['json'],
    features: ['oneOrder'],
    why: 'a JSON response carries only the answer, and other messages come on the GET stream',
    seen: 'some may come after the answer',
  },
  {
    clients: MODERN_SERVED,
    servers: ONE_STREAM,
    features: ['manyLogging'],
    why: 'clients that cannot be asked anything may share a session, whose stream does not say which call a message is about',
    seen: 'ambiguous messages are dropped',
  },
  {
    clients: MODERN_SERVED,
    servers: ['modernStdio', 'modernStream', 'modernWebSocket', 'modernGrpc', 'modernMqtt'],
    features: ['manyLogging'],
    why: 'one process or connection serves all clients, and does not say which call a message is about',
    seen: 'ambiguous messages are dropped',
  },
  {
    clients: LEGACY_CLIENTS,
    servers: ['mqtt'],
    features: ['ownChanges'],
    why: TOLD_TO_ALL,
    seen: 'a client reads its own list again, and finds it as it was',
  },
  {
    of: 'clients',
    clients: ['mqtt'],
    servers: WITH_SESSIONS,
    features: ['ownChanges'],
    why: TOLD_TO_ALL,
    seen: 'a client reads its own list again, and finds it as it was',
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
