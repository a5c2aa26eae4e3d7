/** What a client on a pipe can do wrong, before a process and before a URL, through the built bridge. Needs a current build. */
import { createInterface } from 'node:readline';
import test, { type ExecutionContext } from 'ava';
import {
  callEcho,
  INITIALIZE,
  type ProgramExit,
  type ProgramOptions,
  type StdioProgram,
  startConnect,
} from '../cli/stdio-program.ts';
import { event, notification } from '../fixtures/http-servers/scripted.ts';
import { type LogLine, readLog } from '../support/bridge.ts';
import { assertGone } from '../support/processes.ts';
import { says } from '../support/says.ts';
import { waitFor } from '../support/wait-for.ts';
import { faulty, rssMiBOf } from './faulty-bridge.ts';
import { type AskedCall, echo, REMOTE_KINDS, type RemoteServer, UNTAKEN } from './faulty-remote.ts';

interface Piped {
  readonly program: StdioProgram;
  readonly logs: readonly LogLine[];
  /** Where it stands before a URL. */
  readonly server: RemoteServer | undefined;
  /** Fails unless it ends, with 0 by itself, and this is all that the log says. */
  ends(log?: readonly string[], exit?: ProgramExit): Promise<void>;
}

type TargetName = 'a process' | 'a URL';
const TARGETS: readonly TargetName[] = ['a process', 'a URL'];

interface PipedOptions extends ProgramOptions {
  /** For open calls where somebody wants it to end, and for servers to end. Default: enough for a busy machine. */
  readonly grace?: string;
}

async function startPiped(
  t: ExecutionContext,
  target: TargetName,
  { grace = '30s', ...options }: PipedOptions = {},
): Promise<Piped> {
  const server = target === 'a URL' ? await REMOTE_KINDS.streamable.start() : undefined;
  t.teardown(() => server?.close());
  const words = server === undefined ? faulty() : [server.url.href];
  const program = startConnect(t, ['--log-format', 'json', '--shutdown-grace', grace, ...words], options);
  const logs: LogLine[] = [];
  const read = readLog(program.child.stderr, logs);
  const ends = async (log: readonly string[] = [], exit: ProgramExit = BY_ITSELF): Promise<void> => {
    t.deepEqual(await program.exited, exit);
    await read;
    says(t, { logs }, log);
  };
  return { program, logs, server, ends };
}

const BY_ITSELF: ProgramExit = { code: 0, signal: null };

/** Of clients that say more than the server takes, and then nothing. */
const LEAVING = [
  {
    title: 'that floods it and takes nothing ends the bridge by a signal',
    tool: 'floods-stdout-with-messages',
    answer: flood,
    hasParent: false,
    leave: ({ child }: StdioProgram) => void child.kill('SIGTERM'),
    exit: BY_ITSELF,
  },
  {
    title: 'that floods it closes both ends',
    tool: 'floods-stdout-with-messages',
    answer: flood,
    hasParent: false,
    leave: closeBoth,
    exit: BY_ITSELF,
  },
  {
    title: 'that takes nothing dies',
    tool: 'stops-reading',
    answer: echo,
    hasParent: true,
    leave(program: StdioProgram) {
      program.child.kill('SIGKILL');
      closeBoth(program);
    },
    // Of the client.
    exit: { code: null, signal: 'SIGKILL' },
  },
] as const;

function closeBoth({ child }: StdioProgram): void {
  child.stdin.destroy();
  child.stdout.destroy();
}

/** The first line that is no JSON and the first that is no message, and at the end how many of each there were. */
const LOG_OF_GARBAGE = [...Array(2).fill('warn ERR_WIRE_PARSE'), ...Array(2).fill('warn ERR_WIRE_MESSAGE')];

/** Of a mebibyte each. */
const CALLS = 64;
/** All of them there and back, for how many are under way at once is a matter of time; and what V8 leaves unused for a while. */
const BOUND_MIB = 2 * CALLS + 150;

const messagesOf = ({ lines }: StdioProgram) => lines.map((line) => JSON.parse(line));

for (const target of TARGETS) {
  test.serial(`client on a pipe before ${target} stops reading: all answers are there when it reads on`, async (t) => {
    const { program, ends } = await startPiped(t, target, { isRead: false });
    program.send(INITIALIZE);
    program.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const before = rssMiBOf(program.child.pid ?? 0);
    const text = 'x'.repeat(1024 * 1024);
    for (let id = 1; id <= CALLS; id += 1) program.send(callEcho(id, text));
    await waitFor(() => program.child.stdout.readableLength > 0);
    const ids = new Set<number>();
    let most = 0;
    // It wakes up when the bridge takes no more from it either.
    await isStuck(program);
    t.true(program.child.stdin.writableLength > (CALLS / 2) * text.length, 'most of it has not been read');
    createInterface({ input: program.child.stdout }).on('line', (line) => {
      const { id, result } = JSON.parse(line);
      if (result?.content?.[0]?.text === text && !ids.has(id)) ids.add(id);
      most = Math.max(most, rssMiBOf(program.child.pid ?? 0));
    });
    await waitFor(() => ids.size === CALLS, { message: () => `${ids.size} of ${CALLS} answers` });
    t.true(most - before < BOUND_MIB, `${most - before} MiB more`);
    program.child.stdin.end();
    await ends();
  });

  test.serial(`client on a pipe before ${target} closes it within a line: what was whole is answered`, async (t) => {
    const { program, ends } = await startPiped(t, target);
    await program.initialize();
    const children = program.children();
    program.send(callEcho(1, 'whole'));
    program.child.stdin.end(JSON.stringify(callEcho(2, 'half €')).slice(0, -5));
    await ends(['warn ERR_WIRE_PARSE']);
    t.is(messagesOf(program).filter(({ id, result }) => id === 1 && result !== undefined).length, 1);
    await assertGone(children);
  });

  test.serial(`client on a pipe before ${target} sends garbage: the log says so, and calls go on`, async (t) => {
    const { program, ends } = await startPiped(t, target);
    await program.initialize();
    program.child.stdin.write(Buffer.from([0xff, 0xfe, 0x00, 0x0a]));
    program.child.stdin.write('{"jsonrpc"\n[[[[\nnull\n{"jsonrpc":"2.0"}\n\n');
    program.send(callEcho(1, 'and on'));
    await program.answerTo(1);
    t.is(program.lines.length, 2, 'what has no id gets no answer');
    program.child.stdin.end();
    await ends(LOG_OF_GARBAGE);
  });

  test.serial(`client on a pipe before ${target} closes both ends while it calls: nothing stays`, async (t) => {
    const { program, ends } = await startPiped(t, target, { grace: '300ms' });
    await program.initialize();
    const children = program.children();
    program.send({ ...callEcho(1, 'x'), params: { name: 'stops-reading', arguments: { text: 'x' } } });
    program.child.stdout.destroy();
    program.child.stdin.destroy();
    await ends();
    await assertGone(children);
  });

  for (const { title, tool, answer, leave, hasParent, exit } of LEAVING) {
    // Windows does not tell that a parent has died.
    const testHere = hasParent && process.platform === 'win32' ? test.serial.skip : test.serial;
    testHere(`client on a pipe before ${target} ${title}: nothing stays`, async (t) => {
      const { program, server, ends } = await startPiped(t, target, { grace: '1s', isRead: false, hasParent });
      if (server !== undefined) server.answer = answer;
      program.send(INITIALIZE);
      program.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
      program.send({ ...callEcho(1, ''), params: { name: tool, arguments: { text: '' } } });
      await waitFor(() => program.child.stdout.readableLength > 0);
      const children = program.children();
      // More than the bridge hands on to a server that takes none.
      const params = { text: 'x'.repeat(1000) };
      for (let sent = 0; sent < 2000; sent += 1) program.send({ jsonrpc: '2.0', method: UNTAKEN, params });
      program.send(callEcho(2, 'behind them'));
      // All of it is read ahead; what leaves within a line is another test.
      await waitFor(() => program.child.stdin.writableLength === 0, { message: 'the bridge to read ahead' });
      leave(program);
      await ends([], exit);
      await assertGone(children);
    });
  }

  test.serial(`stdio endpoint before ${target} killed by SIGKILL: nothing stays that can be ended`, async (t) => {
    const { program, server } = await startPiped(t, target);
    await program.initialize();
    program.send(callEcho(1, 'x'));
    await program.answerTo(1);
    const children = program.children();
    t.is(children.length, target === 'a process' ? 1 : 0);
    program.child.kill('SIGKILL');
    await program.exited;
    await assertGone(children);
    if (server !== undefined)
      await waitFor(() => server.connections === 0, { message: 'its connections to be closed' });
  });
}

/** Without an end, as fast as it is read. */
function flood({ stream }: AskedCall): void {
  const messages = event(notification('notifications/message', { level: 'info', data: 'x'.repeat(900) })).repeat(64);
  const write = (): void => {
    while (stream.write(messages));
  };
  stream.on('drain', write);
  write();
}

/** Nothing moves anymore on the way in. */
async function isStuck({ child }: StdioProgram): Promise<void> {
  let last = -1;
  let times = 0;
  await waitFor(() => {
    times = child.stdin.writableLength === last ? times + 1 : 0;
    last = child.stdin.writableLength;
    return times > 20;
  });
}
