import test from 'ava';
import {
  CARRIED_CAPABILITIES,
  missingCapability,
  parseLogLevel,
  readClientCapabilities,
  severityOf,
} from '../../../src/mcp/vocabulary/client-declarations.ts';

for (const [title, params] of [
  ['none', {}],
  ['no params', undefined],
  ['null params', null],
  ['null', { capabilities: null }],
  ['a string', { capabilities: 'all' }],
] as const) {
  test(`a client that declares ${title} has no capability`, (t) => {
    t.deepEqual(readClientCapabilities(params), {});
  });
}

test('of capabilities it is read that they were declared, and nothing that would have to be kept', (t) => {
  const capabilities = {
    sampling: { context: { x: 1 } },
    roots: null,
    elicitation: { form: { x: 1 }, url: null, x: 1 },
    experimental: { x: {} },
  };
  t.deepEqual(readClientCapabilities({ capabilities, protocolVersion: '2025-11-25' }), {
    sampling: {},
    elicitation: { form: {} },
  });
});

const SAMPLE = 'sampling/createMessage';
const ELICIT = 'elicitation/create';
const ROOTS = 'roots/list';
const url = { mode: 'url', url: 'https://a.example', elicitationId: '1' };
const form = { mode: 'form' };

for (const [method, params, declared, missing] of [
  [SAMPLE, {}, {}, 'sampling'],
  [SAMPLE, {}, { sampling: {} }, undefined],
  [SAMPLE, {}, { elicitation: {}, roots: {} }, 'sampling'],
  [ROOTS, undefined, {}, 'roots'],
  [ROOTS, undefined, { roots: { listChanged: true } }, undefined],
  [ELICIT, form, {}, 'elicitation'],
  [ELICIT, {}, { elicitation: {} }, undefined],
  [ELICIT, form, { elicitation: {} }, undefined],
  [ELICIT, form, { elicitation: { form: {} } }, undefined],
  [ELICIT, form, { elicitation: { url: {} } }, 'elicitation.form'],
  [ELICIT, {}, { elicitation: { url: {} } }, 'elicitation.form'],
  [ELICIT, url, { elicitation: {} }, 'elicitation.url'],
  [ELICIT, url, { elicitation: { form: {} } }, 'elicitation.url'],
  [ELICIT, url, { elicitation: { form: {}, url: {} } }, undefined],
  [ELICIT, undefined, { elicitation: {} }, undefined],
  [SAMPLE, {}, { sampling: null }, 'sampling'],
  [SAMPLE, {}, { sampling: false }, 'sampling'],
  [ROOTS, undefined, { roots: null }, 'roots'],
  [ELICIT, form, { elicitation: null }, 'elicitation'],
  [ELICIT, form, { elicitation: { form: null, url: {} } }, 'elicitation.form'],
  [ELICIT, form, { elicitation: { url: null } }, undefined],
  [ELICIT, url, { elicitation: { url: false } }, 'elicitation.url'],
  ['ping', undefined, {}, undefined],
  ['x-vendor/ask', {}, {}, undefined],
  ['__proto__', {}, {}, undefined],
  [undefined, {}, {}, undefined],
] as const) {
  const outcome = missing === undefined ? 'may be asked' : `lacks ${missing}`;
  test(`${method} ${JSON.stringify(params)}: a client with ${JSON.stringify(declared)} ${outcome}`, (t) => {
    t.is(missingCapability(readClientCapabilities({ capabilities: declared }), method, params), missing);
  });
}

test('what the bridge declares for its clients covers every request it can carry', (t) => {
  for (const [method, params] of [
    [SAMPLE, {}],
    [ROOTS, undefined],
    [ELICIT, form],
    [ELICIT, url],
  ] as const) {
    t.is(missingCapability(CARRIED_CAPABILITIES, method, params), undefined);
  }
  t.false('listChanged' in CARRIED_CAPABILITIES.roots);
});

const LEAST_SEVERE_FIRST = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

test('knows the levels of the specification in their order', (t) => {
  t.deepEqual(
    LEAST_SEVERE_FIRST.map((name) => {
      const level = parseLogLevel(name);
      return level && severityOf(level);
    }),
    [0, 1, 2, 3, 4, 5, 6, 7],
  );
});

test('takes nothing else for a level', (t) => {
  for (const value of ['DEBUG', 'warn', '', 'constructor', '__proto__', 3, null, undefined, ['info'], {}]) {
    t.is(parseLogLevel(value), undefined);
  }
});
