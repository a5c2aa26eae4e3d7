import test from 'ava';
import { isSessionId } from '../../../src/mcp/vocabulary/header-value.ts';

test('a session id is visible ASCII that fits into a header', (t) => {
  for (const id of ['a', '!~', 'x'.repeat(4096)]) t.true(isSessionId(id), id.slice(0, 10));
  for (const id of [undefined, ['a', 'b'], '', ' ', 'a b', 'a\tb', 'ä', 'a\r\nX: y', 'x'.repeat(4097)]) {
    t.false(isSessionId(id), JSON.stringify(id)?.slice(0, 20));
  }
});
