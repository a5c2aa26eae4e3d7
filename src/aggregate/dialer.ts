import type { Deps } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import type { CallerDialers } from '../relay/ports.ts';
import { READY } from '../relay/readiness.ts';
import type { Members } from './members.ts';

export interface AggregateOptions {
  readonly members: Members;
  /** The tools that clients see: all of them, or those that search for the others. */
  readonly shows: 'all' | 'search';
  readonly deps: Deps;
}

/** Creates the dialers of the aggregate, which opens links to its members. */
export function createAggregateDialer(_options: AggregateOptions): CallerDialers {
  const refuse = (): never => {
    throw new BridgeError('ERR_INTERNAL', 'The aggregate is not built yet.');
  };
  return {
    name: 'aggregate',
    restores: undefined,
    forCaller: () => ({ dial: refuse, dialCalls: refuse, callServer: refuse }),
    linkEnded: () => {},
    readiness: () => READY,
    close: async () => {},
    killNow: () => {},
  };
}
