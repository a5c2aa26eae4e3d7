import { stripVTControlCharacters } from 'node:util';
import test from 'ava';
import { renderReport } from '../../src/probe/render-report.ts';
import { exitCodeOf, type Offer, type ProbeReport } from '../../src/probe/report.ts';

const NOT_TRIED: Offer = {
  transport: 'http-sse',
  era: 'legacy',
  works: false,
  saw: '405 Method Not Allowed',
  revision: undefined,
  supportedRevisions: undefined,
  session: undefined,
  serverStream: undefined,
  serverInfo: undefined,
  capabilities: [],
  tools: { state: 'not-asked' },
  resources: { state: 'not-asked' },
  resourceTemplates: { state: 'not-asked' },
  prompts: { state: 'not-asked' },
};

const REPORT: ProbeReport = {
  format: 1,
  target: { kind: 'url', name: 'https://example.com/mcp' },
  verdict: 'partly-usable',
  offers: [
    {
      ...NOT_TRIED,
      transport: 'streamable-http',
      works: true,
      saw: 'answered',
      revision: '2025-11-25',
      session: 'session',
      serverStream: 'failing',
      serverInfo: { name: 'weather', version: '1.2.3' },
      capabilities: ['prompts', 'resources', 'tools', 'tools.listChanged'],
      tools: { state: 'counted', count: 12, isComplete: true },
      resources: { state: 'counted', count: 1000, isComplete: false },
      resourceTemplates: { state: 'failed', saw: 'error -32601 "no"' },
      prompts: { state: 'counted', count: 1, isComplete: true },
    },
    NOT_TRIED,
  ],
  authorization: undefined,
  problems: [
    'Calls by POST work, but the stream by GET fails: 500 Internal Server Error. What the server says outside of calls does not arrive.',
  ],
  clients: [
    { client: 'stdio-legacy', way: 'portage', command: 'mcp-portage connect https://example.com/mcp' },
    { client: 'http-sse', way: 'portage', command: 'mcp-portage serve https://example.com/mcp' },
    { client: 'streamable-http-legacy', way: 'direct', command: undefined },
    { client: 'streamable-http-modern', way: 'portage', command: 'mcp-portage serve https://example.com/mcp' },
    { client: 'stdio-modern', way: 'portage', command: 'mcp-portage connect https://example.com/mcp' },
  ],
  steps: [
    { request: 'POST server/discover', saw: '400 Bad Request', status: 400, tookMs: 41.6 },
    { request: 'POST initialize', saw: 'answered', status: 200, tookMs: 9.34 },
    { request: 'GET for an event stream', saw: '405 Method Not Allowed', status: 405, tookMs: 12_300 },
  ],
  tookMs: 512,
};

const PLAIN = { color: false, width: 100 };

test('a report as it stands on a terminal', (t) => {
  t.is(
    renderReport(REPORT, PLAIN),
    `https://example.com/mcp
usable, with problems after 512 ms

Problems
  ! Calls by POST work, but the stream by GET fails: 500 Internal Server Error. What the server says
    outside of calls does not arrive.

What it speaks
  Streamable HTTP, legacy   yes  revision 2025-11-25, with session, stream by GET fails
                                 weather 1.2.3
                                 12 tools, 1000+ resources, resource templates: failed, 1 prompt
                                 declares prompts, resources, tools, tools.listChanged
  HTTP+SSE, legacy          no   405 Method Not Allowed

Who can use it
  stdio clients, legacy            with  mcp-portage connect https://example.com/mcp
  HTTP+SSE clients                 with  mcp-portage serve https://example.com/mcp
  Streamable HTTP clients, legacy  directly
  Streamable HTTP clients, modern  with  mcp-portage serve https://example.com/mcp
  stdio clients, modern            with  mcp-portage connect https://example.com/mcp

What was asked
     42 ms  POST server/discover     400 Bad Request
    9.3 ms  POST initialize          answered
      12 s  GET for an event stream  405 Method Not Allowed
`,
  );
});

test('what a server wants for authorization is shown', (t) => {
  const authorization = {
    status: 401,
    token: 'missing' as const,
    scheme: 'Bearer',
    resourceMetadata: 'https://example.com/.well-known/oauth-protected-resource',
    metadataSource: 'header' as const,
    authorizationServers: ['https://auth.example'],
    scopes: ['read', 'write'],
  };
  const text = renderReport({ ...REPORT, verdict: 'unauthorized', authorization }, PLAIN);
  t.regex(text, /^needs authorization after/m);
  t.true(
    text.includes(`Authorization
  required                  401, Bearer
  metadata                  https://example.com/.well-known/oauth-protected-resource
  servers                   https://auth.example
  scopes                    read, write
  way in                    a login, with --login on-demand, or a token, in MCP_PORTAGE_BEARER_TOKEN
                            or --bearer-token-file
`),
    text,
  );
  const alone = { ...authorization, authorizationServers: [] };
  const withoutLogin = renderReport({ ...REPORT, verdict: 'unauthorized', authorization: alone }, PLAIN);
  t.regex(withoutLogin, /^ {2}way in +a token, in MCP_PORTAGE_BEARER_TOKEN or --bearer-token-file$/m);
});

test('a token that is refused is told as that, and another one is asked for', (t) => {
  const authorization = {
    status: 401,
    token: 'refused' as const,
    scheme: 'Bearer',
    resourceMetadata: undefined,
    metadataSource: undefined,
    authorizationServers: [],
    scopes: [],
  };
  const text = renderReport({ ...REPORT, verdict: 'unauthorized', authorization }, PLAIN);
  t.regex(text, /^refuses the token it was given after/m);
  t.regex(text, /^ {2}refused +401, Bearer$/m);
  const forbidden = { ...authorization, status: 403 };
  const noAccess = renderReport({ ...REPORT, verdict: 'unauthorized', authorization: forbidden }, PLAIN);
  t.regex(noAccess, /^gives no access with this token after/m);
  t.regex(text, /^ {2}way in +another token, in MCP_PORTAGE_BEARER_TOKEN or --bearer-token-file$/m);
});

test('paint changes nothing but the paint', (t) => {
  const painted = renderReport(REPORT, { ...PLAIN, color: true });
  t.not(painted, renderReport(REPORT, PLAIN));
  t.is(stripVTControlCharacters(painted), renderReport(REPORT, PLAIN));
});

test('on a narrow terminal nothing but long words and commands goes over the edge', (t) => {
  for (const width of [40, 60, 80]) {
    const lines = renderReport(REPORT, { color: false, width }).split('\n');
    for (const line of lines.filter((text) => !text.includes('  mcp-portage '))) {
      t.true(line.length <= Math.max(width, 48) || !line.trim().includes('  '), `${width}: ${line}`);
    }
  }
});

test('a command to be copied stands in one line', (t) => {
  const command = `mcp-portage serve -- npx -y some-server '/a folder' ${'another '.repeat(12)}argument`;
  const clients = REPORT.clients.map(({ client }) => ({ client, way: 'portage' as const, command }));
  for (const width of [40, 80, 100]) {
    const lines = renderReport({ ...REPORT, clients }, { color: false, width }).split('\n');
    t.is(lines.filter((line) => line.endsWith(`with  ${command}`)).length, clients.length);
  }
});

test('what a server says of itself cannot drive the terminal', (t) => {
  const [first] = REPORT.offers;
  const offers = [{ ...(first as Offer), serverInfo: { name: '\u001b[31m\u0007\nusable', version: '\u202e1' } }];
  const problems = ['It said \u001b]0;title\u0007.'];
  const text = renderReport({ ...REPORT, offers, problems }, PLAIN);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
  t.notRegex(text, /[\u0000-\u0009\u000b-\u001f\u202e]/);
  t.regex(text, / usable 1\n/);
});

test('a server that nobody can use is not followed by advice', (t) => {
  const clients = REPORT.clients.map(({ client }) => ({ client, way: 'none' as const, command: undefined }));
  t.notRegex(renderReport({ ...REPORT, verdict: 'unusable', clients }, PLAIN), /Who can use it/);
});

test('exit codes: 0 usable, 77 without authorization, 69 else', (t) => {
  const codes = (['usable', 'partly-usable', 'unauthorized', 'unusable'] as const).map((verdict) =>
    exitCodeOf({ ...REPORT, verdict }),
  );
  t.deepEqual(codes, [0, 0, 77, 69]);
});
