import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { refusal } from './refusal.ts';

/** What was typed, and what is shown in its place. */
const CORRECTED: readonly (readonly [typed: string, shown: string, why: RegExp])[] = [
  ['serve npx -- -y foo', 'serve -- npx -y foo', /^Unexpected "npx": all of the server's command goes after `--`/],
  ['npx -- -y foo', '-- npx -y foo', /^Unexpected "npx"/],
  ['serve uvx -- some-server', 'serve -- uvx some-server', /^Unexpected "uvx"/],
  ['serve server.py --fast', 'serve -- python3 server.py --fast', /^Unexpected "server.py"/],
  ['connect ./server.mjs', 'connect -- node ./server.mjs', /^Unexpected ".\/server.mjs"/],
  ['serve @scope/server .', 'serve -- npx -y @scope/server .', /^Unexpected "@scope\/server"/],
  [
    'API_KEY=x npx foo',
    '--env API_KEY=… -- npx foo',
    /^Unexpected "API_KEY=…": variables of the server are set with --env/,
  ],
  ['serve --- npx foo', 'serve -- npx foo', /^Unexpected ---: the server's command goes after two hyphens/],
  ['serve - - npx foo', 'serve -- npx foo', /^Unexpected -: /],
  ['https://a.example connect', 'connect https://a.example', /^The command "connect" comes before the server/],
  ['serve serve -- x', 'serve -- x', /^"serve" is given twice/],
  ['serve help', 'help serve', /^"help" comes first/],
  ['serve version', 'version', /^"version" stands alone/],
  [
    'start -- npx foo',
    'serve -- npx foo',
    /^Unknown command "start"; the commands are serve \(for HTTP clients\).*, snippet, report, top and completion\./,
  ],
  ['proxy https://a.example', 'serve https://a.example', /^Unknown command "proxy"/],
  ['nonsense', '-- nonsense', /^Unknown command "nonsense"; .* If it is the server's program, it goes after `--`/],
  ['nonsense --port 80', '--port 80 -- nonsense', /^Unknown command "nonsense"/],
  ['connect http:/localhost:1/mcp', 'connect http://localhost:1/mcp', /a URL begins with http:\/\/ or https:\/\//],
  ['connect <https://a.example/mcp>', 'connect https://a.example/mcp', /^The URL is given alone/],
  ['connect "https://a.example/mcp",', 'connect https://a.example/mcp', /^The URL is given alone/],
  ['serve [server](https://a.example/mcp)', 'serve https://a.example/mcp', /^The URL is given alone/],
  ['connect unix:/run/a.sock', 'connect unix:///run/a.sock', /two slashes stand before the path/],
  ['mcp-portage -- npx foo', '-- npx foo', /^"mcp-portage" is given twice/],
  ['npx mcp-portage@1 serve -- npx foo', 'serve -- npx foo', /^"mcp-portage" is given twice/],
  ['connect mcp-portage https://a.example', 'connect https://a.example', /^"mcp-portage" is given twice/],
  ['status', 'top http://127.0.0.1:8000', /^There is no command "status"/],
  ['list', 'probe https://example.com/mcp', /^There is no command "list"/],
  ['install', 'snippet --for cursor http://127.0.0.1:8000/mcp', /^There is no command "install"/],
  ['connect https//a.example', 'connect https://a.example', /a URL begins with/],
  ['serve -- https://a.example', 'serve https://a.example', /^A URL is not a command: leave out `--`/],
  ['serve -- localhost:1/mcp', 'serve http://localhost:1/mcp', /^A URL is not a command/],
  ['serve -- --help', 'serve --help', /^`--` is followed by the server's program; got the option --help/],
  ['serve -- --port 80 npx foo', 'serve --port 80 -- npx foo', /options of mcp-portage come before it/],
  ['serve -- --no-pty npx foo', 'serve --no-pty -- npx foo', /options of mcp-portage come before it/],
  ['serve -- -y foo', 'serve -- npx -y foo', /name the program first/],
];

for (const [typed, shown, why] of CORRECTED) {
  test(`${typed} is answered with ${shown}`, (t) => {
    const message = refusal(...typed.split(' '));
    t.regex(message, why);
    t.is(message.split('\n').at(-1), `  mcp-portage ${shown}`);
    const corrected = shown.split(' ');
    t.notThrows(() => parseCommandLine(corrected), 'what is shown is accepted');
  });
}

test('a bridge is stopped by no command, and a program may have the name of a wish', (t) => {
  t.regex(refusal('stop'), /^There is no command "stop": the bridge ends with Ctrl-C/);
  t.is(refusal('--', 'list'), 'accepted');
});

test('two verbs are answered with a command line for each', (t) => {
  t.is(
    refusal('serve', 'connect', 'https://a.example/mcp?key=secret'),
    `"serve" and "connect" are two commands; give one of them:\n  mcp-portage serve 'https://a.example/mcp?…'\n  mcp-portage connect 'https://a.example/mcp?…'`,
  );
});

test('a configuration file is told from a command, wherever it stands', (t) => {
  for (const [line, shown] of [
    ['serve mcp.json', 'mcp-portage serve --config mcp.json'],
    ['mcp.json', 'mcp-portage --config mcp.json'],
    ['--port 9000 .mcp.json', 'mcp-portage --port 9000 --config .mcp.json'],
    ['connect claude_desktop_config.json', 'mcp-portage connect --config claude_desktop_config.json'],
    ['snippet --for cursor config.toml', 'mcp-portage snippet --for cursor --config config.toml'],
    ['serve -- .mcp.json', 'mcp-portage serve --config .mcp.json'],
    ['servers.yaml', 'mcp-portage --config servers.yaml'],
    ['connect .continue/servers.yml', 'mcp-portage connect --config .continue/servers.yml'],
  ] as const) {
    const message = refusal(...line.split(' '));
    t.regex(message, /" is a configuration file, which is named with --config, as in\n/, line);
    t.is(message.split('\n').at(-1)?.trim(), shown);
    t.notThrows(() => parseCommandLine(shown.split(' ').slice(1)), 'what is shown is accepted');
  }
  t.is(refusal('serve', '--', 'server', 'mcp.json'), 'accepted', 'what the command takes is its own business');
});

test('commands that start no server ask for a URL, not for a command', (t) => {
  for (const [line, example] of [
    ['top foo', 'mcp-portage top http://127.0.0.1:8000'],
    ['report .mcp.json', 'mcp-portage report --url http://127.0.0.1:8000'],
    ['snippet --for cursor foo', 'mcp-portage snippet --for cursor http://127.0.0.1:8000/mcp'],
  ] as const) {
    const message = refusal(...line.split(' '));
    t.regex(message, /^Unexpected "[\w.]+": (top|report|snippet) takes the URL of a /);
    t.is(message.split('\n').at(-1), `  ${example}`);
  }
});

test('an empty word is taken for a variable that is not set', (t) => {
  t.regex(refusal('connect', ''), /is a variable of the shell not set\?$/);
});

test('the command line that is shown holds no credentials', (t) => {
  const lines = [
    ['--env', 'NAME=secret', 'npx', 'server', '--api-key', 'secret'],
    ['--header', 'X-Key: secret', 'serve', 'connect', 'https://me:secret@a.example/?k=secret'],
    ['connect', 'localhost:1/mcp?key=secret'],
    ['serve', 'NAME=secret', 'npx', 'server'],
    ['connect', 'http:/me:secret@a.example'],
  ];
  for (const line of lines) {
    const message = refusal(...line);
    t.not(message, 'accepted');
    t.notRegex(message, /secret/);
  }
});
