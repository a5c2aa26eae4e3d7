import test from 'ava';
import { refuseInput } from '../../../src/mcp/classify/input-required.ts';

for (const [title, capabilities, method, params, expected] of [
  ['sampling', { sampling: {} }, 'sampling/createMessage', {}, undefined],
  ['sampling undeclared', {}, 'sampling/createMessage', {}, [-32601, 'sampling']],
  ['sampling with tools', { sampling: { tools: {} } }, 'sampling/createMessage', { tools: [] }, undefined],
  [
    'sampling with tools undeclared',
    { sampling: {} },
    'sampling/createMessage',
    { tools: [] },
    [-32602, 'sampling.tools'],
  ],
  [
    'sampling with a choice of tools undeclared',
    { sampling: { tools: null } },
    'sampling/createMessage',
    { toolChoice: {} },
    [-32602, 'sampling.tools'],
  ],
  ['roots', { roots: {} }, 'roots/list', undefined, undefined],
  ['roots undeclared', { roots: false }, 'roots/list', undefined, [-32601, 'roots']],
  ['a form', { elicitation: {} }, 'elicitation/create', {}, undefined],
  ['a form by name', { elicitation: { form: {} } }, 'elicitation/create', { mode: 'form' }, undefined],
  [
    'a form for a client that opens URLs',
    { elicitation: { url: {} } },
    'elicitation/create',
    {},
    [-32602, 'elicitation.form'],
  ],
  ['a URL', { elicitation: { url: {} } }, 'elicitation/create', { mode: 'url' }, undefined],
  [
    'a URL for a client with forms',
    { elicitation: {} },
    'elicitation/create',
    { mode: 'url' },
    [-32602, 'elicitation.url'],
  ],
  ['elicitation undeclared', {}, 'elicitation/create', {}, [-32601, 'elicitation']],
] as const) {
  test(`judges a question of a server: ${title}`, (t) => {
    const refusal = refuseInput(capabilities, method, params && Buffer.from(JSON.stringify(params)));
    const told = expected && { code: expected[0], message: `the client did not declare ${expected[1]}` };
    t.deepEqual(refusal, told);
  });
}

test('refuses what no client is asked', (t) => {
  const capabilities = { sampling: {}, roots: {}, elicitation: {} };
  for (const method of ['ping', 'tools/call', 'vendor/x', 'constructor']) {
    t.deepEqual(refuseInput(capabilities, method, undefined), { code: -32601, message: 'clients have no such method' });
  }
});

test('knows a mode however it is spelled, and refuses two', (t) => {
  const refuse = (params: string) => refuseInput({ elicitation: {} }, 'elicitation/create', Buffer.from(params));
  t.is(refuse('{"mode":"\\u0075rl"}')?.message, 'the client did not declare elicitation.url');
  t.is(refuse('{"mode":"form","mode":"url"}')?.message, 'mode occurs twice');
  t.is(refuse('{"mode":null}'), undefined);
});
