import { readFile } from 'node:fs/promises';
import test from 'ava';
import { CLIENT_GROUPS, COMPATIBILITY_PARTS, concerns, SERVER_GROUPS } from '../../scripts/compatibility-tables.ts';
import { generatedPart } from '../../scripts/generated-part.ts';
import { CLIENT_NAMES, CLIENTS } from '../matrix/clients.ts';
import { FEATURE_NAMES, FEATURES, type Outcome } from '../matrix/features.ts';
import { FURTHER_FEATURES } from '../matrix/further-features.ts';
import { LIMITS } from '../matrix/limits.ts';
import { SCENARIOS } from '../matrix/scenarios.ts';
import { SERVER_NAMES, SERVERS } from '../matrix/servers.ts';

const document = await readFile(new URL('../../docs/reference/compatibility.md', import.meta.url), 'utf8');

for (const [name, render] of Object.entries(COMPATIBILITY_PARTS)) {
  test(`the tables of docs/reference/compatibility.md are up to date: ${name} (npm run docs)`, (t) => {
    t.is(generatedPart(document, name), render());
  });
}

test('the table of pairs has every client and every server of the matrix once, beside others of its era', (t) => {
  t.deepEqual(Object.values(CLIENT_GROUPS).flat().sort(), [...CLIENT_NAMES].sort());
  t.deepEqual(Object.values(SERVER_GROUPS).flat().sort(), [...SERVER_NAMES].sort());
  for (const clients of Object.values(CLIENT_GROUPS)) t.is(new Set(clients.map((name) => CLIENTS[name].era)).size, 1);
  for (const servers of Object.values(SERVER_GROUPS)) t.is(new Set(servers.map((name) => SERVERS[name].era)).size, 1);
});

test('a note in a column of the table of pairs is about all clients of the column', (t) => {
  for (const [title, clients] of Object.entries(CLIENT_GROUPS)) {
    for (const [index, limit] of LIMITS.entries()) {
      for (const server of limit.servers) {
        const concerned = clients.filter((client) => concerns(limit, client, server));
        t.true(concerned.length === 0 || concerned.length === clients.length, `${title}, note ${index + 1}`);
      }
    }
  }
});

for (const feature of FEATURE_NAMES) {
  test(`what docs/reference/compatibility.md says of ${feature} is tested by the matrix`, (t) => {
    t.true(SCENARIOS.some(({ needs }) => needs.includes(feature)));
    const outcomes: readonly Outcome[] = Object.values(FEATURES[feature].outcomes);
    const isPromised = outcomes.some(({ kind }) => kind === 'impossible');
    t.is(isPromised && !SCENARIOS.some(({ without }) => without === feature), false, 'and so is what is seen instead');
  });
}

for (const { title, tests } of FURTHER_FEATURES) {
  test(`what docs/reference/compatibility.md says besides the matrix is tested: ${title}`, async (t) => {
    for (const [file, mark] of Object.entries(tests)) {
      const text = await readFile(new URL(`../${file}`, import.meta.url), 'utf8');
      t.true(text.includes(mark), `${mark} in ${file}`);
    }
  });
}
