import type { RequestMetadata } from '../mcp/classify/request-metadata.ts';
import type { CallHandler, CallServer, ModernCall } from '../relay/modern-call.ts';
import type { CallerDialers, CallerEnvironment, DialerForCaller } from '../relay/ports.ts';
import { READY } from '../relay/readiness.ts';
import { CLIENT_INFO } from '../version.ts';
import type { Frame } from '../wire/frame.ts';
import { Aggregate, type AggregateOptions } from './aggregate.ts';
import { AggregateSession } from './legacy/session.ts';
import { AggregateLink } from './modern/link.ts';
import { AggregateRequest } from './modern/request.ts';
import { Viewers } from './modern/viewer.ts';
import type { ToolSearch } from './search/tool-search.ts';

/** Creates one server made of many, as its clients use it. */
export async function createAggregateDialer(options: AggregateOptions): Promise<CallerDialers> {
  const search = options.shows === 'search' ? await loadSearch() : undefined;
  const aggregate = new Aggregate(options, { ...CLIENT_INFO, title: 'mcp-portage' }, search);
  const viewers = new Viewers(aggregate);
  return {
    name: 'aggregate',
    forCaller: (environment, principal) => new AggregateDialer(aggregate, viewers, { environment, principal }),
    linkEnded() {},
    // The servers are started when they are used. One that cannot be reached is left out, and the others are served.
    readiness: () => READY,
    close: async () => {
      viewers.close();
      aggregate.close();
    },
    killNow() {},
  };
}

/** The search and its library are loaded where they are used. */
async function loadSearch(): Promise<ToolSearch> {
  const { ToolSearch } = await import('./search/tool-search.ts');
  return new ToolSearch();
}

interface Caller {
  readonly environment: CallerEnvironment | undefined;
  readonly principal: string | undefined;
}

/** The aggregate for one caller. */
class AggregateDialer implements DialerForCaller, CallServer {
  readonly #aggregate: Aggregate;
  readonly #viewers: Viewers;
  readonly #caller: Caller;

  constructor(aggregate: Aggregate, viewers: Viewers, caller: Caller) {
    this.#aggregate = aggregate;
    this.#viewers = viewers;
    this.#caller = caller;
  }

  dial(...[owner, stored]: Parameters<DialerForCaller['dial']>): AggregateSession {
    return new AggregateSession({ aggregate: this.#aggregate, owner, stored, ...this.#caller });
  }

  dialCalls(...[owner, context]: Parameters<DialerForCaller['dialCalls']>): AggregateLink {
    const { environment } = this.#caller;
    return new AggregateLink({ aggregate: this.#aggregate, viewers: this.#viewers, owner, context, environment });
  }

  callServer(): CallServer {
    return this;
  }

  take(call: ModernCall, frame: Frame, metadata: RequestMetadata): boolean {
    const { principal, environment, lane, identity } = call;
    const { headers, traceHeaders } = lane;
    const caller = { principal, environment, headers, traceHeaders, identity };
    const viewer = this.#viewers.of(caller, metadata);
    const request = new AggregateRequest({ aggregate: this.#aggregate, viewer, caller, metadata, frame, sink: call });
    call.servedBy = handlerOf(request);
    return request.start();
  }
}

function handlerOf(request: AggregateRequest): CallHandler {
  return {
    withdraw: () => request.withdraw(),
    pause: () => request.pause(),
    resume: () => request.resume(),
  };
}
