import test from 'ava';
import { showMessage } from '../../src/recording/shown-message.ts';
import { Frame } from '../../src/wire/frame.ts';
import { scanEnvelope } from '../../src/wire/scan-envelope.ts';

function frameOf(text: string): Frame {
  const bytes = Buffer.from(text);
  const envelope = scanEnvelope(bytes);
  if (envelope === undefined) throw new Error('not a message');
  return new Frame(bytes, envelope);
}

const cut = (message: object, maxMessageBytes: number) =>
  showMessage(frameOf(JSON.stringify(message)), { secrets: 'hidden', maxMessageBytes });

test('a message within the limit is shown as it is', (t) => {
  const message = { jsonrpc: '2.0', id: 1, method: 'ping' };
  t.deepEqual(cut(message, 1000), { text: JSON.stringify(message), hidden: 0, isCut: false });
});

test('a larger message keeps its envelope, and the beginning of its payload as a text', (t) => {
  const params = { name: 'x', arguments: { password: 'hunter2', text: 'ü'.repeat(3000) } };
  const shown = cut({ jsonrpc: '2.0', id: 'one', method: 'tools/call', params }, 1000);
  t.like(shown, { isCut: true, hidden: 1 });
  const message = JSON.parse(shown?.text ?? '') as { readonly params: string };
  t.like(message, { jsonrpc: '2.0', id: 'one', method: 'tools/call' });
  t.true(message.params.startsWith('{"name":"x","arguments":{"password":"[hidden]","text":"üü'));
  t.true(Buffer.byteLength(message.params) <= 1000);
  t.false(message.params.includes('\ufffd'));
});

test('results and errors are cut in the same way, wherever the id stands', (t) => {
  const result = showMessage(frameOf(`{"result":{"text":"${'x'.repeat(9000)}"},"jsonrpc":"2.0","id":5}`), {
    secrets: 'kept',
    maxMessageBytes: 100,
  });
  t.like(JSON.parse(result?.text ?? ''), { id: 5 });
  const error = cut({ jsonrpc: '2.0', id: 6, error: { code: -1, message: 'x'.repeat(9000) } }, 100);
  t.regex(String(Reflect.get(JSON.parse(error?.text ?? ''), 'error')), /^\{"code":-1,"message":"x+$/);
});

test('a secret on the edge of the cut is hidden, and not its beginning shown', (t) => {
  for (let length = 60; length < 120; length += 1) {
    const text = `${'x'.repeat(length)} ghp_abcdefghijklmnopqrstuvwxyz0123456789 ${'y'.repeat(20_000)}`;
    const shown = cut({ jsonrpc: '2.0', id: 1, result: { text } }, 150);
    t.false(/ghp_?/.test(shown?.text ?? ''), `${length}`);
  }
});

test('what no reader could parse is not recorded', (t) => {
  const format = { secrets: 'hidden', maxMessageBytes: 1000 } as const;
  t.is(showMessage(frameOf('{"jsonrpc":"2.0","id":1,"result":{"a":}}'), format), undefined);
});
