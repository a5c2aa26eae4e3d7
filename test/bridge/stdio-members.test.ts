/** The members of the aggregate of `connect`, which are real processes here. */
import test from 'ava';
import { dialAggregate } from '../../src/bridge/stdio-members.ts';
import { BridgeError } from '../../src/errors.ts';
import { readOptions } from '../../src/library/read-options.ts';
import { fixture } from '../process/child-spec.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { STDIO } from '../relay/sessions/registry-bench.ts';
import { FakeLane, FakePeer } from '../support/fake-peers.ts';
import { clientFrame } from '../support/frames.ts';
import { initialize } from '../support/legacy-clients.ts';
import { assertGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

const ECHO = { command: process.execPath, args: [fixture('echo')] };
const UNSEEN = {
  observer: undefined,
  tracer: undefined,
  refusal: undefined,
  observeServer: undefined,
  tapsOf: undefined,
};

test('each session with a member is a process of its own, which ends with the bridge', async (t) => {
  const { deps, entries } = createTestDeps();
  const { config } = await readOptions('connect', { servers: { one: ECHO, two: ECHO } });
  const urgency = new AbortController().signal;
  const { dialed, members } = await dialAggregate(config, { observation: UNSEEN, urgency }, deps);
  t.teardown(() => members.killNow());
  t.deepEqual(
    members.all.map(({ name, prefix }) => [name, prefix]),
    [
      ['one', 'one'],
      ['two', 'two'],
    ],
  );
  const started = () => entries.filter(({ msg }) => msg === 'server started').map(({ childPid }) => Number(childPid));
  const [one] = members.all;
  const server = await one?.start();
  t.deepEqual(started(), [], 'a member without a session needs no process');
  const peer = new FakePeer();
  const session = server?.sessions.open(() => peer, STDIO);
  session?.relay.fromClient(clientFrame(initialize()), new FakeLane());
  await waitFor(() => peer.sent.length > 0);
  t.is(peer.sent[0]?.frame.kind, 'result');
  t.is(started().length, 1);
  await dialed.close();
  await members.close(new BridgeError('ERR_SESSION_CLOSED', 'the test is over'));
  await assertGone(started());
});
