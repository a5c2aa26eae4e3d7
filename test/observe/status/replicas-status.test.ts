import test from 'ava';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import type { OtherReplicas } from '../../../src/observe/status/other-replicas.ts';
import { mergeStatus, ReplicasStatus } from '../../../src/observe/status/replicas-status.ts';
import type { StatusDocument } from '../../../src/observe/status/status-document.ts';
import { client, inspectedServer, inspection, LEGACY_STDIO, NO_REFUSALS, runCall, WallClock } from './seen.ts';

const OWN = 'http://10.0.0.1:8000';
const OTHER = 'http://10.0.0.2:8000';

function statusOf(parts: { readonly sessions: number; readonly calls: number }): StatusDocument {
  const activity = new Activity({ wallClock: new WallClock().now });
  for (let number = 0; number < parts.sessions; number += 1) activity.connected(client(), LEGACY_STDIO);
  for (let number = 0; number < parts.calls; number += 1) runCall(activity);
  const servers = [inspectedServer({ sessions: parts.sessions })];
  const none = { refusals: NO_REFUSALS, usage: undefined, hosts: [], snippets: () => undefined };
  return createStatus({ ...none, ownAddress: OWN, activity, inspect: () => inspection({ servers }) })();
}

const answered = (status: object) =>
  ({ kind: 'answered', address: OTHER, body: Buffer.from(JSON.stringify(status)) }) as const;

test('figures of replicas are added up, and who is listed stays told apart', (t) => {
  const own = statusOf({ sessions: 2, calls: 3 });
  const merged = mergeStatus({ address: OWN, status: own }, [answered(statusOf({ sessions: 1, calls: 4 }))]);
  t.is(merged.servers[0]?.sessions, 3);
  t.is(merged.calls.lastMinute.calls, 7);
  t.is(merged.calls.recent.length, 7);
  t.is(new Set(merged.clients.map(({ number }) => number)).size, merged.clients.length);
  t.is(merged.bridge.maxOpenCalls, 2 * own.bridge.maxOpenCalls);
  t.deepEqual(
    merged.replicas?.map(({ state }) => state),
    ['shown', 'shown'],
  );
});

test('a replica that says nothing, or what cannot be read, is named with the reason', (t) => {
  const own = { address: OWN, status: statusOf({ sessions: 2, calls: 3 }) };
  const reasons = [
    { kind: 'silent', address: OTHER, problem: 'ECONNREFUSED' } as const,
    answered({ shape: 99 }),
    { kind: 'answered', address: OTHER, body: Buffer.from('no JSON') } as const,
  ].map((answer) => mergeStatus(own, [answer]).replicas?.[1]);
  t.deepEqual(
    reasons.map((replica) => replica?.problem),
    ['ECONNREFUSED', 'it is of another version', 'what it answers is no status'],
  );
  t.true(reasons.every((replica) => replica?.state === 'silent' && replica.address === OTHER));
});

test('however many look, the others are asked once in a while', async (t) => {
  let asked = 0;
  let nowMs = 0;
  const others: OtherReplicas = {
    ownAddress: OWN,
    addresses: async () => [OWN],
    ask: async () => {
      asked += 1;
      return [];
    },
  };
  const own = statusOf({ sessions: 0, calls: 0 });
  const replicas = new ReplicasStatus(
    () => own,
    others,
    () => nowMs,
  );
  await Promise.all([replicas.read(), replicas.read()]);
  await replicas.read();
  t.is(asked, 1);
  nowMs += 1000;
  await replicas.read();
  t.is(asked, 2);
});
