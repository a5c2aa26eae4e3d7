/**
 * Messages that are as dear to read as a peer can make them: a small message with a hole, and what fills the hole, over
 * and over. The client's and the server's side of the benchmark make them from the same names.
 */

/** What is repeated: for the inside of a string, of an array, or of an object. */
const FILLINGS = {
  text: { kind: 'string', unit: 'The quick brown fox. ' },
  escapes: { kind: 'string', unit: '\\n' },
  quotes: { kind: 'string', unit: '\\"' },
  backslashes: { kind: 'string', unit: '\\\\' },
  emoji: { kind: 'string', unit: '😀' },
  braces: { kind: 'string', unit: '}' },
  openings: { kind: 'string', unit: '[{' },
  underscores: { kind: 'string', unit: '_' },
  members: { kind: 'object', unit: '"":1' },
  'escaped keys': { kind: 'object', unit: '"\\u005f":1' },
  'escaped _meta': { kind: 'object', unit: '"\\u005fmeta":{}' },
  'wanted keys': { kind: 'object', unit: '"name":{}' },
  'accented keys': { kind: 'object', unit: '"é":1' },
  'distinct keys': { kind: 'object', unit: (index) => `"k${index}":1` },
  'number keys': { kind: 'object', unit: (index) => `"${index * 7919}":1` },
  arrays: { kind: 'array', unit: '[]' },
  objects: { kind: 'array', unit: '{}' },
  numbers: { kind: 'array', unit: '0' },
  strings: { kind: 'array', unit: '""' },
  'distinct objects': { kind: 'array', unit: (index) => `{"k${index}":1}` },
  'nested arrays': { kind: 'array', unit: `${'['.repeat(900)}${']'.repeat(900)}` },
  'nested objects': { kind: 'array', unit: `${'{"":'.repeat(900)}0${'}'.repeat(900)}` },
  digits: { kind: 'number', unit: '1' },
  spaces: { kind: 'space', unit: ' ' },
};

export const FILLING_NAMES = Object.keys(FILLINGS);

export const kindOf = (filling) => FILLINGS[filling].kind;

/** What was made last: it is asked for again and again. */
let last = { filling: '', bytes: 0, text: '' };

function repeated(filling, bytes) {
  if (last.filling !== filling || last.bytes !== bytes)
    last = { filling, bytes, text: repeat(FILLINGS[filling], bytes) };
  return last.text;
}

/** @returns the filling as it stands between its brackets or quotes, of about so many bytes */
function repeat({ kind, unit }, bytes) {
  const separator = kind === 'array' || kind === 'object' ? ',' : '';
  if (typeof unit === 'string') {
    const text = unit + separator;
    const filled = text.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(text))));
    return separator === '' ? filled : filled.slice(0, -1);
  }
  const units = [];
  for (let index = 0, length = 0; length < bytes; index += 1) {
    const made = unit(index);
    units.push(made);
    length += made.length + 1;
  }
  return units.join(separator);
}

const BRACKETS = { string: '""', object: '{}', array: '[]', number: ['', ''], space: ['1', ''] };

/** A JSON value of about so many bytes. */
export function makeValue(filling, bytes) {
  const [open, close] = BRACKETS[FILLINGS[filling].kind];
  return `${open}${repeated(filling, bytes)}${close}`;
}

/** Members of an object, with a comma after each; a value of another kind is one member. */
export function makeMembers(filling, bytes) {
  return FILLINGS[filling].kind === 'object' ? `${repeated(filling, bytes)},` : `"x":${makeValue(filling, bytes)},`;
}
