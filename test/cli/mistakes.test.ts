import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { refusal } from './refusal.ts';

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
      `Unexpected "npx": the server's command goes after \`--\`, as in\n  mcp-portage ${head.join(' ').replace('=1', '=…')} -- npx -y some-server`,
    );
  }
});

for (const [flag, wayOut] of [
  // The quick starts of other bridges.
  ['--streamableHttp', /mcp-portage connect <url> for a stdio client/],
  ['--outputTransport', /leave it out/],
  ['--stateful', /leave it out/],
  ['--streamableHttpPath', /use --path\.$/],
  ['--oauth2Bearer', /set MCP_PORTAGE_BEARER_TOKEN, or use --bearer-token-file\.$/],
  ['--cors', /--allow-origin/],
  ['--healthEndpoint', /\/healthz and \/readyz/],
  ['--shell', /leave it out/],
  ['--sse-port', /use --port\.$/],
  ['--sse-host', /use --host\.$/],
  ['--pass-environment', /use --inherit-env\.$/],
  ['--named-server', /use --config FILE/],
  ['--named-server-config', /use --config FILE/],
  ['--headers', /--header 'Name: value'$/],
  ['--allow-http', /leave it out/],
  ['--ignore-tool', /use --exclude-tool/],
  ['--apiKey', /use --auth-token env:NAME/],
  ['--stateless', /leave it out/],
  ['--endpoint', /use --path\.$/],
  ['--streamEndpoint', /use --path\.$/],
  ['--sseEndpoint', /use --sse-path\.$/],
  ['--upstreamProtocol', /use --protocol\.$/],
  ['--protocolVersion', /leave it out/],
  ['--maxBodySize', /use --max-message-bytes\.$/],
  ['--gracefulShutdownTimeout', /use --shutdown-grace\.$/],
  ['--tunnel', /--allow-host/],
  ['--expose-header', /leave it out/],
  ['--enable-proxy', /leave it out/],
  ['--static-oauth-client-info', /MCP_PORTAGE_OAUTH_CLIENT_SECRET, or use --oauth-secret-file\.$/],
  ['--static-oauth-client-metadata', /--oauth-scope and --oauth-callback/],
  ['--client-metadata-url', /use --oauth-client-document\.$/],
  ['--auth-timeout', /leave it out/],
  ['--modern', /leave it out/],
  ['--eventStore', /use --max-replay-bytes/],
  ['--no-eventStore', /use --max-replay-bytes/],
  ['--eventStoreMaxEvents', /use --max-replay-bytes/],
  ['--tunnelSubdomain', /--allow-host/],
  ['--corsAddAllowedHeader', /leave it out/],
  ['--token-url', /use --oauth-token-endpoint\.$/],
  ['--token-endpoint', /use --oauth-token-endpoint\.$/],
  ['--resource', /use --oauth-resource <uri>\.$/],
  ['--disable-resource-parameter', /use --oauth-resource none\.$/],
  ['--authorize-param', /use --oauth-param, once for each/],
  ['--use-id-token', /use --oauth-token id\.$/],
  ['--useIdToken', /use --oauth-token id\.$/],
  ['--device-code', /use --oauth-grant device-code\.$/],
  ['--client-id', /use --oauth-client-id\.$/],
  ['--scope', /use --oauth-scope\.$/],
  ['--scopes', /use --oauth-scope\.$/],
  ['--audience', /use --oauth-param audience=https:/],
  ['--redirect-uri', /use --oauth-callback, with the whole URL\.$/],
  ['--callback-url', /use --oauth-callback\.$/],
  ['--callback-port', /use --oauth-callback, with the whole URL\.$/],
  ['--client-credentials', /use --oauth-grant client-credentials\.$/],
  ['--callback-path', /use --oauth-callback/],
  ['--ping-interval', /use --keep-alive\.$/],
  ['--headers-timeout', /use --first-byte-timeout\.$/],
  ['--body-timeout', /use --idle-timeout\.$/],
  // Habits.
  ['--env-file', /use --env-from FILE/],
  ['--daemon', /leave it out: a service manager/],
  ['--detach', /leave it out: a service manager/],
  ['--reload', /leave it out: the file of --config/],
  ['--restart', /leave it out/],
  ['--proxy', /set HTTPS_PROXY/],
  ['--log-file', /stderr/],
  ['--tools', /use --include-tool/],
  ['--max-clients', /use --max-sessions\.$/],
  ['--prefix', /use --path/],
  ['--root-path', /use --path/],
  ['--silent', /use --log-level silent\.$/],
  ['--bind', /use --host and --port\.$/],
  ['--address', /use --host and --port\.$/],
  ['--listen', /use --host and --port\.$/],
  ['--insecure', /--ca FILE/],
  ['-f', /use --config FILE/],
  ['-k', /--ca FILE/],
  ['--cmd', /mcp-portage -- <command> \[args\.\.\.\]$/],
  ['--config-file', /use --config FILE/],
  ['--token', /use --bearer-token-file\.$/],
  ['--bearer-token', /use --bearer-token-file\.$/],
  ['--client-secret', /MCP_PORTAGE_OAUTH_CLIENT_SECRET, or use --oauth-secret-file\.$/],
  ['--verbose', /use --log-level debug\.$/],
  ['--debug', /use --log-level debug\.$/],
  ['-H', /use --header 'Name: value'\.$/],
  ['-e', /use --env NAME=value\.$/],
  ['-p', /use --port\.$/],
  ['-c', /use --config FILE/],
] as const) {
  test(`${flag} is answered with what to write here`, (t) => {
    const message = refusal(flag, 'value', '--', 'server');
    t.true(message.startsWith(`Unknown option ${flag}: `), message);
    t.regex(message, wayOut);
    for (const named of message.slice(message.indexOf(': ')).match(/--[a-z][a-z-]+/g) ?? []) {
      t.notThrows(() => parseCommandLine([`${named}=1`, '--', 'x']), named);
    }
  });
}

for (const [written, line] of [
  [
    [
      '--stdio',
      'npx -y server ./x',
      '--port',
      '8000',
      '--baseUrl',
      'http://a.example',
      '--outputTransport',
      'streamableHttp',
      '--stateful',
    ],
    'mcp-portage --port 8000 --base-url http://a.example -- npx -y server ./x',
  ],
  [
    ['--stdio', 'a | b', '--sessionTimeout', '60000', '--cors', '--healthEndpoint', '/healthz'],
    `mcp-portage --session-timeout 60000ms --allow-origin https://app.example.com -- sh -c 'a | b'`,
  ],
  [
    ['--streamableHttp', 'https://a.example/mcp', '--oauth2Bearer', 'hunter2', '--logLevel', 'debug'],
    'mcp-portage connect --bearer-token-file FILE --log-level debug https://a.example/mcp',
  ],
  [
    ['--sse', 'https://a.example/sse', '--allow-http', '--ignore-tool', 'delete_*', '--debug'],
    `mcp-portage connect --exclude-tool 'delete_*' --log-level debug https://a.example/sse`,
  ],
  [
    ['--sse-port', '8080', '--sse-host', '127.0.0.1', '--pass-environment', '--', 'uvx', 'mcp-server-fetch'],
    'mcp-portage --port 8080 --host 127.0.0.1 --inherit-env -- uvx mcp-server-fetch',
  ],
  [
    ['--server', 'stream', '--endpoint', '/x', '--apiKey=hunter2', '--port=1', '--', 'npx', 'server'],
    'mcp-portage --path /x --auth-token env:NAME --port 1 -- npx server',
  ],
] as const) {
  test(`several options of another bridge are answered with the whole line: ${written.join(' ')}`, (t) => {
    const message = refusal(...written);
    t.is(message.slice(message.lastIndexOf('\nAll together:\n')), `\nAll together:\n  ${line}`);
    t.false(message.includes('hunter2'));
  });
}

test('options of another bridge have no line here where one of them, or a word, is not known', (t) => {
  for (const words of [
    ['--stateful', '--cors', '--frobnicate', '--', 'x'],
    ['--stateful', '--cors', 'stray'],
    ['--stateful', '--cors', '--port', 'x', '--endpoint'],
  ])
    t.notRegex(refusal(...words), /All together/, words.join(' '));
});

test('an option with one dash gets the second, and no letter of it is told by itself', (t) => {
  t.is(
    refusal('serve', '-port', '80', '--', 'x'),
    'Unknown option -port: names of options have two dashes; did you mean --port?',
  );
  t.is(refusal('-xyz', '--', 'x').split('\n').length, 1);
});

test('a URL behind --url, as other bridges have it, is answered with what to write here', (t) => {
  t.regex(refusal('--url', 'https://a.example/mcp'), /else give the URL without an option: mcp-portage connect <url>/);
});

test('a URL behind --sse, as supergateway has it, is not served without a word', (t) => {
  t.regex(refusal('--sse', 'https://a.example/sse'), /: give the URL without an option: mcp-portage connect <url>/);
});

test('certificates that shall not be verified are answered with how to trust them', (t) => {
  for (const word of ['--no-verify-ssl', '--verify-ssl'])
    t.regex(refusal('connect', word, 'https://a.example/mcp'), /certificates are always verified; --ca FILE/, word);
});

test('the contrary of an option is not answered as if the option were meant', (t) => {
  t.notRegex(refusal('--no-cors', 'https://a.example'), /allow-origin/);
});
