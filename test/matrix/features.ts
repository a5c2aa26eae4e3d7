import type { Era } from './matrix-client.ts';

export const CROSSINGS = ['legacy → legacy', 'modern → modern', 'modern → legacy', 'legacy → modern'] as const;

/** The era of the client, and that of the server. */
export type Crossing = (typeof CROSSINGS)[number];

export const crossingOf = (client: Era, server: Era): Crossing => `${client} → ${server}`;

/**
 * - `passes`: both sides have it, and the bridge carries it.
 * - `translated`: it works, though the two have different words for it; `how`, where a side may notice it.
 * - `absent`: one side's era does not have it and the other does not expect it, so nobody misses anything.
 * - `impossible`: one side tries, and cannot have it.
 */
export type Outcome =
  | { readonly kind: 'passes' }
  | { readonly kind: 'translated'; readonly how?: string }
  | { readonly kind: 'absent'; readonly why: string }
  | { readonly kind: 'impossible'; readonly why: string; readonly seen: string };

interface FeatureRow {
  readonly title: string;
  readonly outcomes: Readonly<Record<Crossing, Outcome>>;
}

export const passes: Outcome = { kind: 'passes' };
export const translated = (how?: string): Outcome => ({ kind: 'translated', ...(how !== undefined && { how }) });
export const absent = (why: string): Outcome => ({ kind: 'absent', why });
export const impossible = (why: string, seen: string): Outcome => ({ kind: 'impossible', why, seen });

/** Within an era everything that it has passes. */
const sameEras = { 'legacy → legacy': passes, 'modern → modern': passes } as const;
const legacyOnly = (why: string) => ({ 'legacy → legacy': passes, 'modern → modern': absent(why) }) as const;

/** What the matrix tests, by what it needs; docs/reference/compatibility.md is made of this. */
export const FEATURES = {
  handshake: {
    title: 'Name, version, instructions and capabilities of the server',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  clientCapabilities: {
    title: 'Capabilities of the client',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  clientName: {
    title: 'Name and version of the client',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  calls: {
    title: 'Calls of any size, many at once, with structured content and `_meta`',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  reading: {
    title: 'Lists, resources, templates, prompts, completion',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('lists and resources are marked as not cacheable'),
      'legacy → modern': translated('caching hints are removed'),
    },
  },
  errors: {
    title: 'Errors with code, message and data',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(
        '−32002 becomes −32602; codes that the modern era reserves become −32603, with the original in `data.bridge`',
      ),
      'legacy → modern': translated('−32602 for a missing resource becomes −32002'),
    },
  },
  extensions: {
    title: 'Declared extensions',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  ownMethods: {
    title: 'Extension methods',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  ownNotificationsUp: {
    title: 'Extension notifications from the client',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('over HTTP, those without the modern `_meta` are dropped'),
      'legacy → modern': translated(),
    },
  },
  ownNotificationsDown: {
    title: 'Extension notifications during a call',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  ownNotificationsBetween: {
    title: 'Extension notifications between calls',
    outcomes: {
      ...legacyOnly('a modern server speaks in answers and subscriptions only'),
      'modern → legacy': impossible(
        'modern clients get only answers and subscribed changes',
        'they are dropped, and logged at `debug`',
      ),
      'legacy → modern': absent('a modern server speaks in answers and subscriptions only'),
    },
  },
  ping: {
    title: '`ping` of the client',
    outcomes: {
      ...legacyOnly('the modern era has no `ping`'),
      'modern → legacy': absent('the modern era has no `ping`'),
      'legacy → modern': translated('mcp-portage answers'),
    },
  },
  callMessages: {
    title: 'Progress of a call',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  oneOrder: {
    title: 'Messages of a call before its answer',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  logging: {
    title: 'Log messages from a given level',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  manyLogging: {
    title: 'Log messages of simultaneous calls',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  cancel: {
    title: 'Cancellation of a call',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  cancelReason: {
    title: 'Reason of a cancellation',
    outcomes: {
      ...sameEras,
      'modern → legacy': impossible('modern clients over HTTP give none', 'the server reads "the client left"'),
      'legacy → modern': translated('only over stdio'),
    },
  },
  betweenCalls: {
    title: 'Changes of lists and subscribed resources',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  ownChanges: {
    title: 'Changes of lists of one session only',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  session: {
    title: 'State between requests',
    outcomes: {
      ...legacyOnly('a modern server keeps nothing for a client'),
      'modern → legacy': translated('later requests of a client use the same session'),
      'legacy → modern': absent('a modern server keeps nothing for a client'),
    },
  },
  ownSession: {
    title: 'State of one session only',
    outcomes: {
      ...legacyOnly('a modern server keeps nothing for a client'),
      'modern → legacy': impossible(
        'modern clients have no sessions',
        'those of one caller, name and set of capabilities share some, which end when unused',
      ),
      'legacy → modern': absent('a modern server keeps nothing for a client'),
    },
  },
  questions: {
    title: 'Questions during a call',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated('they become an `input_required`; the client repeats the call with the answers'),
      'legacy → modern': translated('an `input_required` becomes questions; mcp-portage repeats the call'),
    },
  },
  manyQuestions: {
    title: 'Questions to several clients at the same time',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
  questionErrors: {
    title: 'Errors as answers to questions',
    outcomes: {
      ...legacyOnly('the protocol cannot express it: the client does not repeat its call'),
      'modern → legacy': absent('the protocol cannot express it: the client does not repeat its call'),
      'legacy → modern': impossible(
        'a modern server cannot be given one',
        'the client gets a failed result that says so, the server nothing more',
      ),
    },
  },
  ownQuestions: {
    title: 'Extension questions',
    outcomes: {
      ...legacyOnly('a modern server asks for sampling, elicitation and roots only'),
      'modern → legacy': impossible('an `input_required` cannot carry them', 'the server gets −32601'),
      'legacy → modern': absent('a modern server asks for sampling, elicitation and roots only'),
    },
  },
  looseQuestions: {
    title: 'Questions between calls',
    outcomes: {
      ...legacyOnly('a modern server asks in answers only'),
      'modern → legacy': impossible(
        'modern clients are asked in answers only',
        'the server gets an error, or "cancel" for an elicitation; requests for roots wait for the next call',
      ),
      'legacy → modern': absent('a modern server asks in answers only'),
    },
  },
  serverPing: {
    title: '`ping` of the server',
    outcomes: {
      ...legacyOnly('the modern era has no `ping`'),
      'modern → legacy': translated('mcp-portage answers'),
      'legacy → modern': absent('the modern era has no `ping`'),
    },
  },
  rootsChanged: {
    title: 'Notifications of changed roots',
    outcomes: {
      ...legacyOnly('a modern server asks for roots when it needs them'),
      'modern → legacy': absent('a modern client does not say so, and none is promised to the server'),
      'legacy → modern': impossible('a modern server asks when it needs roots', 'they are not passed on'),
    },
  },
  incapable: {
    title: 'No questions that a client cannot answer',
    outcomes: {
      ...sameEras,
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
  },
} as const satisfies Record<string, FeatureRow>;

export type Feature = keyof typeof FEATURES;

export const FEATURE_NAMES = Object.keys(FEATURES) as readonly Feature[];
