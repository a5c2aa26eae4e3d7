import test from 'ava';
import fc from 'fast-check';
import {
  canonicalCapabilities,
  toDiscoverCapabilities,
  toInitializeCapabilities,
  toModernCapabilities,
} from '../../../src/mcp/translate/capabilities.ts';
import type { RevisionId } from '../../../src/mcp/vocabulary/revisions.ts';
import { schemaFaults } from '../../support/schema.ts';
import { anyJson, anyText } from '../../wire/json-text.ts';

const TASKS = 'io.modelcontextprotocol/tasks';
const revisions: readonly RevisionId[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

for (const [title, declared, canonical] of [
  ['nothing', {}, {}],
  ['roots without listChanged', { roots: { listChanged: true } }, { roots: {} }],
  ['sampling with what it says', { sampling: { tools: {}, other: {} } }, { sampling: { tools: {} } }],
  ['elicitation by forms when it says nothing', { elicitation: {} }, { elicitation: { form: {} } }],
  ['elicitation by URLs only', { elicitation: { url: {} } }, { elicitation: { url: {} } }],
  ['elicitation both ways', { elicitation: { url: {}, form: {} } }, { elicitation: { form: {}, url: {} } }],
  [
    'nothing that is null or false',
    { roots: null, sampling: false, elicitation: { form: null, url: {} } },
    { elicitation: { url: {} } },
  ],
  ['true as an object', { sampling: true, roots: true }, { roots: {}, sampling: {} }],
  ['extensions without tasks', { extensions: { [TASKS]: {}, 'a/b': { x: 1 } } }, { extensions: { 'a/b': { x: 1 } } }],
  ['no empty extensions', { extensions: { [TASKS]: {} }, experimental: {} }, {}],
  [
    'experiments',
    { experimental: { x: { b: [{ d: 1, c: 2 }], a: 1 } } },
    { experimental: { x: { a: 1, b: [{ c: 2, d: 1 }] } } },
  ],
  ['neither tasks nor what nobody knows', { tasks: { list: {} }, vendor: {} }, {}],
] as const) {
  test(`keeps of a client's capabilities: ${title}`, (t) => {
    const { capabilities, key } = canonicalCapabilities(declared);
    t.deepEqual(capabilities, canonical);
    t.is(key, JSON.stringify(capabilities));
  });
}

test('gives capabilities that mean the same one key, however they are written', (t) => {
  const key = (declared: object) => canonicalCapabilities({ ...declared }).key;
  t.is(
    key({ sampling: { tools: {}, context: {} }, roots: {}, extensions: { b: {}, a: {} } }),
    key({ extensions: { a: {}, b: {} }, roots: { listChanged: true }, sampling: { context: {}, tools: {} } }),
  );
  t.is(key({ elicitation: {} }), key({ elicitation: { form: {} } }));
  t.not(key({ elicitation: {} }), key({ elicitation: { url: {} } }));
  t.not(key({ sampling: {} }), key({}));
});

test('is canonical already when it was made so, and does not depend on the order of members', (t) => {
  const names = ['roots', 'sampling', 'elicitation', 'experimental', 'extensions', 'tasks', 'other'];
  const anyCapabilities = fc.dictionary(
    fc.constantFrom(...names),
    fc.oneof(anyJson, fc.dictionary(fc.oneof(fc.constantFrom('form', 'url', 'tools', TASKS), anyText), anyJson)),
  );
  fc.assert(
    fc.property(anyCapabilities, (declared) => {
      const once = canonicalCapabilities(declared);
      t.deepEqual(canonicalCapabilities(once.capabilities), once);
      const reversed = Object.fromEntries(Object.entries(declared).reverse());
      t.is(canonicalCapabilities(reversed).key, once.key);
    }),
    { numRuns: 300 },
  );
});

test('of capabilities only the text is kept, which is read anew at each look', (t) => {
  const canonical = canonicalCapabilities({ experimental: { x: { y: [] } } });
  t.deepEqual(canonical.capabilities, { experimental: { x: { y: [] } } });
  t.not(canonical.capabilities, canonical.capabilities);
});

const rich = {
  roots: { listChanged: true },
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
  tasks: { list: {} },
  experimental: { x: {} },
  extensions: { 'a/b': {}, [TASKS]: {} },
};
const common = { roots: {}, experimental: { x: {} }, extensions: { 'a/b': {} } };

for (const [revision, expected] of [
  ['2024-11-05', { ...common, sampling: {} }],
  ['2025-03-26', { ...common, sampling: {} }],
  ['2025-06-18', { ...common, sampling: {}, elicitation: { form: {} } }],
  ['2025-11-25', { ...common, sampling: { context: {}, tools: {} }, elicitation: { form: {}, url: {} } }],
] as const) {
  test(`puts the capabilities of a client of ${revision} into an envelope`, (t) => {
    const declared = toModernCapabilities(rich, revision);
    t.deepEqual(declared, expected);
    t.deepEqual(schemaFaults('2026-07-28', 'ClientCapabilities', declared), []);
  });
}

test('an empty elicitation of any revision that has it means forms', (t) => {
  for (const revision of ['2025-06-18', '2025-11-25'] as const) {
    t.deepEqual(toModernCapabilities({ elicitation: {} }, revision), { elicitation: { form: {} } });
  }
});

const server = {
  tools: { listChanged: true },
  prompts: {},
  resources: { subscribe: true, listChanged: true },
  logging: {},
  completions: {},
  tasks: { requests: { tools: { call: {} } } },
  experimental: { x: {} },
  extensions: { [TASKS]: {}, 'a/b': {} },
  vendor: 1,
};

test('tells a modern client what a legacy server can do, but for the tasks', (t) => {
  const { tasks: _, ...rest } = server;
  const told = toDiscoverCapabilities(server);
  t.deepEqual(told, { ...rest, extensions: { 'a/b': {} } });
  t.deepEqual(schemaFaults('2026-07-28', 'ServerCapabilities', told), []);
});

test('makes objects of capabilities that are none and drops those that are not declared', (t) => {
  const told = toDiscoverCapabilities({ tools: true, prompts: null, logging: false, experimental: 1 });
  t.deepEqual(told, { tools: {}, experimental: {} });
  t.deepEqual(schemaFaults('2026-07-28', 'ServerCapabilities', told), []);
});

for (const revision of revisions) {
  test(`tells a client of ${revision} what a modern server can do`, (t) => {
    const { tasks: _, completions, ...rest } = server;
    const told = toInitializeCapabilities(server, revision);
    const expected = { ...rest, extensions: { 'a/b': {} } };
    t.deepEqual(told, revision === '2024-11-05' ? expected : { ...expected, completions });
    t.deepEqual(schemaFaults(revision, 'ServerCapabilities', told), []);
  });
}
