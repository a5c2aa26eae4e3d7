import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { renderCompletion } from '../../src/cli/completion.ts';
import { OPTIONS } from '../../src/cli/options/option-table.ts';

const hasBash = spawnSync('bash', ['--version']).status === 0;
/** Without bash (a bare Windows) there is nothing to complete for. */
const testInBash = hasBash ? test : test.skip;

/** What bash offers when Tab is pressed at the end of the line. */
function complete(line: string): readonly string[] {
  const words = line.split(' ');
  const script = `${renderCompletion('bash')}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})
COMP_CWORD=${words.length - 1}
_mcp_portage
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8' });
  if (stderr !== '') throw new Error(stderr);
  return stdout.split('\n').filter((word) => word !== '');
}

testInBash('completes every option', (t) => {
  const offered = complete('mcp-portage --');
  for (const option of OPTIONS) t.true(offered.includes(option.offered), option.name);
  t.deepEqual(complete('mcp-portage serve --max-rep'), ['--max-replay-bytes']);
});

testInBash('completes a flag as it is used: with no- if it is on by default, else without', (t) => {
  t.deepEqual(complete('mcp-portage --no-'), ['--no-sse', '--no-ws', '--no-oauth-browser', '--no-status']);
  t.deepEqual(complete('mcp-portage --pt'), ['--pty']);
  t.deepEqual(complete('mcp-portage --ss'), ['--sse-path']);
});

testInBash('completes the verbs, the shells and the values of a choice', (t) => {
  t.deepEqual(complete('mcp-portage '), [
    'serve',
    'connect',
    'probe',
    'snippet',
    'report',
    'top',
    'view',
    'login',
    'logout',
    'pin',
    'info',
    'completion',
    'help',
  ]);
  t.deepEqual(complete('mcp-portage completion '), ['bash', 'zsh', 'fish']);
  t.deepEqual(complete('mcp-portage help li'), ['listen', 'limits']);
  t.deepEqual(complete('mcp-portage help gr'), ['groups']);
  t.deepEqual(complete('mcp-portage help ERR_SESSION_U'), ['ERR_SESSION_UNKNOWN']);
  t.deepEqual(complete('mcp-portage --isolation s'), ['session', 'shared']);
  t.deepEqual(complete('mcp-portage --log-format j'), ['json']);
});

testInBash('completes files and directories where an option takes one, and nothing where it takes a number', (t) => {
  t.deepEqual(complete('mcp-portage --tls-cert package.js'), ['package.json']);
  t.deepEqual(complete('mcp-portage --cwd sr'), ['src']);
  t.deepEqual(complete('mcp-portage --port '), []);
});

testInBash('completes the name of a command behind --', (t) => {
  t.true(complete('mcp-portage --port 1 -- ech').includes('echo'));
});

test('the script for zsh names every option with its values', (t) => {
  const script = renderCompletion('zsh');
  for (const { offered, type, bare } of OPTIONS) {
    const spec = bare === undefined ? offered : `${offered}=-`;
    t.true(script.includes(`'${spec}[`) || script.includes(`'*${spec}[`), offered);
    if (type.choices !== undefined) t.true(script.includes(`(${type.choices.join(' ')})`), offered);
  }
});

testInBash('takes no word for the value of an option that needs none', (t) => {
  t.deepEqual(complete('mcp-portage --aggregate '), []);
  t.true(complete('mcp-portage --aggregate --conf').includes('--config'));
  t.regex(renderCompletion('zsh'), /'--aggregate=-\[[^']*\]::what:\(true search false\)'/);
});

test('the script for zsh describes what an option does, with colons and apostrophes escaped', (t) => {
  const script = renderCompletion('zsh');
  t.true(script.includes("'--no-sse[Do not serve HTTP+SSE, for older clients]'"));
  t.true(script.includes("'--sse-path[HTTP+SSE\\: where older clients open their stream]:path: '"));
  t.true(script.includes("takes a value from the environment]:Name\\: value: '"));
  t.true(script.includes(`Deepest nesting of arrays and objects in a client'\\''s message`));
});

/** Most Linux machines have no zsh. */
const testInZsh = spawnSync('zsh', ['--version']).status === 0 ? test : test.skip;

/**
 * What is on the line, and below it, after Tab was pressed in a zsh of its own, once `expected` has appeared. The
 * module zsh/zpty is what zsh tests its own completion with.
 */
function completeInZsh(line: string, expected: string): string {
  const script = `
    zmodload zsh/zpty
    zpty inner zsh -f -i
    zpty -w inner "PS1='ready> '; autoload -Uz compinit; compinit -u -D; setopt no_beep; source $1; stty columns 200"
    zpty -w inner 'print -r LOA"DED"'
    zpty -r inner output '*LOADED*ready> '
    zpty -w -n inner "$2"$'\\t'
    zpty -r inner output "*$3*"
    print -r -- "$output"`;
  const file = join(tmpdir(), `mcp-portage-completion-${process.pid}.zsh`);
  writeFileSync(file, renderCompletion('zsh'));
  const { stdout } = spawnSync('zsh', ['-f', '-c', script, 'zsh', file, line, expected], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  rmSync(file, { force: true });
  return stdout;
}

for (const [line, expected] of [
  ['mcp-portage --max-rep', '--max-replay-bytes'],
  ['mcp-portage --no-s', '--no-sse     -- Do not serve HTTP+SSE, for older clients'],
  ['mcp-portage --sse-p', '--sse-path'],
  ['mcp-portage --message-path=/a --s', 'HTTP+SSE: where older clients open their stream'],
  ['mcp-portage --max-json-d', '--max-json-depth'],
  ['mcp-portage --isolation sh', '--isolation shared'],
  ['mcp-portage sni', 'mcp-portage snippet'],
  ['mcp-portage completion f', 'completion fish'],
  ['mcp-portage help lim', 'help limits'],
  ['mcp-portage --tls-cert package.js', 'package.json'],
  ['mcp-portage --port 1 -- printen', '-- printenv'],
] as const) {
  testInZsh(`zsh completes: ${line}`, (t) => {
    t.true(completeInZsh(line, expected).includes(expected));
  });
}

/** Most machines have no fish. */
const testInFish = spawnSync('fish', ['--version']).status === 0 ? test : test.skip;

/** What fish offers when Tab is pressed at the end of the line, without the descriptions. */
function completeInFish(line: string): readonly string[] {
  const script = `source (printf '%s' $argv[1] | psub)\ncomplete -C $argv[2]`;
  const { stdout, stderr } = spawnSync('fish', ['-N', '-c', script, renderCompletion('fish'), line], {
    encoding: 'utf8',
  });
  if (stderr !== '') throw new Error(stderr);
  return stdout.split('\n').flatMap((offer) => (offer === '' ? [] : [offer.split('\t')[0] ?? '']));
}

testInFish('fish completes every option', (t) => {
  const offered = completeInFish('mcp-portage --');
  for (const option of OPTIONS) t.true(offered.includes(option.offered), option.name);
  t.false(offered.includes('--sse'));
  t.deepEqual(completeInFish('mcp-portage serve --max-r'), ['--max-replay-bytes']);
});

testInFish('fish completes the verbs, the shells, the topics of help and the values of a choice', (t) => {
  t.deepEqual([...completeInFish('mcp-portage ')].sort(), [
    'completion',
    'connect',
    'help',
    'login',
    'logout',
    'pin',
    'info',
    'probe',
    'report',
    'serve',
    'snippet',
    'top',
    'view',
  ]);
  t.deepEqual([...completeInFish('mcp-portage completion ')].sort(), ['bash', 'fish', 'zsh']);
  t.deepEqual(completeInFish('mcp-portage help lim'), ['limits']);
  t.deepEqual([...completeInFish('mcp-portage --isolation ')].sort(), ['session', 'shared']);
});

testInFish(
  'fish completes files and directories where an option takes one, and nothing where it takes a number',
  (t) => {
    t.deepEqual(completeInFish('mcp-portage --tls-cert package.js'), ['package.json']);
    t.deepEqual(completeInFish('mcp-portage --cwd sr'), ['src/']);
    t.deepEqual(completeInFish('mcp-portage --port '), []);
  },
);

testInFish('fish completes the name of a command behind --, and what that command takes', (t) => {
  t.true(completeInFish('mcp-portage --port 1 -- ech').includes('echo'));
  t.true(completeInFish('mcp-portage -- cat package.js').includes('package.json'));
  t.false(completeInFish('mcp-portage -- ').includes('serve'));
});
