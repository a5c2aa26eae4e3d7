import test from 'ava';
import { DEPRECATIONS } from '../../../src/mcp/vocabulary/deprecations.ts';

test('each deprecation has the date from which it may go, as the registry of 2026-07-28 has it', (t) => {
  t.deepEqual(
    DEPRECATIONS.map(({ name, removal }) => [name, 'date' in removal ? removal.date : removal.kind]),
    [
      ['batch', 'removed'],
      ['http-sse', '2026-09-03'],
      ['sampling', '2027-07-28'],
      ['roots', '2027-07-28'],
      ['logging', '2027-07-28'],
      ['dynamic-client-registration', '2027-07-28'],
      ['old-revision', 'undated'],
    ],
  );
});

test('each deprecation names a page of the specification', (t) => {
  for (const { source } of DEPRECATIONS) t.is(new URL(source).host, 'modelcontextprotocol.io');
});
