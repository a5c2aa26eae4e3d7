import type { IncomingMessage, ServerResponse } from 'node:http';
import test from 'ava';
import { pino } from 'pino';
import { identifyCaller } from '../../../src/http/auth/callers.ts';
import { refusalOf } from '../../../src/http/server/respond.ts';
import { CallFinder } from '../../../src/replicas/forwarding/call-finder.ts';
import type { Forwarder } from '../../../src/replicas/forwarding/forwarder.ts';
import type { ForwardOutcome } from '../../../src/replicas/forwarding/forwarding.ts';
import { Router } from '../../../src/replicas/forwarding/router.ts';
import type { CallerOwners } from '../../../src/replicas/ownership/caller-owners.ts';
import type { Cluster } from '../../../src/replicas/ownership/cluster.ts';
import type { LeaseVerdict } from '../../../src/replicas/ownership/peer-leases.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { clientFrame } from '../../support/frames.ts';

const LEASE_MS = 15_000;
const OWNER = { id: 'owner', address: 'http://owner' };
const log = pino({ level: 'silent' });

/** A call that goes on with a task of another replica, at one that cannot reach it. */
function continueTask() {
  const clock = new FakeClock();
  let verdict: LeaseVerdict = 'alive';
  let outcome: ForwardOutcome['kind'] = 'unreachable';
  let status: number | undefined;
  let isServed = false;
  const cluster = {
    confirm: () => undefined,
    wasCalled: () => false,
    leaseMs: LEASE_MS,
    self: { id: 'self', address: 'http://self' },
    tags: { ownerOf: () => OWNER },
    peers: { isDead: () => verdict === 'dead', judge: async () => verdict },
  } as unknown as Cluster;
  const owners = { find: () => 'here' } as unknown as CallerOwners;
  const forwarder: Pick<Forwarder, 'forward'> = {
    forward: (_owner, _request, done) => done({ kind: outcome } as ForwardOutcome),
  };
  const calls = new CallFinder({ cluster, owners, ownedName: () => 'caller', stage: () => 'staying' });
  const router = new Router({ cluster, forwarder, deps: { log, clock } });
  const request = { headers: {} } as IncomingMessage;
  identifyCaller(request, 'alice');
  const response = {
    writeHead: (code: number) => {
      status = code;
      return response;
    },
    end: () => response,
  } as unknown as ServerResponse;
  const frame = clientFrame({ id: 1, method: 'tasks/get', params: { taskId: 'task' } });
  router.route(() => calls.search(frame, request), { request, response, serve: () => (isServed = true) }, frame);
  return {
    clock,
    died: () => (verdict = 'dead'),
    back: () => (outcome = 'responded'),
    get status() {
      return status;
    },
    get isServed() {
      return isServed;
    },
    get refusal() {
      return refusalOf(response);
    },
  };
}

test('a call that goes on with something of a crashed replica waits until that is known to be dead', async (t) => {
  const call = continueTask();
  await call.clock.advanceInSteps(0.9 * LEASE_MS, 500);
  t.is(call.status, undefined);
  call.died();
  await call.clock.advanceInSteps(0.2 * LEASE_MS, 500);
  t.is(call.status, undefined);
  t.true(call.isServed);
  t.is(call.clock.pendingTimers, 0);
});

test('a call that goes on with something of a replica that lives and stays out of reach is told so after two leases', async (t) => {
  const call = continueTask();
  await call.clock.advanceInSteps(1.9 * LEASE_MS, 500);
  t.is(call.status, undefined);
  await call.clock.advanceInSteps(0.3 * LEASE_MS, 500);
  t.is(call.status, 503);
  t.is(call.refusal, 'ERR_CLUSTER_OWNER');
});

test('a call that goes on with something of a replica that can be reached again is passed on to it', async (t) => {
  const call = continueTask();
  await call.clock.advanceInSteps(0.5 * LEASE_MS, 500);
  call.back();
  await call.clock.advanceInSteps(3 * LEASE_MS, 500);
  t.is(call.status, undefined);
  t.is(call.clock.pendingTimers, 0);
});
