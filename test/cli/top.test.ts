/** `mcp-portage top` as its user sees it: the built program on a terminal, looking at a running bridge. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import type { ExecutionContext } from 'ava';
import type { OpenPty } from '../../src/process/pty-child.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { openPty, ptyTest } from '../support/pseudo-terminal.ts';
import { waitFor } from '../support/wait-for.ts';
import { EXECUTABLE, stub } from './stdio-program.ts';

const ENTER = '\u001b[?1049h';
const LEAVE = '\u001b[?25h\u001b[?1049l';

/** A terminal of 80 columns on which `top` runs. */
class TopOnTerminal {
  readonly child: ChildProcess;
  readonly #slave: number;
  readonly #master: ReadStream;
  readonly #settings: string;
  written = '';

  constructor(t: ExecutionContext, bridge: Bridge) {
    const { master, slave } = (openPty as OpenPty)(80, 24);
    this.#slave = slave;
    this.#settings = this.#readSettings();
    const { PATH, HOME } = process.env;
    this.child = spawn(process.execPath, [EXECUTABLE, 'top', bridge.url.href], {
      env: { PATH, HOME, TERM: 'xterm' },
      stdio: [slave, slave, 'inherit'],
    });
    this.#master = new ReadStream(master);
    this.#master.on('data', (chunk) => (this.written += String(chunk)));
    // What a terminal says when nobody is left at its other end.
    this.#master.on('error', () => undefined);
    t.teardown(() => {
      this.child.kill('SIGKILL');
      closeSync(slave);
      this.#master.destroy();
    });
  }

  /** The last frame. */
  get screen(): string {
    return this.written.slice(this.written.lastIndexOf('\u001b[H'));
  }

  /** Whether lines, echo and signals are the terminal's own, as `stty` prints it. */
  #readSettings(): string {
    return execFileSync('stty', ['-g'], { stdio: [this.#slave, 'pipe', 'inherit'], encoding: 'utf8' });
  }

  async sees(text: string): Promise<void> {
    await waitFor(() => this.screen.includes(text), { message: () => `${text} in ${JSON.stringify(this.screen)}` });
  }

  type(keys: string): void {
    // A pseudo-terminal is one descriptor for both directions, and a ReadStream of `node:tty` is a socket.
    (this.#master as unknown as NodeJS.WritableStream).write(keys);
  }

  isRaw(): boolean {
    return this.#readSettings() !== this.#settings;
  }

  async assertRestored(t: ExecutionContext, exited: Promise<unknown>): Promise<void> {
    const [code, signal] = (await exited) as [number | null, string | null];
    await waitFor(() => this.written.endsWith(LEAVE), { message: () => JSON.stringify(this.written.slice(-100)) });
    t.is(this.written.split(ENTER).length, 2);
    t.false(this.isRaw());
    t.deepEqual([code, signal], [0, null]);
  }
}

ptyTest('keys choose what top shows on a terminal, and q leaves it as it was', async (t) => {
  const bridge = await startBridge(stub('echo'));
  t.teardown(() => bridge.stop());
  const top = new TopOnTerminal(t, bridge);
  const exited = once(top.child, 'exit');
  await top.sees('q quit  ? keys');
  t.true(top.isRaw());
  top.type('\u001b[B\r');
  await top.sees('a command that the bridge runs');
  top.type('\u001b');
  await top.sees('Nobody is connected.');
  top.type('/nothing');
  await top.sees('/nothing_');
  top.type('\rq');
  await top.assertRestored(t, exited);
});

ptyTest('the terminal is as it was after Ctrl-C, and after SIGTERM without the bridge', async (t) => {
  const bridge = await startBridge(stub('echo'));
  t.teardown(() => bridge.stop());
  const interrupted = new TopOnTerminal(t, bridge);
  const terminated = new TopOnTerminal(t, bridge);
  const [first, second] = [once(interrupted.child, 'exit'), once(terminated.child, 'exit')];
  for (const top of [interrupted, terminated]) await top.sees('q quit');
  interrupted.type('\u0003');
  await interrupted.assertRestored(t, first);
  await bridge.stop();
  await terminated.sees('connection lost');
  terminated.child.kill('SIGTERM');
  await terminated.assertRestored(t, second);
});
