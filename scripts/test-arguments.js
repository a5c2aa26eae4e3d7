/** The arguments of scripts/test.js: where tests are, which part is run, and options of AVA. */

/** Options of AVA that stand alone, and those with a value. An option that AVA does not know has it run everything. */
const FLAGS = [
  '--fail-fast',
  '--no-worker-threads',
  '--serial',
  '-s',
  '--tap',
  '-t',
  '--update-snapshots',
  '-u',
  '--verbose',
  '-v',
];
const VALUED = ['--concurrency', '-c', '--match', '-m', '--node-arguments', '--timeout', '-T'];

const PART = '--part';

/**
 * Returns an error as a text. An unknown argument is one: with none of its places known, all tests would run.
 * @param {readonly string[]} argv
 * @param {{ readonly parts: readonly string[], readonly isPlace: (argument: string) => boolean }} known
 * @returns {{ chosen: string[], places: string[], options: string[] } | { error: string }}
 */
export function readTestArguments(argv, { parts, isPlace }) {
  /** @type {{ chosen: string[], places: string[], options: string[] }} */
  const read = { chosen: [], places: [], options: [] };
  const rest = [...argv];
  for (let argument = rest.shift(); argument !== undefined; argument = rest.shift()) {
    const [name = '', ...values] = argument.split('=');
    const isValued = VALUED.includes(name);
    if (name === PART && values.length > 0) read.chosen.push(...values.join('=').split(','));
    else if (FLAGS.includes(argument) || (isValued && values.length > 0)) read.options.push(argument);
    else if (isValued && rest.length > 0) read.options.push(argument, String(rest.shift()));
    else if (isValued) return { error: `${argument} needs a value.` };
    else if (isPlace(argument)) read.places.push(argument);
    else return { error: unknown(argument, parts) };
  }
  const stranger = read.chosen.find((part) => !parts.includes(part));
  return stranger === undefined ? read : { error: `${PART}=${stranger}: expected one or more of ${parts.join(', ')}.` };
}

/** @param {string} argument @param {readonly string[]} parts */
function unknown(argument, parts) {
  if (!argument.startsWith('-')) return `${argument} is neither a file nor a folder.`;
  const options = [`${PART}=${parts.join('|')}`, ...VALUED, ...FLAGS].join(' ');
  return `${argument} is no option. These are: ${options}`;
}
