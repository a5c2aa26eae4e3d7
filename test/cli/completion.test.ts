import { spawnSync } from 'node:child_process';
import test from 'ava';
import { renderCompletion } from '../../src/cli/completion.ts';
import type { OptionSpec } from '../../src/cli/options/option-spec.ts';
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
  for (const { name } of OPTIONS) t.true(offered.includes(`--${name}`), name);
  t.deepEqual(complete('mcp-portage serve --max-r'), ['--max-replay-bytes']);
  t.deepEqual(complete('mcp-portage --no-'), [
    '--no-allow-writable-config',
    '--no-sse',
    '--no-allow-anonymous',
    '--no-inherit-env',
    '--no-pty',
    '--no-oauth-browser',
    '--no-status',
    '--no-metrics',
    '--no-usage',
    '--no-audit-required',
    '--no-json',
  ]);
});

testInBash('completes the verbs, the shells and the values of a choice', (t) => {
  t.deepEqual(complete('mcp-portage '), ['serve', 'connect', 'probe', 'snippet', 'report', 'top', 'completion']);
  t.deepEqual(complete('mcp-portage completion '), ['bash', 'zsh']);
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
  for (const option of OPTIONS as readonly OptionSpec[]) {
    t.true(script.includes(`--${option.name}[`), option.name);
    if (option.choices !== undefined) t.true(script.includes(`(${option.choices.join(' ')})`), option.name);
  }
});

/** Most Linux machines have no zsh. */
const testInZsh = spawnSync('zsh', ['--version']).status === 0 ? test : test.skip;

testInZsh('the script for zsh is accepted by zsh', (t) => {
  const { status, stderr } = spawnSync('zsh', ['-n'], { input: renderCompletion('zsh'), encoding: 'utf8' });
  t.is(stderr, '');
  t.is(status, 0);
});
