import test from 'ava';
import { HandshakingClient } from '../../../../src/relay/shared/legacy/handshaking-client.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeServerListener } from '../../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../../support/frames.ts';
import { EXITED, SharedBridge } from './shared-bridge.ts';

const ROOTS = serverFrame({ id: 'q', method: 'roots/list' });
const CHANGED = { method: 'notifications/tools/list_changed' };

test('initialized is noted, not passed on: the server has had its own', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.connect();
  bridge.answerHandshake();
  client.initialize();
  bridge.heard();
  client.heard();
  bridge.says(CHANGED);
  t.deepEqual(client.heard(), []);
  client.says({ method: 'notifications/initialized' });
  bridge.says(CHANGED);
  t.is(client.heard().length, 1);
  t.deepEqual(bridge.heard(), []);
});

test('initialized is noted while no server serves, too', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.connect();
  bridge.answerHandshake();
  client.initialize();
  bridge.exits(EXITED);
  client.heard();
  client.says({ method: 'notifications/initialized' });
  bridge.restart();
  client.heard();
  bridge.heard();
  bridge.says(CHANGED);
  t.is(client.heard().length, 1);
});

for (const [title, params, revision, hasRoots] of [
  ['what it asked for', { protocolVersion: '2025-03-26', capabilities: { roots: {} } }, '2025-03-26', true],
  ['a revision nobody knows', { protocolVersion: '1.0', capabilities: {} }, '2025-11-25', false],
  ['nothing', undefined, '2025-11-25', false],
] as const) {
  test(`a client that says ${title} is introduced as one of ${revision} ${hasRoots ? 'with' : 'without'} roots`, (t) => {
    const client = new HandshakingClient(new FakeServerListener(), new FakeClock());
    t.false(client.isIntroduced);
    t.is(client.introduce(clientFrame({ id: 1, method: 'initialize', params }), '2025-11-25'), revision);
    t.true(client.isIntroduced);
    t.is(client.asked(ROOTS) === ROOTS, hasRoots);
  });
}
