import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import { eventsUrl, runTop, type TopOutput } from '../../../src/observe/top/run-top.ts';
import type { TopTerminal } from '../../../src/observe/top/terminal-screen.ts';
import { startEndlessAnswers } from '../../support/endless-answers.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { client, inspection, NO_REFUSALS, WallClock } from '../status/seen.ts';
import { startStatusServer } from '../status/status-server.ts';

async function start(t: ExecutionContext, token?: string) {
  const wallClock = new WallClock();
  const activity = new Activity({ wallClock: wallClock.now });
  const none = { refusals: NO_REFUSALS, usage: undefined, hosts: [], snippets: () => undefined };
  const serverClock = new FakeClock();
  const server = await startStatusServer(
    createStatus({ ...none, inspect: () => inspection(), activity }),
    serverClock,
    { token },
  );
  t.teardown(() => server.close());
  return { activity, server, serverClock, wallClock };
}

class Terminal {
  written = '';
  rows = 24;
  /** What is listening: the keyboard, to the size of the terminal, to the end of the process. */
  readonly listeners = new Map<'keyboard' | 'size' | 'exit', () => void>();
  type: (text: string) => void = () => undefined;
  readonly clock = new FakeClock();
  readonly abort = new AbortController();

  run(url: string, kind: TopOutput['kind'], token: string | undefined = undefined) {
    const output =
      kind === 'text' ? { kind, columns: () => 100, write: this.#write } : { kind, terminal: this.#screen() };
    const { clock, abort } = this;
    const wallClock = new WallClock().now;
    return runTop({ url: new URL(url), token, replicas: 'one', output, clock, wallClock, signal: abort.signal });
  }

  readonly #write = (text: string): void => {
    this.written += text;
  };

  #screen(): TopTerminal {
    const listen = (to: 'keyboard' | 'size' | 'exit', listener: () => void) => {
      this.listeners.set(to, listener);
      return () => void this.listeners.delete(to);
    };
    const keyboard = {
      open: (typed: (text: string) => void, ended: () => void) => {
        this.type = typed;
        listen('keyboard', ended);
      },
      close: () => void this.listeners.delete('keyboard'),
    };
    const onResize = (resized: () => void) => listen('size', resized);
    const onExit = (exiting: () => void) => listen('exit', exiting);
    const size = { columns: () => 100, rows: () => this.rows };
    return { ...size, hasColors: false, write: this.#write, keyboard, onResize, onExit };
  }

  /** What the last frame shows. */
  get screen(): string {
    return this.written.slice(this.written.lastIndexOf('\u001b[H'));
  }
}

test('prints the status of this moment where there is no terminal, and ends', async (t) => {
  const { server, activity, serverClock } = await start(t);
  activity.connected(client(), undefined);
  const terminal = new Terminal();
  t.deepEqual(await terminal.run(server.url, 'text'), { kind: 'ended' });
  t.regex(terminal.written, /^mcp-portage 0\.1\.0 {2}http:\/\/127\.0\.0\.1:\d+ {2}live\nup 2 h 0 min {3}1 client/);
  t.true(terminal.written.includes('cursor 0.42.3'));
  t.false(terminal.written.includes('\u001b'));
  t.is(terminal.clock.pendingTimers, 0);
  await waitFor(() => serverClock.pendingTimers === 0);
});

test('draws in place until it is stopped, and leaves the terminal as it was', async (t) => {
  const { server, activity, serverClock } = await start(t);
  const terminal = new Terminal();
  const ending = terminal.run(`${server.url}/everything/mcp`, 'screen');
  await waitFor(() => terminal.written.includes('Nobody is connected.'));
  t.true(terminal.written.startsWith('\u001b[?1049h\u001b[?25l\u001b[H'));
  activity.connected(client({ name: 'a new one' }), undefined);
  serverClock.advance(1000);
  await waitFor(() => terminal.screen.includes('a new one'));
  const { length } = terminal.written;
  terminal.clock.advance(3000);
  t.is(terminal.written.length, length, 'what is there already is not drawn again');
  terminal.rows = 3;
  terminal.clock.advance(1000);
  t.is(terminal.screen.split('\r\n').length, 3);
  terminal.abort.abort();
  t.deepEqual(await ending, { kind: 'ended' });
  assertRestored(t, terminal);
});

function assertRestored(t: ExecutionContext, terminal: Terminal): void {
  t.true(terminal.written.endsWith('\u001b[?25h\u001b[?1049l'));
  t.is(terminal.written.split('\u001b[?1049l').length, 2, 'once');
  t.deepEqual([...terminal.listeners.keys()], []);
  t.is(terminal.clock.pendingTimers, 0);
}

for (const [how, end, expected] of [
  ['q', ({ type }: Terminal) => type('q'), 'ended'],
  ['Ctrl-C', ({ type }: Terminal) => type('\u0003'), 'ended'],
  ['a key among others', ({ type }: Terminal) => type('jq/'), 'ended'],
  ['the end of the keyboard', ({ listeners }: Terminal) => listeners.get('keyboard')?.(), 'ended'],
] as const) {
  test(`${how} ends the view, which leaves the terminal as it was`, async (t) => {
    const { server } = await start(t);
    const terminal = new Terminal();
    const ending = terminal.run(server.url, 'screen');
    await waitFor(() => terminal.listeners.size === 3);
    end(terminal);
    t.is((await ending).kind, expected);
    assertRestored(t, terminal);
  });
}

test('leaves the terminal as it was when the process exits without another way', async (t) => {
  const { server } = await start(t);
  const terminal = new Terminal();
  const ending = terminal.run(server.url, 'screen');
  await waitFor(() => terminal.listeners.size === 3);
  terminal.listeners.get('exit')?.();
  t.true(terminal.written.endsWith('\u001b[?25h\u001b[?1049l'));
  t.false(terminal.listeners.has('keyboard'));
  terminal.abort.abort();
  await ending;
  assertRestored(t, terminal);
});

test('leaves the terminal as it was when the bridge does not show its status anymore', async (t) => {
  const answers = [200, 401];
  const { server: bridge } = await start(t);
  const status = await (await fetch(`${bridge.url}/status.json`)).text();
  const server = createServer((_request, response) => {
    response.writeHead(answers.shift() ?? 401, { 'Content-Type': 'text/event-stream' });
    response.end(`retry: 1\nevent: status\ndata: ${status}\n\n`);
  });
  const terminal = new Terminal();
  t.like(await terminal.run(await listenOn(t, server), 'screen'), { kind: 'failed', code: 'ERR_UPSTREAM_AUTH' });
  t.true(terminal.written.includes('Nobody is connected.'));
  assertRestored(t, terminal);
});

test('a key redraws at once, and another size draws all again', async (t) => {
  const { server } = await start(t);
  const terminal = new Terminal();
  const ending = terminal.run(server.url, 'screen');
  await waitFor(() => terminal.screen.includes('> everything'));
  terminal.type('\r');
  t.true(terminal.screen.includes('a command that the bridge runs'));
  terminal.type('\u001b');
  terminal.clock.advance(50);
  t.true(terminal.screen.includes('> everything'));
  const { screen, written } = terminal;
  terminal.listeners.get('size')?.();
  t.true(terminal.written.length > written.length);
  t.is(terminal.screen, screen);
  terminal.abort.abort();
  await ending;
});

test('an arrow is one key, even if it arrives in parts', async (t) => {
  const { server } = await start(t);
  const terminal = new Terminal();
  const ending = terminal.run(server.url, 'screen');
  await waitFor(() => terminal.listeners.size === 3);
  terminal.type('/x');
  for (const part of ['\u001b', '[', 'B']) terminal.type(part);
  terminal.clock.advance(50);
  t.true(terminal.screen.includes('/x_'), 'Esc would have cleared the filter');
  terminal.abort.abort();
  await ending;
  assertRestored(t, terminal);
});

test('says that the connection is lost, and comes back by itself', async (t) => {
  const { server, serverClock } = await start(t);
  const terminal = new Terminal();
  const ending = terminal.run(server.url, 'screen');
  await waitFor(() => terminal.screen.includes('live'));
  server.routes.close();
  await waitFor(() => terminal.screen.includes('connection lost, trying again'));
  await waitFor(() => terminal.screen.includes('  live'));
  terminal.abort.abort();
  t.is((await ending).kind, 'ended');
  await waitFor(() => serverClock.pendingTimers === 0);
});

test('sends its token, and says what to write where one is needed', async (t) => {
  const { server } = await start(t, 'opens-only-this');
  t.is((await new Terminal().run(server.url, 'text', 'opens-only-this')).kind, 'ended');
  for (const [token, message] of [
    [
      undefined,
      `${server.url} shows its status only with its status token (HTTP 401): add --status-token env:NAME or --status-token file:PATH, with the token that it was started with.`,
    ],
    [
      'a guess',
      `${server.url} does not accept the token of --status-token (HTTP 401): give the one that it was started with, as env:NAME or file:PATH.`,
    ],
  ] as const) {
    const terminal = new Terminal();
    t.deepEqual(await terminal.run(server.url, 'screen', token), {
      kind: 'failed',
      code: 'ERR_UPSTREAM_AUTH',
      message,
    });
    t.is(terminal.written, '', 'the terminal was not touched');
  }
});

async function listen(t: ExecutionContext, type: string, body: string, status = 200): Promise<string> {
  const server = createServer(
    (_request, response) => void response.writeHead(status, { 'Content-Type': type }).end(body),
  );
  return listenOn(t, server);
}

async function listenOn(t: ExecutionContext, server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('says what is wrong when there is no status', async (t) => {
  const missing = await listen(t, 'text/plain', 'no', 404);
  t.deepEqual(await new Terminal().run(missing, 'text'), {
    kind: 'failed',
    code: 'ERR_UPSTREAM_CONNECT',
    message: `There is no ${missing}/status/events: is that mcp-portage, and does it show its status?`,
  });
  const full = await listen(t, 'text/plain', 'no', 503);
  t.like(await new Terminal().run(full, 'text'), {
    message: `Too many watch the status of ${full} already; HTTP 503.`,
  });
  t.deepEqual(await new Terminal().run('http://127.0.0.1:1/', 'text'), {
    kind: 'failed',
    code: 'ERR_UPSTREAM_CONNECT',
    message: 'Cannot reach http://127.0.0.1:1: is mcp-portage running there?',
  });
});

test('ends where something else is sent, whatever it is', async (t) => {
  for (const data of [
    '{}',
    'null',
    'no JSON',
    '{"atMs":1,"servers":7}',
    '{"atMs":0,"servers":[{}],"clients":[],"calls":{}}',
  ]) {
    const url = await listen(t, 'text/event-stream', `event: status\ndata: ${data}\n\n`);
    t.deepEqual(await new Terminal().run(url, 'screen'), {
      kind: 'failed',
      code: 'ERR_UPSTREAM_CONNECT',
      message: `What ${url}/status/events sends is no status of mcp-portage.`,
    });
  }
});

test('reads no event that is larger than any status', async (t) => {
  const server = await startEndlessAnswers(t, 'text/event-stream', 'event: status\ndata: ');
  t.deepEqual(await new Terminal().run(server.url, 'text'), {
    kind: 'failed',
    code: 'ERR_UPSTREAM_CONNECT',
    message: `What ${server.url}/status/events sends is no status of mcp-portage.`,
  });
  t.true(server.sentBytes < 64 * 1024 * 1024);
});

test('keeps no members without end that are added to the status', async (t) => {
  const { server } = await start(t);
  const status = await (await fetch(`${server.url}/status.json`)).text();
  const added = Array.from({ length: 1000 }, (_, index) => `event: change\ndata: {"m${index}":1}\n\n`);
  const url = await listen(t, 'text/event-stream', `event: status\ndata: ${status}\n\n${added.join('')}`);
  t.like(await new Terminal().run(url, 'screen'), { kind: 'failed' });
});

test('waits for no status without end', async (t) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': welcome\n\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const terminal = new Terminal();
  const ending = terminal.run(url, 'text');
  terminal.clock.advance(10_000);
  t.deepEqual(await ending, {
    kind: 'failed',
    code: 'ERR_UPSTREAM_CONNECT',
    message: `${url}/status/events has sent no status for 10 s: is that mcp-portage?`,
  });
  t.is(terminal.clock.pendingTimers, 0);
});

test('does not begin when it is stopped before', async (t) => {
  const terminal = new Terminal();
  terminal.abort.abort();
  t.deepEqual(await terminal.run('http://127.0.0.1:1', 'screen'), { kind: 'ended' });
  t.is(terminal.written, '');
});

test('finds the stream from any address of the bridge', (t) => {
  const found = (url: string): string => eventsUrl(new URL(url)).href;
  t.is(found('http://localhost:8808'), 'http://localhost:8808/status/events');
  t.is(found('http://localhost:8808/everything/mcp?x=1'), 'http://localhost:8808/status/events');
  t.is(found('https://user:pass@example.org/tools/status'), 'https://example.org/tools/status/events');
  t.is(found('https://example.org/tools/status.json'), 'https://example.org/tools/status/events');
  t.is(found('https://example.org/status/events'), 'https://example.org/status/events');
});
