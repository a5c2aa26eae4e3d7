/** Where calls begin and end, as tests need it, and an observer that keeps what it sees. */

import type { Clock } from '../../src/deps.ts';
import type { BridgeError } from '../../src/errors.ts';
import type { Era } from '../../src/mcp/vocabulary/revisions.ts';
import { CallCapacity, Calls, type CallTimes } from '../../src/relay/calls.ts';
import {
  type CallEnding,
  type ClientOrigin,
  type DeprecatedFeature,
  type ObservedCall,
  type ObservedClient,
  type ObservedServer,
  type Observer,
  type OnCallEnded,
  type OnClientLeft,
  type ServerObserver,
  ServerSpeech,
} from '../../src/relay/observer.ts';
import { type ToolShape, ToolView, type ToolViewOptions } from '../../src/relay/tool-view.ts';
import type { Tracer } from '../../src/relay/tracer.ts';

/** The parts of `Calls` that a test may set. */
export interface CallsParts {
  readonly observer?: Observer | undefined;
  readonly tracer?: Tracer | undefined;
  readonly speech?: ServerSpeech;
  readonly refusal?: () => BridgeError | undefined;
  readonly tools?: ToolView | undefined;
  readonly maxResultBytes?: number;
  readonly serverObserver?: ServerObserver;
  readonly maxOpen?: number;
  readonly maxBytes?: number;
}

/** As many calls as the command line allows when it says nothing. */
const MAX_OPEN = 4096;

export function createCalls(clock: Clock, parts: CallsParts = {}): Calls {
  const { observer, tracer, speech = new ServerSpeech(), refusal, tools, maxResultBytes, serverObserver } = parts;
  const { maxOpen = MAX_OPEN, maxBytes } = parts;
  return new Calls({
    clock,
    observer,
    tracer,
    speech,
    refusal,
    tools,
    maxResultBytes,
    serverObserver,
    server: ORIGIN.server,
    ...new CallCapacity(maxOpen, maxBytes).share(),
  });
}

export interface ViewParts extends Partial<Omit<ToolViewOptions, 'shapes'>> {
  readonly shapes?: Readonly<Record<string, Partial<ToolShape>>>;
}

/** A view in which tools are shown as they are where the test says nothing else. */
export function viewOfTools({ shapes = {}, ...parts }: ViewParts): ToolView {
  const whole = Object.entries(shapes).map(
    ([name, shape]) => [name, { name: undefined, title: undefined, description: undefined, ...shape }] as const,
  );
  const rest = { isHidden: () => false, isForCaller: undefined, log: { warn() {} } };
  return new ToolView({ ...rest, ...parts, shapes: new Map(whole) });
}

export const ORIGIN: ClientOrigin = { transport: 'streamable-http', principal: 'someone', server: 'a server' };

/** What a relay needs besides its two ends; without limits of time where the test sets none. */
export function relayParts(clock: Clock, times: Partial<CallTimes> = {}) {
  return { calls: createCalls(clock), origin: ORIGIN, era: 'legacy' as Era, requestTimeoutMs: 0, ...times };
}

export interface SeenCall extends ObservedCall {
  /** As often as it was told. */
  readonly endings: CallEnding[];
}

export class FakeObserver implements Observer {
  readonly calls: SeenCall[] = [];
  readonly clients: {
    readonly client: ObservedClient;
    readonly server: ObservedServer | undefined;
    readonly left: string[];
  }[] = [];
  readonly uses: DeprecatedFeature[] = [];
  seesCalls = true;
  readonly refusals: { readonly client: ClientOrigin; readonly reason: string }[] = [];

  opened(call: ObservedCall): OnCallEnded {
    const endings: CallEnding[] = [];
    this.calls.push({ ...call, endings });
    return (ending) => void endings.push(ending);
  }

  connected(client: ObservedClient, server: ObservedServer | undefined): OnClientLeft {
    const left: string[] = [];
    this.clients.push({ client, server, left });
    return (reason) => void left.push(reason);
  }

  refused(client: ClientOrigin, reason: string): void {
    this.refusals.push({ client, reason });
  }

  used(feature: DeprecatedFeature, _by: Parameters<Observer['used']>[1]): void {
    this.uses.push(feature);
  }

  /** The outcomes of all calls, those of `initialize` left out; undefined: the call is open. */
  get outcomes(): readonly unknown[] {
    return this.calls.filter(({ method }) => method !== 'initialize').map(({ endings }) => endings[0]?.outcome);
  }
}
