/** The project is written in American English: its documents, messages, comments and names. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import test from 'ava';
import { ROOT } from './documents.ts';

const BRITISH_FORMS = [
  '(?:arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|od|parl|rig|rum|savi|vap|vig)our',
  '(?:cancel|channel|dial|fuel|label|level|marshal|model|signal|total|travel|tunnel)l(?:ed|er|ing)',
  '(?:apolog|author|capital|categor|character|custom|emphas|equal|final|formal|general|harmon|initial|local|maxim' +
    '|memor|minim|modern|normal|optim|organ|parallel|penal|priorit|random|real|recogn|serial|special|stabil|standard' +
    '|summar|symbol|synchron|token|util|visual)is(?:able|ation|e(?:d|r|s|$|[^a-z])|ing)',
  '(?:anal|catal|paral)ys(?:ed|ing|e$|e[^a-z])',
  '(?:calib|cent|fib|lit|lust|meag|met|somb|spect|theat)re(?:d|s|$|[^a-z])',
  '(?:def|lic|off|pret)ence',
  '(?:anal|catal)ogue',
  '(?:acknowledg|judg)ement',
  '(?:after|back|down|in|out|to|up)wards',
  '(?:burn|dream|learn|spel|spoil)t(?:$|[^a-z])',
  'programmes?(?:$|[^a-z])',
  'any more(?:$|[^a-z])',
  'artefact|ageing|amongst|cheque|grey|manoeuvre|mould|plough|practise|sceptic|skilful|whilst|wilful',
];

/** A form may begin a word, or follow one of these syllables. */
const BRITISH = new RegExp(`(?<![a-z])(?:dis|mis|re|un)?(?:${BRITISH_FORMS.join('|')})`, 'g');

/** Words that others have spelled. */
const QUOTED = new RegExp(
  [
    // MCP has this notification and this state of a task, and outcomes of calls are called alike.
    'notifications/cancelled',
    '(["\'`])cancelled\\\\?\\1',
    '\\bcancelled: [(\\x27]',
    // The attribute of HTML.
    'aria-labelledby',
    // A section of MCP's specification.
    '#backwards-compatibility',
  ].join('|'),
  'g',
);

const ALLOWED_FILES: readonly (readonly [path: string, reason: string])[] = [
  ['test/docs/spelling.test.ts', 'lists the forms'],
  ['test/fixtures/published-tools/', 'is copied from published servers'],
  ['test/fixtures/schema/', 'is copied from the specification'],
  ['test/scripts/hosts/recorded/', 'is the output of other programs'],
  ['package-lock.json', 'names packages'],
  ['CHANGELOG.md', 'keeps the words of each release'],
];

/** The lines of a text, by number, with the British forms that each has. */
function britishForms(text: string): readonly string[] {
  return text.split('\n').flatMap((line, index) => {
    const found = splitNames(line.replaceAll(QUOTED, '')).match(BRITISH) ?? [];
    return found.map((form) => `${index + 1}: ${form.trim()}`);
  });
}

/** Parts the words of names in code, as in `isCanceling` and `NO_COLOR`. */
function splitNames(line: string): string {
  return line
    .replaceAll(/[A-Z]{2,}/g, (word) => word.toLowerCase())
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function trackedTexts(): readonly (readonly [path: string, text: string])[] {
  const paths = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0');
  return paths.flatMap((path) => {
    const file = new URL(path, ROOT);
    if (path === '' || !existsSync(file) || ALLOWED_FILES.some(([allowed]) => path.startsWith(allowed))) return [];
    const text = readFileSync(file, 'utf8');
    return text.includes('\0') ? [] : [[path, text] as const];
  });
}

test('British forms are found in prose and in names, and no others', (t) => {
  t.deepEqual(britishForms('a\nThe colour is grey.'), ['2: colour', '2: grey']);
  t.deepEqual(britishForms('toolCatalogue IS_CANCELLED unrecognised'), [
    '1: catalogue',
    '1: cancelled',
    '1: unrecognised',
  ]);
  t.deepEqual(britishForms('tokenIsExpired, a programmer, metrics, optimistic, emphasis, many more, "cancelled"'), []);
});

// A copy of the project without its repository does not say which files are its own.
(existsSync(new URL('.git', ROOT)) ? test : test.skip)('every text is in American English', (t) => {
  const texts = trackedTexts();
  t.true(texts.length > 1000);
  t.deepEqual(
    texts.flatMap(([path, text]) => britishForms(text).map((found) => `${path}:${found}`)),
    [],
  );
});
