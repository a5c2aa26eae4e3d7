import test from 'ava';
import fc from 'fast-check';
import { hideSecrets } from '../../src/recording/hide-secrets.ts';
import { isSecretName } from '../../src/recording/secret-names.ts';

function hideIn(json: string, part?: 'data'): ReturnType<typeof hideSecrets> {
  return hideSecrets(Buffer.from(json), part);
}

function hide(message: unknown): { readonly message: unknown; readonly hidden: number } {
  const { text, hidden } = hideIn(JSON.stringify(message));
  return { message: JSON.parse(text), hidden };
}

function call(args: object): object {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'sign-in', arguments: args } };
}

test('names of secrets are recognized in any spelling', (t) => {
  const secret = [
    ...['token', 'accessToken', 'access_token', 'refresh-token', 'ACCESS TOKEN', 'idtoken', 'CSRFToken', 'token2'],
    ...['password', 'Password', 'PASSWD', 'userPassword', 'pass_word', 'password_confirmation', 'passphrase'],
    ...['secret', 'clientSecret', 'client_secret', 'CLIENT-SECRET', 'client secret', 'secretAccessKey', 'tokenSecret'],
    ...['apiKey', 'api_key', 'X-API-Key', 'API KEY', 'privateKey', 'private-key', 'PRIVATE_KEY'],
    ...['authorization', 'Proxy-Authorization', 'cookie', 'Set-Cookie', 'sessionCookie', 'requestState'],
  ];
  t.deepEqual(
    secret.filter((name) => !isSecretName(name)),
    [],
  );
  const harmless = [
    ...[
      'progressToken',
      'progress_token',
      'maxTokens',
      'max_tokens',
      'totalTokens',
      'tokens',
      'tokenCount',
      'tokenizer',
    ],
    ...[
      'nextCursor',
      'cursor',
      'author',
      'authority',
      'keyboard',
      'key',
      'public',
      'secretary',
      'compass',
      'token_type',
    ],
    ...['token_endpoint', 'name', 'uri', 'monkey', ''],
  ];
  t.deepEqual(harmless.filter(isSecretName), []);
});

test('hides values of any kind at any depth, and nothing else', (t) => {
  const { message, hidden } = hide(
    call({
      password: 'hunter2',
      nested: [{ 'Api Key': 7 }, { token: { kind: 'x', parts: ['a', '}'] } }, { client_secret: null }],
      maxTokens: 100,
      author: 'Ada',
    }),
  );
  t.deepEqual(
    message,
    call({
      password: '[hidden]',
      nested: [{ 'Api Key': '[hidden]' }, { token: '[hidden]' }, { client_secret: '[hidden]' }],
      maxTokens: 100,
      author: 'Ada',
    }),
  );
  t.is(hidden, 4);
});

test('a message without a secret stays as it was written, large numbers included', (t) => {
  const text =
    '{"jsonrpc":"2.0", "id":12345678901234567890 ,"result":{"tokens":1e400,"a\\u0062":1.0000000000000000001}}';
  t.deepEqual(hideIn(text), { text, hidden: 0 });
});

test('what is not hidden keeps its bytes', (t) => {
  t.is(
    hideIn('{"params":{ "n":9007199254740993, "pass\\u0077ord" : {"a":[1,"}"]} ,"z":"\\u0041"}}').text,
    '{"params":{ "n":9007199254740993, "pass\\u0077ord" : "[hidden]" ,"z":"\\u0041"}}',
  );
});

test('the schema of a tool is shown, but not the secrets that it proposes', (t) => {
  const inputSchema = {
    type: 'object',
    properties: {
      password: { type: 'string', minLength: 8, default: 'changeme', examples: ['hunter2'] },
      login: { type: 'object', properties: { apiKey: { anyOf: [{ const: 'k-1' }, { type: 'null' }] }, token: true } },
    },
    required: ['password'],
    dependentRequired: { password: ['login'] },
  };
  const { message, hidden } = hide({ jsonrpc: '2.0', id: 1, result: { tools: [{ name: 'sign-in', inputSchema }] } });
  t.deepEqual(message, {
    jsonrpc: '2.0',
    id: 1,
    result: {
      tools: [
        {
          name: 'sign-in',
          inputSchema: {
            ...inputSchema,
            properties: {
              password: { type: 'string', minLength: 8, default: '[hidden]', examples: '[hidden]' },
              login: {
                type: 'object',
                properties: { apiKey: { anyOf: [{ const: '[hidden]' }, { type: 'null' }] }, token: true },
              },
            },
          },
        },
      ],
    },
  });
  t.is(hidden, 3);
});

test('the form of a question is shown, in either era, but not its answer', (t) => {
  const requestedSchema = { type: 'object', properties: { password: { type: 'string' } } };
  const question = { method: 'elicitation/create', params: { message: 'Who?', requestedSchema } };
  const asked = { jsonrpc: '2.0', id: 1, ...question };
  t.deepEqual(hide(asked), { message: asked, hidden: 0 });
  const modern = { jsonrpc: '2.0', id: 1, result: { resultType: 'input_required', inputRequests: { q: question } } };
  t.deepEqual(hide(modern), { message: modern, hidden: 0 });
  const answer = { jsonrpc: '2.0', id: 1, result: { action: 'accept', content: { password: 'hunter2' } } };
  t.is(hide(answer).hidden, 1);
});

test('data that only looks like a schema is no schema', (t) => {
  const disguised = { tools: [{ inputSchema: { properties: { password: { value: 'hunter2' } } } }] };
  t.is(hide(call(disguised)).hidden, 1);
  t.is(hide({ jsonrpc: '2.0', id: 1, result: { structuredContent: disguised } }).hidden, 1);
  const described = { result: { tools: [{ inputSchema: { properties: { password: 'hunter2' } } }] } };
  t.is(hide(described).hidden, 1);
});

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.abcDEF_-123';

const TEXTS: readonly (readonly [string, string])[] = [
  ['send Authorization with Bearer abc123.def-456 please', 'send Authorization with Bearer [hidden] please'],
  ['curl -H "authorization: bearer abcdefgh"', 'curl -H "authorization: bearer [hidden]"'],
  [`the id is ${JWT}.`, 'the id is [hidden].'],
  ['use ghp_abcdefghijklmnopqrstuvwxyz0123456789 now', 'use [hidden] now'],
  ['key sk-ant-api03-abcdefghijk and AKIAIOSFODNN7EXAMPLE', 'key [hidden] and [hidden]'],
  ['https://user:pa%40ss@example.com/x?y=1', 'https://[hidden]@example.com/x?y=1'],
  ['https://example.com/?a=1&access_token=abc&b=2', 'https://example.com/?a=1&access_token=[hidden]&b=2'],
  ['https://example.com/cb#token=abc', 'https://example.com/cb#token=[hidden]'],
  ['{"user":"ada","password":"hun\\"ter2","n":1}', '{"user":"ada","password":"[hidden]","n":1}'],
  ['HOME=/root\nexport GITHUB_TOKEN=abc def\nX=1', 'HOME=/root\nexport GITHUB_TOKEN=[hidden]\nX=1'],
  ['GET / HTTP/1.1\r\nSet-Cookie: a=b; c=d\r\n', 'GET / HTTP/1.1\r\nSet-Cookie: [hidden]\r\n'],
  ['Basic dXNlcjpwYXNzd29yZA==', 'Basic [hidden]'],
  ['-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nend', '[hidden]\nend'],
];

for (const [text, shown] of TEXTS) {
  test(`hides what looks like a credential in a text: ${JSON.stringify(text)}`, (t) => {
    const { message, hidden } = hide({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text }] } });
    t.deepEqual(message, { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: shown }] } });
    t.true(hidden >= 1);
  });
}

test('prose about tokens and passwords stays', (t) => {
  for (const text of [
    'Bearer tokens are sent in the Authorization header.',
    'WWW-Authenticate: Bearer realm="example"',
    'Basic authentication is a scheme',
    'The secretary chose a password of 8 characters; see https://example.com/keys?page=2&max_tokens=5',
    'a sk-learn-like-model and the author of the keyboard',
  ]) {
    t.deepEqual(hide({ result: { text } }), { message: { result: { text } }, hidden: 0 });
  }
});

test('a text that is cut off is hidden as far as it goes', (t) => {
  t.is(hideIn('{"a":1,"password":"hun', 'data').text, '{"a":1,"password":"[hidden]"');
  t.is(hideIn('{"a":"Bearer abcdefgh', 'data').text, '{"a":"Bearer [hidden]');
  t.is(hideIn('{"token":{"a":[1,', 'data').text, '{"token":"[hidden]"');
});

// ---- against a naive model

const NAMES = [
  'a',
  'password',
  'apiKey',
  'progressToken',
  'Access Token',
  'tokens',
  'x_secret_y',
  '__proto__',
  'kéy',
  '"',
];
const tree = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom('plain', 'a "quoted" \\ text', '\ud83d\ude00', 5, -1.5e300, true, null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.constantFrom(...NAMES), tie('value')), { maxLength: 4 })
      .map((members) => Object.fromEntries(members)),
  ),
})).value;

function hideNaively(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(hideNaively);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, isSecretName(name) ? '[hidden]' : hideNaively(member)]),
  );
}

test('hides the same members as a naive model', (t) => {
  fc.assert(
    fc.property(tree, fc.constantFrom(undefined, 1), (value, indent) => {
      const message = { params: { arguments: value } };
      t.deepEqual(JSON.parse(hideIn(JSON.stringify(message, null, indent)).text), hideNaively(message));
    }),
    { numRuns: 300 },
  );
});

test('never throws, whatever the text', (t) => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    ':',
    ',',
    '\\',
    'password',
    'token',
    '\\u00',
    ' ',
    '1',
    '://',
    '@',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
      t.is(typeof hideIn(`{"token":1,${parts.join('')}`).text, 'string');
    }),
    { numRuns: 1000 },
  );
});

/** Enough for a quadratic search to take far longer than the limit, also on a busy machine. */
const MEBI = 2 ** 18;
const HOSTILE: Readonly<Record<string, () => string>> = {
  'deep nesting': () => '{"token-like":'.repeat(MEBI / 16),
  'deep arrays': () => `{"x":"token","a":${'['.repeat(MEBI)}`,
  'one long text': () => `{"a":"token ${'x'.repeat(4 * MEBI)}"}`,
  'a long text of starts': () => `{"a":"${'eyJa.eyJ-'.repeat(MEBI / 8)}"}`,
  'starts of addresses': () => `{"a":"${'://a:'.repeat(MEBI / 4)}"}`,
  'starts of parameters': () => `{"a":"${'&token&'.repeat(MEBI / 4)}"}`,
  'starts of bearers': () => `{"a":"${'bearer       '.repeat(MEBI / 8)}"}`,
  'starts of keys': () => `{"a":"${'-----BEGIN PRIVATE KEY-----'.repeat(MEBI / 16)}"}`,
  'quotes in a text': () => `{"a":"${'\\"token\\": \\"'.repeat(MEBI / 8)}"}`,
  'backslashes in a text': () => `{"a":"token ${'\\\\'.repeat(MEBI)}"}`,
  'lines of names': () => `{"a":"${'token \\n'.repeat(MEBI / 8)}"}`,
  'spaces after names': () => `{"a":"token=${' '.repeat(2 * MEBI)}"}`,
  'long names': () => `{"${'token'.repeat(MEBI / 4)}":1}`,
  'many members': () => `{${'"token":1,'.repeat(MEBI / 8)}"a":1}`,
};

for (const [name, make] of Object.entries(HOSTILE)) {
  test(`takes linear time: ${name}`, (t) => {
    const text = make();
    const startedMs = performance.now();
    hideIn(text);
    // A quadratic search would take minutes.
    t.true(performance.now() - startedMs < 15_000);
  });
}
