import test from 'ava';
import fc from 'fast-check';
import { Frame, withId } from '../../src/wire/frame.ts';
import { EnvelopeScanner, scanEnvelope } from '../../src/wire/scan-envelope.ts';
import { progressLine } from '../support/progress-lines.ts';

test('finds in each line what the plain scan finds, whatever came before', (t) => {
  const lines = fc.array(progressLine, { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(lines, (all) => {
      const scanner = new EnvelopeScanner();
      for (const line of all) t.deepEqual(scanner.scan(line), scanEnvelope(line), line.toString());
    }),
    { numRuns: 2000 },
  );
});

test('does not take a message that only starts like a notification for one', (t) => {
  const scanner = new EnvelopeScanner();
  const start = '{"jsonrpc":"2.0","method":"m","params":{}';
  t.is(scanner.scan(Buffer.from(`${start}}`))?.kind, 'notification');
  t.is(scanner.scan(Buffer.from(`${start},"id":7}`))?.kind, 'request');
  t.is(scanner.scan(Buffer.from(`${start},"method":"n"}`))?.method, 'n');
  t.is(scanner.scan(Buffer.from(`${start}`)), undefined);
  t.is(scanner.scan(Buffer.from(`${start}}`))?.method, 'm');
});

test('does not learn what stands after the params', (t) => {
  const scanner = new EnvelopeScanner();
  const start = '{"jsonrpc":"2.0","method":"m","params":{}';
  t.is(scanner.scan(Buffer.from(`${start},"method":"n"}`))?.method, 'n');
  t.is(scanner.scan(Buffer.from(`${start}}`))?.method, 'm');
});

test('keeps nothing of a line but a copy of its start', (t) => {
  const scanner = new EnvelopeScanner();
  const line = Buffer.from('{"jsonrpc":"2.0","method":"m","params":{}}');
  scanner.scan(line);
  line.fill(0x20);
  t.is(scanner.scan(line), undefined);
  t.is(scanner.scan(Buffer.from('{"jsonrpc":"2.0","method":"m","params":{"a":1}}'))?.method, 'm');
});

for (const [token, id] of [
  ['5.0', 5],
  ['5e0', 5],
  ['-5.00', -5],
  ['5.5', undefined],
  ['1e99', undefined],
  ['true', undefined],
] as const) {
  test(`reads the id ${token} of a server as ${id}, wherever it stands`, (t) => {
    const scanner = new EnvelopeScanner();
    for (const line of [
      `{"jsonrpc":"2.0","id":${token},"result":{"id":${token}}}`,
      `{"jsonrpc":"2.0","result":{"id":${token}},"id":${token}}`,
      `{"result":{"id":${token}},"id": ${token} ,"jsonrpc":"2.0"}`,
    ]) {
      const bytes = Buffer.from(line);
      const envelope = scanner.scan(bytes);
      t.is(envelope?.id, id);
      if (envelope !== undefined)
        t.deepEqual(withId(new Frame(bytes, envelope), 7).json(), {
          jsonrpc: '2.0',
          id: 7,
          result: { id: Number(token) },
        });
    }
  });
}
