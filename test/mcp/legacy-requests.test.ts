import test from 'ava';
import { toLegacyRequest } from '../../src/mcp/legacy-requests.ts';
import { clientFrame } from '../support/frames.ts';

const request = (method: string, params: string) =>
  clientFrame(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`);

for (const [title, method, revision, before, after] of [
  ['arguments to a call that has none', 'tools/call', '2025-11-25', '{"name":"x" }', '{"name":"x","arguments":{} }'],
  ['arguments to a call where they are null', 'tools/call', '2024-11-05', '{"arguments":null}', '{"arguments":{}}'],
  [
    'nothing to a call that has some',
    'tools/call',
    '2024-11-05',
    '{"arguments":{"a":1e400}}',
    '{"arguments":{"a":1e400}}',
  ],
  ['nothing to other requests', 'prompts/get', '2024-11-05', '{"name":"x","context":{}}', '{"name":"x","context":{}}'],
  ['nothing to params by position', 'tools/call', '2024-11-05', '[1]', '[1]'],
] as const) {
  test(`adds ${title}`, (t) => {
    t.deepEqual(toLegacyRequest(request(method, before), revision), request(method, after));
  });
}

for (const [revision, isKnown] of [
  ['2024-11-05', false],
  ['2025-03-26', false],
  ['2025-06-18', true],
  ['2025-11-25', true],
] as const) {
  test(`${isKnown ? 'keeps' : 'drops'} the context of a completion for a server of ${revision}`, (t) => {
    const frame = request('completion/complete', '{"ref":{},"context":{"arguments":{}},"argument":{}}');
    const expected = isKnown ? frame : request('completion/complete', '{"ref":{},"argument":{}}');
    t.deepEqual(toLegacyRequest(frame, revision), expected);
  });
}
