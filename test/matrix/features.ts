import type { Era } from './matrix-client.ts';

export const CROSSINGS = ['legacy → legacy', 'modern → modern', 'modern → legacy', 'legacy → modern'] as const;

/** The era of the client, and that of the server. */
export type Crossing = (typeof CROSSINGS)[number];

export const crossingOf = (client: Era, server: Era): Crossing => `${client} → ${server}`;

/**
 * - `passes`: both sides have it, and the bridge carries it.
 * - `translated`: it works, though the two have different words for it.
 * - `absent`: one side's era does not have it and the other does not expect it, so nobody misses anything.
 * - `impossible`: one side tries, and cannot have it.
 */
export type Outcome =
  | { readonly kind: 'passes' }
  | { readonly kind: 'translated'; readonly how: string }
  | { readonly kind: 'absent'; readonly why: string }
  | { readonly kind: 'impossible'; readonly why: string; readonly seen: string };

interface FeatureRow {
  readonly title: string;
  readonly outcomes: Readonly<Record<Crossing, Outcome>>;
}

export const passes: Outcome = { kind: 'passes' };
export const translated = (how: string): Outcome => ({ kind: 'translated', how });
export const absent = (why: string): Outcome => ({ kind: 'absent', why });
export const impossible = (why: string, seen: string): Outcome => ({ kind: 'impossible', why, seen });

/** Within an era everything that it has passes. */
const sameEras = { 'legacy → legacy': passes, 'modern → modern': passes } as const;
const legacyOnly = (why: string) => ({ 'legacy → legacy': passes, 'modern → modern': absent(why) }) as const;

/** What the matrix tests, by what it needs; the tables of docs/reference/compatibility.md are made of this. */
export const FEATURES = {
  handshake: {
    title: 'What the server says about itself: name, version, instructions, capabilities',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('the answer to `initialize` becomes that to `server/discover`'),
      'legacy → modern': translated('the answer to `server/discover` becomes that to `initialize`'),
    },
  },
  clientCapabilities: {
    title: 'What the client can be asked for',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('a session is opened for exactly the capabilities of the request'),
      'legacy → modern': translated('what `initialize` declared goes with every request'),
    },
  },
  clientName: {
    title: 'Name and version of the client',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('a session is opened in the name of the client'),
      'legacy → modern': translated('what `initialize` said goes with every request'),
    },
  },
  calls: {
    title: 'Calls: text, structured content, `_meta`, failures of tools, any size, many at once',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('the envelope of the request is taken off, that of the result put on'),
      'legacy → modern': translated('the envelope of the request is put on, that of the result taken off'),
    },
  },
  reading: {
    title: 'Lists with cursors, resources, templates, prompts, completion',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('as calls; lists and resources are marked as not to be cached'),
      'legacy → modern': translated('as calls; the hints on caching are taken off'),
    },
  },
  errors: {
    title: 'Errors with code, message and data',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(
        '−32002 becomes −32602; codes that the modern era reserves become −32603, with the original one in `data.bridge`',
      ),
      'legacy → modern': translated('−32602 of a resource that is not there becomes −32002'),
    },
  },
  extensions: {
    title: 'Extensions: what both sides declare of them, and the `_meta` of tools and resources (MCP Apps)',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('as they were written, among the capabilities; tasks have a row of their own'),
      'legacy → modern': translated('as they were written, among the capabilities; tasks have a row of their own'),
    },
  },
  ownMethods: {
    title: 'Methods of extensions and of vendors, whatever they are called',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(
        'as calls; only methods of the specification that the modern era lacks are refused',
      ),
      'legacy → modern': translated('as calls, and types of result that extensions add stay'),
    },
  },
  ownNotificationsUp: {
    title: 'Notifications of extensions and of vendors from the client',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(
        'without the envelope, which identifies the session; over HTTP, a notification without an envelope is dropped',
      ),
      'legacy → modern': translated('with an envelope'),
    },
  },
  ownNotificationsDown: {
    title: 'Notifications of extensions and of vendors from the server during a call',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('they go with the call they came with'),
      'legacy → modern': translated('they go with the call they came with'),
    },
  },
  ownNotificationsBetween: {
    title: 'Notifications of extensions and of vendors from the server between calls, outside of subscriptions',
    outcomes: {
      ...legacyOnly('a modern server speaks in answers and subscriptions only'),
      'modern → legacy': impossible(
        'a modern client gets answers and subscriptions only, and a subscription carries only the changes it names',
        'it is dropped, which is logged at `debug`',
      ),
      'legacy → modern': absent('a modern server speaks in answers and subscriptions only'),
    },
  },
  ping: {
    title: '`ping` of the client',
    outcomes: {
      ...legacyOnly('the modern era has no `ping`'),
      'modern → legacy': absent('the modern era has no `ping`'),
      'legacy → modern': translated('the bridge answers'),
    },
  },
  callMessages: {
    title: 'Progress of a call',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('tokens are exchanged'),
      'legacy → modern': translated('tokens are exchanged'),
    },
  },
  oneOrder: {
    title: 'What a server says of a call comes before its answer, in order',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(
        'on the stream of the answer; while its client is being asked something it is kept for the next request',
      ),
      'legacy → modern': translated('on the stream of the answer'),
    },
  },
  logging: {
    title: 'Log messages from a given level',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(
        '`logLevel` of the request becomes `logging/setLevel`, and each message is compared with it again',
      ),
      'legacy → modern': translated('`logging/setLevel` is kept and becomes the `logLevel` of later requests'),
    },
  },
  manyLogging: {
    title: 'Log messages of calls of several clients at the same time',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('each message goes to the call it came with'),
      'legacy → modern': translated('each message goes to the call it came with'),
    },
  },
  cancel: {
    title: 'A call that is canceled stops',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('a stream that is closed becomes `notifications/cancelled`'),
      'legacy → modern': translated('`notifications/cancelled` becomes a stream that is closed, over HTTP'),
    },
  },
  cancelReason: {
    title: 'The reason of a cancellation',
    outcomes: {
      ...sameEras,
      'modern → legacy': impossible(
        'a modern client over HTTP gives none, so calls are withdrawn in the name of the bridge',
        'the server reads "the client left"',
      ),
      'legacy → modern': translated('over stdio; a server over HTTP is given none'),
    },
  },
  betweenCalls: {
    title: 'Changes of lists and of resources that were subscribed to',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(
        '`subscriptions/listen` becomes `resources/subscribe`, counted over all clients of a session; changes go to every subscriber',
      ),
      'legacy → modern': translated(
        '`resources/subscribe` becomes a `subscriptions/listen`, opened anew before the old one is closed',
      ),
    },
  },
  session: {
    title: 'State that a request leaves at the server is available to the next one',
    outcomes: {
      ...legacyOnly('a modern server keeps nothing for a client'),
      'modern → legacy': translated(
        'later requests of the client meet the session of the earlier ones, as long as it is open',
      ),
      'legacy → modern': absent('a modern server keeps nothing for a client'),
    },
  },
  ownSession: {
    title: 'State that a client leaves at the server is available to nobody else, and ends with its session',
    outcomes: {
      ...legacyOnly('a modern server keeps nothing for a client'),
      'modern → legacy': impossible(
        'a modern client does not say when it leaves, and has no name to keep a session under',
        'clients with the same access, name and capabilities use the same sessions, which end when they were not used for a while',
      ),
      'legacy → modern': absent('a modern server keeps nothing for a client'),
    },
  },
  questions: {
    title: 'Sampling, elicitation and roots during a call: several at once, several rounds, declined, canceled',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(
        'requests of the server become an `input_required`; the call waits until the client repeats it with the answers',
      ),
      'legacy → modern': translated(
        'an `input_required` becomes requests to the client; with all answers the call is made again',
      ),
    },
  },
  manyQuestions: {
    title: 'Questions to several clients at the same time',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(
        'a call that may be asked something has its session to itself, or a stream of its own that questions come on',
      ),
      'legacy → modern': translated('each question is in the answer to its call'),
    },
  },
  questionErrors: {
    title: 'A client answers a question of the server with an error',
    outcomes: {
      ...legacyOnly('the protocol cannot express it: the client does not repeat its call'),
      'modern → legacy': absent('the protocol cannot express it: the client does not repeat its call'),
      'legacy → modern': impossible(
        'the protocol cannot express it toward a modern server',
        'the client gets a failed result that says so; the server gets nothing more about the call',
      ),
    },
  },
  ownQuestions: {
    title: 'Questions of the server that no specification names',
    outcomes: {
      ...legacyOnly('a modern server asks for sampling, elicitation and roots only'),
      'modern → legacy': impossible('an `input_required` cannot carry them', 'the server gets −32601'),
      'legacy → modern': absent('a modern server asks for sampling, elicitation and roots only'),
    },
  },
  looseQuestions: {
    title: 'Questions of the server between calls',
    outcomes: {
      ...legacyOnly('a modern server asks in answers only'),
      'modern → legacy': impossible(
        'a modern client is asked in answers only',
        'the server gets an error, and "cancel" for an elicitation; only roots wait for the next call',
      ),
      'legacy → modern': absent('a modern server asks in answers only'),
    },
  },
  serverPing: {
    title: '`ping` of the server',
    outcomes: {
      ...legacyOnly('the modern era has no `ping`'),
      'modern → legacy': translated('the bridge answers'),
      'legacy → modern': absent('the modern era has no `ping`'),
    },
  },
  rootsChanged: {
    title: 'The client tells that its roots have changed',
    outcomes: {
      ...legacyOnly('a modern server asks for roots when it needs them'),
      'modern → legacy': absent('a modern client does not say so, and none is promised to the server'),
      'legacy → modern': impossible(
        'a modern server asks for roots when it needs them',
        'the notification is taken, and ends there',
      ),
    },
  },
  incapable: {
    title: 'A client that cannot be asked is not asked',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('the bridge refuses what the server asks all the same'),
      'legacy → modern': translated('the server knows from the envelope, and its −32021 passes'),
    },
  },
} as const satisfies Record<string, FeatureRow>;

export type Feature = keyof typeof FEATURES;

export const FEATURE_NAMES = Object.keys(FEATURES) as readonly Feature[];
