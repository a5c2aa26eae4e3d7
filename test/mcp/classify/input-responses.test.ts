import test from 'ava';
import { readInputResponses, toInputResponse } from '../../../src/mcp/classify/input-responses.ts';
import { clientFrame } from '../../support/frames.ts';

const asked = new Map([
  ['e', 'elicitation/create'],
  ['s', 'sampling/createMessage'],
  ['r', 'roots/list'],
]);
const retry = (params: string) => clientFrame(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);

function read(params: string) {
  const { answers, missing } = readInputResponses(retry(params), asked);
  return { answers: Object.fromEntries([...answers].map(([key, text]) => [key, text.toString()])), missing };
}

const sampled = '{"role":"assistant","model":"m","content":{"type":"text","text":"x","n":1e400}}';

test('reads the answers, byte for byte, and ignores those nobody asked for', (t) => {
  const responses = `{"x":{},"e":{"action":"accept","content":{}},"s":${sampled},"__proto__":{},"r":{"roots":[]}}`;
  t.deepEqual(read(`{"inputResponses":${responses}}`), {
    answers: { e: '{"action":"accept","content":{}}', s: sampled, r: '{"roots":[]}' },
    missing: [],
  });
});

test('knows what is still missing', (t) => {
  t.deepEqual(read('{"inputResponses":{"r":{"roots":[]}}}').missing, ['e', 's']);
  for (const params of ['{}', '{"inputResponses":[]}', '{"inputResponses":null}', '[]']) {
    t.deepEqual(read(params), { answers: {}, missing: ['e', 's', 'r'] }, params);
  }
  const twice = '{"inputResponses":{"r":{"roots":[]}},"inputResponses":{"r":{"roots":[]}}}';
  t.deepEqual(read(twice).missing, ['e', 's', 'r']);
});

for (const [key, title, response] of [
  ['e', 'null', 'null'],
  ['e', 'a list', '[]'],
  ['e', 'no action', '{"content":{}}'],
  ['e', 'an unknown action', '{"action":"maybe"}'],
  ['e', 'two actions', '{"action":"accept","action":"cancel"}'],
  ['s', 'no role', '{"model":"m","content":{}}'],
  ['s', 'no model', '{"role":"user","content":{}}'],
  ['s', 'a text for content', '{"role":"user","model":"m","content":"x"}'],
  ['r', 'no roots', '{}'],
  ['r', 'roots that are no list', '{"roots":{}}'],
] as const) {
  test(`takes an answer to ${asked.get(key)} with ${title} for missing`, (t) => {
    t.deepEqual(read(`{"inputResponses":{"${key}":${response}}}`), { answers: {}, missing: [...asked.keys()] });
  });
}

test('takes two answers to one question for missing', (t) => {
  const twice = '{"inputResponses":{"r":{"roots":[]},"r":{"roots":[1]},"r":{"roots":[2]}}}';
  t.deepEqual(read(twice), { answers: {}, missing: ['e', 's', 'r'] });
});

test('takes several blocks of content', (t) => {
  t.deepEqual(read('{"inputResponses":{"s":{"role":"user","model":"m","content":[]}}}').missing, ['e', 'r']);
});

for (const [title, method, result, expected, mode] of [
  [
    'an accepted form',
    'elicitation/create',
    '{"action":"accept","content":{"a":1e400}}',
    '{"action":"accept","content":{"a":1e400}}',
  ],
  [
    'a declined form with content',
    'elicitation/create',
    '{"action":"decline","content":{"a":1},"_meta":{}}',
    '{"action":"decline","_meta":{}}',
  ],
  ['an opened URL', 'elicitation/create', '{"action":"accept"}', '{"action":"accept"}', 'url'],
  [
    'an opened URL with content',
    'elicitation/create',
    '{"content":{"a":1},"action":"accept","_meta":{}}',
    '{"action":"accept","_meta":{}}',
    'url',
  ],
  ['a canceled form', 'elicitation/create', '{"action":"cancel"}', '{"action":"cancel"}'],
  ['a sample', 'sampling/createMessage', sampled, sampled],
  ['roots', 'roots/list', '{"roots":[],"x":1}', '{"roots":[],"x":1}'],
  ['nothing of use', 'roots/list', '{}', undefined],
  ['no object', 'elicitation/create', '[]', undefined],
] as const) {
  test(`makes an input response of ${title}`, (t) => {
    const frame = clientFrame(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
    t.is(toInputResponse({ method, isUrlMode: mode === 'url' }, frame)?.toString(), expected);
  });
}

test('looks at a thousand answers; those after them are missing', (t) => {
  const others = Array.from({ length: 1000 }, (_, index) => `"other${index}":{}`).join(',');
  const [first = ''] = asked.keys();
  const { missing } = read(`{"inputResponses":{${others},"${first}":${sampled}}}`);
  t.true(missing.includes(first));
});
