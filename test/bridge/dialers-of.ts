import type { ExecutionContext } from 'ava';
import { describeCallers } from '../../src/bridge/caller-policy.ts';
import { createDialers } from '../../src/bridge/create-dialer.ts';
import { QueueSizes } from '../../src/collections/queue-sizes.ts';
import type { Deps } from '../../src/deps.ts';
import { ServerSpeech } from '../../src/relay/observer.ts';
import type { CallerDialers } from '../../src/relay/ports.ts';
import { ChildLimit } from '../../src/upstream/stdio/child-limit.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { configOf } from './config-of.ts';

/** Creates the dialers that these words of a command line describe. They end with the test. */
export async function dialersOf(
  t: ExecutionContext,
  words: readonly string[],
  deps: Partial<Deps> = {},
): Promise<CallerDialers> {
  const { listener, servers, limits } = configOf(...words);
  const [server] = servers;
  const dialers = await createDialers(
    {
      ...server,
      callers: describeCallers(listener, server),
      children: new ChildLimit(limits.maxChildren),
      shutdownGraceMs: limits.shutdownGraceMs,
      urgency: undefined,
      openShared: undefined,
      callerTokens: undefined,
      bound: () => [],
      outcomes: undefined,
      waits: listener.kind === 'pipes' ? 'client' : 'callers',
      members: undefined,
      observing: { observer: undefined, tracer: undefined, speech: new ServerSpeech(), server: 'a server' },
      queues: new QueueSizes(),
    },
    { ...createTestDeps().deps, ...deps },
  );
  t.teardown(() => dialers.close());
  return dialers;
}
