/** A script at a pipe: it says all it has to say at once, ends its input, and reads. Needs a current build. */
import test from 'ava';
import { INITIALIZE, startConnect } from '../cli/stdio-program.ts';
import { assertGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { SERVER_NAMES, SERVERS, type ServerName } from './servers.ts';

const CALLS = [
  { name: 'echo', arguments: { value: 'said at once' } },
  { name: 'big', arguments: { bytes: 1024 * 1024 } },
  { name: 'later', arguments: { value: 'said later', ms: 300 } },
];
/** Of this one it would be asked something itself. Where no answer reaches who asks, that would wait for one. */
const QUESTION = { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: {} } };
const MUTE: readonly ServerName[] = ['stateless', 'statelessJson'];
const CAPABILITIES = { elicitation: {} };

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'script', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': CAPABILITIES,
};

const SCRIPTS = {
  legacy: (calls: readonly object[]) => [
    { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: CAPABILITIES } },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    ...calls.map((params, index) => ({ jsonrpc: '2.0', id: index + 1, method: 'tools/call', params })),
  ],
  modern: (calls: readonly object[]) => [
    { jsonrpc: '2.0', id: 0, method: 'tools/list', params: { _meta: META } },
    ...calls.map((params, index) => {
      return { jsonrpc: '2.0', id: index + 1, method: 'tools/call', params: { ...params, _meta: META } };
    }),
  ],
};

for (const [era, write] of Object.entries(SCRIPTS)) {
  for (const name of SERVER_NAMES) {
    test.serial(`a ${era} script → ${SERVERS[name].title}: all it asks is answered, once`, async (t) => {
      const { target, stop } = await SERVERS[name].start();
      t.teardown(stop);
      const program = startConnect(t, target);
      const calls = MUTE.includes(name) ? CALLS : [...CALLS, { name: 'ask', arguments: QUESTION }];
      for (const message of write(calls)) program.send(message);
      program.child.stdin.end();
      const children = await waitFor(() => program.lines.length > 0 && program.children());
      t.deepEqual(await program.exited, { code: 0, signal: null });
      await assertGone(children);

      const answers = program.lines
        .map((line) => JSON.parse(line))
        .filter((message) => message.id !== undefined && message.method === undefined)
        .sort((a, b) => a.id - b.id);
      t.deepEqual(
        answers.map(({ id }) => id),
        [...Array(calls.length + 1).keys()],
      );
      const [, echo, big, later, asked] = answers;
      t.is(echo.result.content[0].text, 'said at once');
      t.true(Buffer.byteLength(big.result.content[0].text) >= 1024 * 1024);
      t.is(later.result.content[0].text, 'said later');
      if (asked === undefined) return;
      if (era === 'modern') t.is(asked.result.resultType, 'input_required');
      else t.regex(JSON.stringify(asked), /error/, 'nobody is there to be asked');
    });
  }
}

for (const [era, write] of Object.entries(SCRIPTS)) {
  test(`a ${era} script → a server that is not there: all it asks is told that it cannot be reached`, async (t) => {
    const program = startConnect(t, ['http://127.0.0.1:1/mcp']);
    for (const message of write(CALLS)) program.send(message);
    program.child.stdin.end();
    await program.exited;
    t.deepEqual(
      program.lines
        .map((line) => JSON.parse(line))
        .map(({ id, error }) => [id, error.data.bridge.reason])
        .sort(),
      [...Array(CALLS.length + 1).keys()].map((id) => [id, 'ERR_UPSTREAM_CONNECT']),
    );
  });
}
