import test from 'ava';
import { withoutArguments } from '../../../src/relay/sessions/resumable-call.ts';
import { clientFrame } from '../../support/frames.ts';

const left = (params: object | undefined): unknown =>
  (withoutArguments(clientFrame({ id: 'a', method: 'tools/call', params })).json() as { params: unknown }).params;

test('of a call only what tells it from others is kept: its id, its method, its tool and its progress token', (t) => {
  const params = { name: 'echo', arguments: { text: 'secret' }, _meta: { progressToken: 7, own: 1 } };
  t.deepEqual(withoutArguments(clientFrame({ id: 'a', method: 'tools/call', params })).json(), {
    jsonrpc: '2.0',
    id: 'a',
    method: 'tools/call',
    params: { name: 'echo', _meta: { progressToken: 7 } },
  });
});

test('a name is kept up to a limit, and left out where it is none', (t) => {
  const longest = 'x'.repeat(256);
  t.deepEqual(left({ name: longest }), { name: longest, _meta: {} });
  t.deepEqual(left({ name: `${longest}x` }), { _meta: {} });
  t.deepEqual(left({ name: ['secret'] }), { _meta: {} });
  t.deepEqual(left(undefined), { _meta: {} });
});
