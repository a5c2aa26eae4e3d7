import { readFile } from 'node:fs/promises';
import test from 'ava';
import { COMPATIBILITY_PARTS } from '../../scripts/compatibility-tables.ts';
import { generatedPart } from '../../scripts/generated-part.ts';
import { FEATURE_NAMES, FEATURES, type Outcome } from '../matrix/features.ts';
import { FURTHER_FEATURES } from '../matrix/further-features.ts';
import { SCENARIOS } from '../matrix/scenarios.ts';

const document = await readFile(new URL('../../docs/reference/compatibility.md', import.meta.url), 'utf8');

for (const [name, render] of Object.entries(COMPATIBILITY_PARTS)) {
  test(`the tables of docs/reference/compatibility.md are up to date: ${name} (npm run docs)`, (t) => {
    t.is(generatedPart(document, name), render());
  });
}

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
