/** Modern clients of one legacy server that all share, which legacy clients may use as well. */
import test from 'ava';
import { createModernToLegacyDialer } from '../../../src/eras/modern-to-legacy/dialer.ts';
import { ABANDONED_MS } from '../../../src/relay/shared/legacy/attribution.ts';
import { only, reasonOf, SharedBridge } from '../../relay/shared/legacy/shared-bridge.ts';
import { ALL, ModernRequest } from './modern-bridge.ts';

const ASK = { method: 'elicitation/create', params: { message: 'who?', requestedSchema: { type: 'object' } } };

class World {
  readonly bridge = new SharedBridge();
  readonly modern = createModernToLegacyDialer({
    dialer: this.bridge.server,
    deps: this.bridge.deps,
    handshakeTimeoutMs: 0,
    clientInfo: { name: 'bridge', version: '0' },
    sharing: 'by-name',
    attribution: 'none',
  });

  constructor() {
    this.call('first').leaves();
    this.bridge.answerHandshake();
    this.bridge.heard();
  }

  call(name: string, principal = 'ada'): ModernRequest {
    return new ModernRequest(this.modern, 'tools/call', { name, arguments: {} }, { principal, capabilities: ALL });
  }

  /** The id of the only call that was sent since the last look. */
  sentId(): unknown {
    return only(this.bridge.heard().filter(({ method }) => method === 'tools/call')).id;
  }

  /** What the server hears of a question that nobody is asked. */
  refusal(): unknown {
    this.bridge.says({ id: 'q', ...ASK });
    return reasonOf(only(this.bridge.heard()));
  }

  isAsked(request: ModernRequest): boolean {
    this.bridge.says({ id: 'r', ...ASK });
    this.bridge.clock.advance(25);
    return request.answer().result?.resultType === 'input_required';
  }
}

for (const other of ['ada', 'bob']) {
  test(`after a call of ada was canceled, ${other} is asked once the server has answered it`, (t) => {
    const world = new World();
    const canceled = world.call('cancelled');
    const id = world.sentId();
    canceled.leaves();
    const next = world.call('next', other);
    world.bridge.heard();
    t.is(world.refusal(), 'ERR_SHARED_AMBIGUOUS');
    world.bridge.says({ id, result: { content: [] } });
    t.true(world.isAsked(next));
    t.deepEqual(canceled.told(), []);
  });

  test(`after a call of ada was canceled, ${other} is asked 10 s later, whatever the server says of it`, (t) => {
    const world = new World();
    world.call('cancelled').leaves();
    const next = world.call('next', other);
    world.bridge.heard();
    world.bridge.clock.advance(ABANDONED_MS - 1);
    t.is(world.refusal(), 'ERR_SHARED_AMBIGUOUS');
    world.bridge.clock.advance(1);
    t.true(world.isAsked(next));
  });
}

test('the late answer to a canceled call is none to a call that its client has made under the same id', (t) => {
  const { bridge } = new World();
  const client = bridge.join();
  client.call(1);
  const { id } = only(bridge.heard());
  client.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  client.call(1);
  bridge.says({ id, result: { of: 'the first' } });
  t.deepEqual(client.heard(), []);
  t.is(client.relay.openCalls, 1);
});
