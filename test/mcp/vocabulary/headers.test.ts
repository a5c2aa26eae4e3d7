import test from 'ava';
import * as headers from '../../../src/mcp/vocabulary/headers.ts';

test('header names are those of the specification', (t) => {
  t.like(headers, {
    SESSION_ID_HEADER_OUT: 'Mcp-Session-Id',
    PROTOCOL_VERSION_HEADER: 'mcp-protocol-version',
    LAST_EVENT_ID_HEADER: 'last-event-id',
  });
});

test('names to read are in lower case, as Node gives them, and the same as those to write', (t) => {
  const named: Readonly<Record<string, string>> = headers;
  for (const [constant, name] of Object.entries(named)) {
    const written = named[`${constant}_OUT`];
    if (constant.endsWith('_OUT')) continue;
    t.is(name, name.toLowerCase());
    if (written !== undefined) t.is(written.toLowerCase(), name);
  }
});
