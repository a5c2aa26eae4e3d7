import test from 'ava';
import { RestoredState } from '../../../src/upstream/streamable-session/restored-state.ts';
import { clientFrame } from '../../support/frames.ts';

const setLevel = (level: unknown) => clientFrame({ id: 1, method: 'logging/setLevel', params: { level } });

test('of what the server said of itself only that is kept which a new session is compared with', (t) => {
  const restored = new RestoredState();
  t.is(restored.accepted, undefined);
  const capabilities = {
    tools: { listChanged: true, more: {} },
    prompts: {},
    resources: null,
    experimental: { x: {} },
  };
  restored.accepted = { protocolVersion: '2030-01-01', capabilities };
  t.deepEqual(restored.accepted, {
    protocolVersion: '2030-01-01',
    capabilities: { tools: { listChanged: true } },
  } as object);
  restored.accepted = { protocolVersion: '1'.repeat(65) };
  t.deepEqual(restored.accepted, { protocolVersion: undefined, capabilities: {} } as object);
});

test('the level of a session is kept as the client gave it, but for what is no name of one', (t) => {
  const restored = new RestoredState();
  restored.succeeded(setLevel('x-loud'));
  t.is(restored.logLevel, 'x-loud');
  for (const level of ['x'.repeat(65), { a: 1 }]) {
    restored.succeeded(setLevel(level));
    t.is(restored.logLevel, undefined);
  }
});
