import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { createSystemDeps } from '../../../src/cli/system-deps.ts';
import { identifyCaller } from '../../../src/http/auth/callers.ts';
import { MAX_STATE_LENGTH } from '../../../src/mcp/classify/input-responses.ts';
import { CallFinder } from '../../../src/replicas/forwarding/call-finder.ts';
import { Forwarder } from '../../../src/replicas/forwarding/forwarder.ts';
import { Router } from '../../../src/replicas/forwarding/router.ts';
import { CallerOwners } from '../../../src/replicas/ownership/caller-owners.ts';
import { Cluster } from '../../../src/replicas/ownership/cluster.ts';
import { requestFrame } from '../../../src/wire/write-message.ts';
import { CLUSTER_KEY, createEntryLinks } from '../../support/linked-replicas.ts';

/** Whether a call with this state is led by what the state says, or, as one without, by its caller. */
async function startRouter(t: ExecutionContext) {
  const deps = createSystemDeps(pino({ level: 'silent' }));
  const { links, store } = createEntryLinks(t);
  const address = 'http://127.0.0.1:1';
  const cluster = await Cluster.join({
    store,
    key: CLUSTER_KEY,
    address,
    leaseMs: 60_000,
    wallClock: Date.now,
    deps,
  });
  t.teardown(() => cluster.leave());
  const asked: string[] = [];
  const calls = new CallFinder({
    cluster,
    owners: new CallerOwners(cluster, deps.clock),
    stage: () => 'staying',
    ownedName: (principal) => {
      asked.push(principal);
      return undefined;
    },
  });
  const router = new Router({ cluster, forwarder: new Forwarder(links), deps });
  const ledBy = (requestState: string): 'state' | 'caller' => {
    const request = new IncomingMessage(new Socket());
    identifyCaller(request, 'alice');
    let served = 0;
    asked.length = 0;
    const frame = requestFrame(1, 'tools/call', { name: 'x', requestState });
    const serve = (): void => {
      served += 1;
    };
    router.route(() => calls.search(frame, request), { request, response: new ServerResponse(request), serve }, frame);
    t.is(served, 1);
    return asked.length === 0 ? 'state' : 'caller';
  };
  const callId = cluster.tags.join('call', cluster.tags.seal(cluster.self));
  return { ledBy, callId };
}

const stateOf = (fields: object): string => `${Buffer.from(JSON.stringify(fields)).toString('base64url')}.seal`;

test('a call that goes on is led to where its state says that it is', async (t) => {
  const { ledBy, callId } = await startRouter(t);
  t.is(ledBy(stateOf({ c: callId })), 'state');
  t.is(ledBy(stateOf({ c: 'nobody' })), 'caller');
});

test('a state that is longer than any of ours is not read', async (t) => {
  const { ledBy, callId } = await startRouter(t);
  t.is(ledBy(stateOf({ c: callId, padding: 'x'.repeat(MAX_STATE_LENGTH) })), 'caller');
});
