import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';

function refusal(...argv: readonly string[]): string {
  try {
    parseCommandLine(argv);
  } catch (thrown) {
    return (thrown as Error).message;
  }
  return 'accepted';
}

for (const [written, wayOut] of [
  [
    ['--env', 'API_KEY', 'secret', '--', 'server'],
    '--env takes one word: --env API_KEY=<value>, or --env API_KEY alone to copy it from here.',
  ],
  [
    ['--header', 'X-Key', 'secret', 'https://a.example'],
    "--header takes one word, in quotes: --header 'X-Key: <value>'",
  ],
  [
    ['connect', 'https://a.example', '--header', 'X-Key:', 'secret'],
    "--header takes one word, in quotes: --header 'X-Key: <value>'",
  ],
] as const) {
  test(`a name and its value in two words are answered with one: ${written.join(' ')}`, (t) => {
    t.is(refusal(...written), wayOut);
  });
}

test('a command whose -- was forgotten is not taken for such a value', (t) => {
  for (const head of [
    ['--env', 'API_KEY'],
    ['--env', 'API_KEY=1'],
    ['--port', '9000'],
  ]) {
    t.is(
      refusal(...head, 'npx', '-y', 'some-server'),
      `Unexpected "npx": the server's command goes after \`--\`, as in\n  mcp-portage ${head.join(' ')} -- npx -y some-server`,
    );
  }
});

for (const [flag, wayOut] of [
  ['--tunnel', /--base-url and --auth-token\.$/],
  ['--corsAddAllowedHeader', /--allow-origin/],
  ['--headers-timeout', /use --first-byte-timeout\.$/],
  ['--device-code', /the address that the log names/],
  ['--url', /mcp-portage connect <url>/],
  ['--cmd', /mcp-portage -- <command> \[args\.\.\.\]$/],
  ['--verbose', /use --log-level debug\.$/],
  ['-H', /use --header 'Name: value'\.$/],
  ['-e', /use --env NAME=value\.$/],
  ['-p', /use --port\.$/],
  ['-k', /name the authority to trust with --ca\.$/],
] as const) {
  test(`${flag} is answered with what to write here`, (t) => {
    const message = refusal(flag, 'value', '--', 'server');
    t.true(message.startsWith(`Unknown option ${flag}: `), message);
    t.regex(message, wayOut);
  });
}
