/** `mcp-portage view` as its user runs it: the built program with recordings made by hand. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, rename, truncate, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { RecordedLines } from '../observe/view/recorded-lines.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { findProgram } from '../support/find-program.ts';
import { waitFor } from '../support/wait-for.ts';
import { finishCommand } from './finish-command.ts';
import { EXECUTABLE } from './stdio-program.ts';

const OK = { result: {} };
const run = (...args: readonly string[]) => finishCommand([process.execPath, EXECUTABLE, 'view', ...args]);

async function record(t: ExecutionContext, text: string, name = 'session.jsonl'): Promise<string> {
  const { path: folder } = await createConfigFolder(t);
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

/** The view of a followed file or bridge. */
class RunningView {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  out = '';
  err = '';

  constructor(t: ExecutionContext, args: readonly string[]) {
    this.child = spawn(process.execPath, [EXECUTABLE, 'view', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.exited = once(this.child, 'close');
    this.child.stdout?.on('data', (chunk) => (this.out += String(chunk)));
    this.child.stderr?.on('data', (chunk) => (this.err += String(chunk)));
    t.teardown(() => this.child.kill('SIGKILL'));
  }

  async shows(text: string): Promise<void> {
    await waitFor(() => this.out.includes(text), { message: () => `${text} in ${this.out}, ${this.err}` });
  }

  async tells(text: string): Promise<void> {
    await waitFor(() => this.err.includes(text), { message: () => `${text} in ${this.err}` });
  }
}

/** Calls of two clients at two servers, one of which fails. */
function sampleCalls(): RecordedLines {
  return new RecordedLines()
    .request(1, 'tools/list')
    .answer(1, OK)
    .request(2, 'tools/call', { name: 'forecast' }, { server: 'weather', client: 'cursor' })
    .answer(2, { error: { code: -32602 } }, { server: 'weather', client: 'cursor' })
    .add('server', 'in', { method: 'notifications/tools/list_changed' });
}

test('a recording is shown as calls, without colors where there is no terminal', async (t) => {
  const { code, stdout, stderr } = await run(await record(t, sampleCalls().text));
  t.is(code, 0, stderr);
  t.is(stderr, '');
  t.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) =>
        line
          .replace(/\d\d:\d\d:\d\d/, '')
          .trim()
          .replace(/ {2,}/g, '  '),
      ),
    [
      'TIME  CLIENT → SERVER  CALL  OUTCOME  TOOK  SIZES',
      'claude-code → everything  tools/list  answered  3 ms  46→36',
      'cursor → weather  forecast tools/call  error -32602  3 ms  75→48',
      'everything → bridge  notifications/tools/list_c…  notification  61',
    ],
  );
});

test('filters choose calls by their outcome, method, client and server', async (t) => {
  const path = await record(t, sampleCalls().text);
  const methods = async (...args: readonly string[]) => {
    const { stdout } = await run(path, '--json', ...args);
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).method]));
  };
  t.deepEqual(await methods('--errors'), ['tools/call']);
  t.deepEqual(await methods('--method', 'tools/*'), ['tools/list', 'tools/call']);
  t.deepEqual(await methods('--client', 'claude-*'), ['tools/list', 'notifications/tools/list_changed']);
  t.deepEqual(await methods('--server', 'weather'), ['tools/call']);
  t.deepEqual(await methods('--server', 'weather', '--client', 'claude-*'), []);
});

test('all messages of a call are shown with --full, and are in the JSON with --json', async (t) => {
  const path = await record(t, sampleCalls().text);
  const { stdout } = await run(path, '--full', '--errors');
  t.is(stdout.match(/^ {2}(client|bridge|server) → (client|bridge|server) /gm)?.length, 4);
  t.true(stdout.includes('        "name": "forecast"\n'));
  const json = await run(path, '--full', '--json', '--errors');
  t.is(JSON.parse(json.stdout).messages.length, 4);
});

test('the older part of a rotated recording comes first', async (t) => {
  const whole = sampleCalls();
  const path = await record(t, whole.lines.slice(6).join('\n'));
  await writeFile(`${path}.1`, `${whole.lines.slice(0, 6).join('\n')}\n`);
  const { stdout } = await run(path, '--json');
  t.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).kind),
    ['call', 'call', 'notification'],
  );
});

test('damaged lines are left out and told with their numbers', async (t) => {
  const { lines } = sampleCalls();
  const damaged = [lines[0], '{"not": "a message"}', '', 'garbage \u001b[2J', ...lines.slice(1), '{"at":"2026'];
  const { code, stdout, stderr } = await run(await record(t, damaged.join('\n')), '--json');
  t.is(code, 0);
  t.is(stdout.trimEnd().split('\n').length, 3);
  t.regex(stderr, /^mcp-portage: Line 2 of .*session\.jsonl has no valid "at"; it is left out\.$/m);
  t.regex(stderr, /^mcp-portage: Line 4 of .* is not JSON; it is left out\.$/m);
  t.regex(stderr, /^mcp-portage: Line 13 of /m);
});

test('what is no recording is refused', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  await mkdir(join(folder, 'folder'));
  for (const [name, content, message] of [
    ['package.json', '{\n  "name": "x"\n}\n', /is no recording of mcp-portage.* Line 1 of .* is not JSON/],
    ['audit.jsonl', '{"time":1,"method":"tools/call"}\n', /is no recording.*has no valid "at"/],
    ['noise', '\u0000\u0001\n'.repeat(5000), /is no recording/],
    ['missing', undefined, /There is no recording at .*missing; --record/],
    ['folder', undefined, /folder is a directory/],
  ] as const) {
    const path = join(folder, name);
    if (content !== undefined) await writeFile(path, content);
    const { code, stdout, stderr } = await run(path);
    t.is(code, 2, name);
    t.is(stdout, '');
    t.regex(stderr, message);
  }
});

test('an empty recording is none yet, and no error', async (t) => {
  const { code, stderr } = await run(await record(t, ''));
  t.is(code, 0);
  t.regex(stderr, /is empty: nothing has been recorded yet\./);
});

test('the command line takes one file or one bridge', async (t) => {
  for (const args of [[], ['one', 'two']]) t.regex((await run(...args)).stderr, /view shows one recording/);
  t.regex((await run('--port', '1', 'file')).stderr, /--port is for/);
  t.regex((await run('--status-token', 'env:X', 'file')).stderr, /a file needs no token/);
  t.regex((await run('tcp://127.0.0.1:1')).stderr, /looked at over HTTP/);
});

test('a reader that has seen enough ends the view quietly', async (t) => {
  const recorded = new RecordedLines();
  for (let call = 1; call <= 20_000; call += 1) recorded.request(call, 'tools/list').answer(call, OK);
  const child = spawn(process.execPath, [EXECUTABLE, 'view', await record(t, recorded.text)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const closed = once(child, 'exit');
  let err = '';
  child.stderr.on('data', (chunk) => (err += String(chunk)));
  await once(child.stdout, 'data');
  child.stdout.destroy();
  t.deepEqual(await closed, [0, null]);
  t.is(err, '');
});

test('a followed recording goes on through a rotation, and begins when its file does', async (t) => {
  const { path: folder } = await createConfigFolder(t);
  const path = join(folder, 'session.jsonl');
  const view = new RunningView(t, ['--follow', path]);
  await view.tells('does not exist yet; waiting for it.');
  const recorded = new RecordedLines().request(1, 'first').answer(1, OK).request(2, 'rotated').request(3, 'never');
  await writeFile(path, recorded.text);
  await view.shows('first');
  await rename(path, `${path}.1`);
  recorded.lines.length = 0;
  // A line arrives in two parts.
  const text = recorded.answer(2, OK).request(4, 'after').answer(4, OK).text;
  await writeFile(path, text.slice(0, -20));
  await view.shows('rotated');
  await appendFile(path, text.slice(-20));
  await view.shows('after');
  await truncate(path);
  recorded.lines.length = 0;
  await appendFile(path, recorded.request(5, 'x').answer(5, OK).text);
  await view.shows(' x ');
  view.child.kill('SIGINT');
  await view.exited;
  t.is(view.child.exitCode, 0);
  t.regex(view.out, /never +unanswered/);
  t.is(view.err.split('\n').length, 2);
});

test('the latest messages of a canceled call are shown without waiting for another message', async (t) => {
  const recorded = new RecordedLines()
    .request(1, 'slow')
    .add('client', 'in', { method: 'notifications/cancelled', params: { requestId: 1 } }, { call: 1 });
  const view = new RunningView(t, ['--follow', await record(t, recorded.text)]);
  await view.shows('canceled');
  t.pass();
});

// ---- a running bridge

class Feed {
  readonly responses: ServerResponse[] = [];
  readonly #server = createServer((request, response) => {
    this.asked.push(request.url ?? '');
    if (this.status !== 200) return response.writeHead(this.status).end();
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(this.first);
    this.responses.push(response);
  });
  readonly asked: string[] = [];
  first = ': hello\n\n';
  status = 200;

  async listen(t: ExecutionContext, port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    t.teardown(() => this.close());
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  send(text: string): void {
    this.responses.at(-1)?.write(text);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const eventsOf = ({ lines }: RecordedLines): string =>
  lines.map((line) => `event: message\ndata: ${line}\n\n`).join('');

test('a running bridge is followed, and again after a restart, with no call shown twice', async (t) => {
  const feed = new Feed();
  const recorded = new RecordedLines().request(1, 'first').answer(1, OK);
  feed.first = eventsOf(recorded);
  const url = await feed.listen(t);
  const view = new RunningView(t, [`${url}/everything/mcp`, '--json']);
  await view.shows('first');
  t.deepEqual(feed.asked, ['/status/messages']);
  feed.send('event: dropped\ndata: {"messages":12}\n\n');
  await view.tells('12 messages were missed');
  feed.close();
  await view.tells('is lost; trying again');
  const again = new Feed();
  const restarted = new RecordedLines();
  restarted.nowMs = recorded.nowMs + 1000;
  // What the bridge had kept comes again, and then what a restarted one counts from 1.
  again.first = eventsOf(recorded) + eventsOf(restarted.request(1, 'second').answer(1, OK));
  await again.listen(t, Number(new URL(url).port));
  await view.tells('Connected to');
  await view.shows('second');
  view.child.kill('SIGTERM');
  await view.exited;
  t.is(view.out.split('"first"').length, 2);
});

test('a bridge that shows no messages is answered with how to start it', async (t) => {
  const feed = new Feed();
  const url = await feed.listen(t);
  feed.status = 404;
  t.like(await run(url), { code: 69 });
  t.regex((await run(url)).stderr, /start mcp-portage there with --inspect/);
  feed.status = 401;
  t.like(await run(url), { code: 77 });
  t.regex((await run(url)).stderr, /add --status-token/);
  feed.status = 200;
  feed.first = 'event: message\ndata: {"hello":1}\n\n';
  t.regex((await run(url)).stderr, /no messages of mcp-portage/);
  feed.close();
  t.regex((await run(url)).stderr, /Cannot reach .*is mcp-portage running there/);
});

// ---- a terminal

const tmux = findProgram('tmux');
const inTmux = tmux === undefined ? test.skip : test.serial;

inTmux('hostile names leave a terminal as it was, in all formats', async (t) => {
  const recorded = new RecordedLines();
  const names = [
    '\u001b[2J\u001b]0;forged\u0007\u001b[?1049h\u001b[31m',
    '\u202egnp.exe\u2066',
    `zalgo${'\u0301'.repeat(3000)}`,
    '漢字\u{1f4a3}'.repeat(100),
    'x'.repeat(1_000_000),
    '\u009b2J\u0090\u009d0;forged\u009c\r\n\u000b\u0008\u007f',
  ];
  names.forEach((name, index) => {
    const facts = { server: name, client: name };
    recorded.request(index + 1, 'tools/call', { name }, facts).answer(index + 1, { error: { code: 1, message: name } });
  });
  const path = await record(t, recorded.text);
  const socket = join((await createConfigFolder(t)).path, 'tmux');
  const ask = (...args: readonly string[]): string =>
    execFileSync('tmux', ['-S', socket, ...args], { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C.UTF-8' } });
  ask('-f', '/dev/null', 'new-session', '-d', '-x', '80', '-y', '30', '-n', 'before', 'sh');
  t.teardown(() => ask('kill-server'));
  const view = `${process.execPath} ${EXECUTABLE} view`;
  const screen = (): string => ask('capture-pane', '-p');
  ask('send-keys', `PS1=; clear; ${view} ${path}; echo "plain is ""over"`, 'Enter');
  await waitFor(() => /^plain is over$/m.test(screen()), { message: screen });
  const rows = screen()
    .split('\n')
    .filter((line) => /^\d\d:\d\d:\d\d /.test(line));
  t.is(rows.length, names.length, screen());
  t.true(rows.every((row) => /error 1 /.test(row)));
  ask(
    'send-keys',
    `clear; ${view} --full ${path} | cut -c1-200 | tail -5; ${view} --json ${path} | cut -c1-60; echo "full is ""over"`,
    'Enter',
  );
  await waitFor(() => /^full is over$/m.test(screen()), { message: screen });
  t.false(/forged(?!\\|")/.test(ask('display-message', '-p', '#{pane_title}')));
  t.is(ask('display-message', '-p', '#{alternate_on}').trim(), '0');
});
