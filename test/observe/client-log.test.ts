import test from 'ava';
import { createLog } from '../../src/log.ts';
import { ClientLog } from '../../src/observe/client-log.ts';
import type { Transport } from '../../src/relay/observer.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { call, client, MODERN, runCall, SERVER_2025, SERVER_2026 } from '../support/observed.ts';

type Line = Readonly<Record<string, unknown>> & { readonly msg: string };

async function create(level: 'info' | 'debug' | 'warn' = 'info') {
  const lines: Line[] = [];
  const clock = new FakeClock();
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = await createLog({ level, format: 'json', colors: false, destination });
  return { observer: new ClientLog({ log, clock }), clock, lines, messages: () => lines.map(({ msg }) => msg) };
}

const modern = (parts: object = {}) => client({ ...MODERN, ...parts });

// ---- Clients that connect.

test('a client that connects is named with what it speaks and what that is translated to', async (t) => {
  const { observer, lines } = await create();
  observer.connected(client({ transport: 'http-sse', revision: '2024-11-05' }), SERVER_2026);
  t.is(
    lines[0]?.msg,
    'cursor 0.42 connected to everything by HTTP+SSE 2024-11-05, translated to 2026-07-28 over stdio',
  );
  t.like(lines[0], {
    level: 'info',
    client: 'cursor',
    clientVersion: '0.42',
    transport: 'http-sse',
    revision: '2024-11-05',
    server: 'everything',
    serverTransport: 'stdio',
    serverEra: 'modern',
    serverRevision: '2026-07-28',
  });
});

for (const [what, parts, server, expected] of [
  ['of the same revision', {}, SERVER_2025, 'Streamable HTTP 2025-06-18, passed on over stdio'],
  ['of which nothing is known', {}, undefined, 'Streamable HTTP 2025-06-18'],
  [
    'of another revision of the same era',
    {},
    { ...SERVER_2025, revision: '2025-11-25' },
    'Streamable HTTP 2025-06-18, translated to 2025-11-25 over stdio',
  ],
  [
    'of the other era, whose revision is not known',
    MODERN,
    { ...SERVER_2025, revision: undefined },
    'Streamable HTTP 2026-07-28, translated to the legacy era over stdio',
  ],
  [
    'of the same era, whose revision is not known',
    {},
    { ...SERVER_2025, transport: 'http-sse', revision: undefined },
    'Streamable HTTP 2025-06-18, passed on over HTTP+SSE',
  ],
  ['whose client has not said its revision', { transport: 'stdio', revision: undefined }, undefined, 'stdio'],
] as const) {
  test(`the line tells of a server ${what}`, async (t) => {
    const { observer, messages } = await create();
    observer.connected(client(parts), server);
    t.deepEqual(messages(), [`cursor 0.42 connected to everything by ${expected}`]);
  });
}

for (const [what, parts, expected] of [
  ['no name', { name: undefined, version: '1' }, 'a client without a name'],
  ['a name that is not seen', { name: '\u200b', version: '1' }, 'a client without a name'],
  ['no version', { version: undefined }, 'cursor'],
  ['an empty version', { version: '' }, 'cursor'],
] as const) {
  test(`a client that says little of itself is named as it is: ${what}`, async (t) => {
    const { observer, messages } = await create();
    observer.connected(client(parts), undefined);
    t.is(messages()[0], `${expected} connected to everything by Streamable HTTP 2025-06-18`);
  });
}

for (const [afterMs, shown] of [
  [12, '12 ms'],
  [1500, '1.5 s'],
  [90_000, '2 min'],
  [2 * 3600_000 + 60_000, '2 h 1 min'],
] as const) {
  test(`a client that leaves is named with how long it was there: ${shown}`, async (t) => {
    const { observer, clock, lines } = await create();
    const left = observer.connected(client(), SERVER_2025);
    clock.advance(afterMs);
    left?.('ERR_SESSION_CLOSED');
    t.is(lines[1]?.msg, `cursor 0.42 left everything after ${shown}`);
    t.like(lines[1], { level: 'info', ms: afterMs, client: 'cursor', code: 'ERR_SESSION_CLOSED' });
  });
}

test('a client that leaves because something went wrong says so', async (t) => {
  const { observer, messages } = await create();
  observer.connected(client(), SERVER_2025)?.('ERR_UPSTREAM_EXITED');
  t.is(messages()[1], 'cursor 0.42 left everything after 0 ms (ERR_UPSTREAM_EXITED)');
});

test('names that a client chose forge no line, drive no terminal and are cut', async (t) => {
  const { observer, lines } = await create('debug');
  const name = `evil\n\u001b[31m\u202e${'x'.repeat(1000)}`;
  observer.connected(client({ name, version: name, revision: name }), SERVER_2025)?.('ERR_SESSION_CLOSED');
  runCall(observer, { client: modern({ name, version: name, revision: name }), method: name, tool: name });
  t.is(lines.length, 4);
  for (const line of lines) {
    const text = JSON.stringify(line);
    t.true(text.includes('evil') && text.length < 2000, `${text.length}`);
    for (const control of ['\\n', '\\u001b', '\u202e']) t.false(text.includes(control), control);
  }
});

// ---- Calls.

test('a call is a line at debug, with method, tool, outcome, time and bytes', async (t) => {
  const { observer, lines } = await create('debug');
  runCall(observer, {}, { durationMs: 15.2 });
  t.is(lines[0]?.msg, 'tools/call echo was answered after 15 ms, 200 bytes');
  t.like(lines[0], {
    level: 'debug',
    client: 'cursor',
    server: 'everything',
    method: 'tools/call',
    tool: 'echo',
    outcome: 'answered',
    ms: 15.2,
    requestBytes: 100,
    bytes: 200,
  });
});

for (const [outcome, expected] of [
  [{ kind: 'error', code: -32602 }, 'got an error of the server (-32602)'],
  [{ kind: 'error', code: undefined }, 'got an error of the server'],
  [{ kind: 'cancelled' }, 'was canceled'],
  [{ kind: 'failed', code: 'ERR_UPSTREAM_TIMEOUT' }, 'failed (ERR_UPSTREAM_TIMEOUT)'],
] as const) {
  test(`the line of a call tells that it ${expected}`, async (t) => {
    const { observer, messages } = await create('debug');
    runCall(observer, { method: 'tools/list', tool: undefined }, { outcome });
    t.deepEqual(messages(), [`tools/list ${expected} after 15 ms, 200 bytes`]);
  });
}

test('calls cost nothing where they are not told', async (t) => {
  const { observer } = await create('info');
  t.is(observer.opened(call()), undefined);
  const silent = await create('warn');
  t.is(silent.observer.opened(call({ client: modern() })), undefined);
  t.is(silent.observer.connected(client(), undefined), undefined);
});

test('where calls are not told one in 16 is looked at, and none within 50 ms of another', async (t) => {
  const { observer, clock } = await create('info');
  const looks = (calls: number) => Array.from({ length: calls }, () => observer.seesCalls).filter(Boolean).length;
  t.is(looks(160), 1);
  clock.advance(49);
  t.is(looks(160), 0);
  clock.advance(1);
  t.is(looks(15), 1);
  clock.advance(1000);
  t.is(looks(1), 0);
  t.is(looks(1), 1);
});

// ---- Modern clients over HTTP, which neither connect nor leave.

test('a modern client over HTTP is named when it is first seen, and again after an hour', async (t) => {
  const { observer, clock, messages } = await create();
  const line = 'cursor 0.42 calls everything by Streamable HTTP 2026-07-28, translated to 2025-06-18 over stdio';
  runCall(observer, { client: modern() });
  t.deepEqual(messages(), [line]);
  clock.advance(59 * 60_000);
  t.is(observer.opened(call({ client: modern() })), undefined, 'further calls cost nothing');
  clock.advance(60_000);
  runCall(observer, { client: modern() });
  t.deepEqual(messages(), [line, line]);
});

test('each name, version and server is a client of its own', async (t) => {
  const { observer, lines } = await create();
  for (const parts of [{}, { name: 'other' }, { version: '1' }, { server: 'another' }, {}]) {
    runCall(observer, { client: modern(parts) });
  }
  t.is(lines.length, 4);
});

test('a modern client that only listens is named at once, for its call may never end', async (t) => {
  const { observer, messages } = await create();
  t.is(observer.opened(call({ client: modern(), method: 'subscriptions/listen' })), undefined);
  t.deepEqual(messages(), ['cursor 0.42 calls everything by Streamable HTTP 2026-07-28']);
});

for (const transport of ['stdio', 'http-sse'] satisfies Transport[]) {
  test(`a client that connects by ${transport} is not named again for its calls`, async (t) => {
    const { observer, lines } = await create();
    const parts = transport === 'stdio' ? MODERN : {};
    runCall(observer, { client: client({ ...parts, transport }) });
    t.deepEqual(lines, []);
  });
}

test('a client that makes up names fills neither the log nor the memory', async (t) => {
  const { observer, clock, messages } = await create();
  for (let index = 0; index < 3000; index += 1) runCall(observer, { client: modern({ name: `n${index}` }) });
  t.is(messages().length, 1001);
  t.regex(messages().at(-1) ?? '', /not named in the log for a while/);
  clock.advance(3600_000);
  runCall(observer, { client: modern() });
  t.regex(messages().at(-1) ?? '', /^cursor 0\.42 calls/);
});
