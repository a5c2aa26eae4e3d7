/**
 * Messages that are as dear to read as a peer can make them: a small message with a hole, and what fills the hole, over
 * and over. The client's and the server's side of the benchmark make them from the same names.
 */

/** What is repeated: for the inside of a string, of an array, or of an object. */
const FILLINGS = {
  members: { kind: 'object', unit: '"":1' },
  'escaped keys': { kind: 'object', unit: '"\\u005f":1' },
  'distinct keys': { kind: 'object', unit: (index) => `"k${index}":1` },
  objects: { kind: 'array', unit: '{}' },
  'nested arrays': { kind: 'array', unit: `${'['.repeat(900)}${']'.repeat(900)}` },
};

/** @returns the filling as it stands between its brackets, of about so many bytes */
function repeat({ unit }, bytes) {
  if (typeof unit === 'string') {
    const text = `${unit},`;
    return text.repeat(Math.max(1, Math.floor(bytes / text.length))).slice(0, -1);
  }
  const units = [];
  for (let index = 0, length = 0; length < bytes; index += 1) {
    const made = unit(index);
    units.push(made);
    length += made.length + 1;
  }
  return units.join(',');
}

const BRACKETS = { object: '{}', array: '[]' };

/** What was made last: it is asked for again and again. */
let last = { filling: '', bytes: 0, text: '' };

function repeated(filling, bytes) {
  if (last.filling !== filling || last.bytes !== bytes)
    last = { filling, bytes, text: repeat(FILLINGS[filling], bytes) };
  return last.text;
}

/** A JSON value of about so many bytes. */
export function makeValue(filling, bytes) {
  const [open, close] = BRACKETS[FILLINGS[filling].kind];
  return `${open}${repeated(filling, bytes)}${close}`;
}

/** Members of an object, with a comma after each; a value of another kind is one member. */
export function makeMembers(filling, bytes) {
  return FILLINGS[filling].kind === 'object' ? `${repeated(filling, bytes)},` : `"x":${makeValue(filling, bytes)},`;
}
