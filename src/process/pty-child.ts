/**
 * Children on a pseudo-terminal (--pty), for servers that behave differently without one. Their stdin and stdout are
 * the terminal; stderr stays a pipe, so that log lines never land inside a message.
 *
 * Only one call of node-pty is used, which opens a pair of descriptors. Its own way of starting processes loses what a
 * child wrote last, has no backpressure and changes the environment.
 */
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import { ReadStream } from 'node:tty';
import type { Clock, Deps } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import type { Child, ChildListener, ChildSpec } from './child.ts';
import { awaitFailure, type StartChild, spawnProcess } from './pipe-child.ts';
import { RunningChild } from './running-child.ts';
import { toSpawnError } from './spawn-error.ts';

const COLUMNS = 80;
const ROWS = 24;

/** Opens a pseudo-terminal: its master's descriptor, a descriptor of its slave, the slave's path. */
export type OpenPty = (columns: number, rows: number) => { master: number; slave: number; pty: string };

/** @throws BridgeError ERR_CONFIG_OPTION if pseudo-terminals are not available */
export function createPtyStarter(deps: Deps, openPty: OpenPty = loadOpenPty()): StartChild {
  const masters = new Set<number>();
  return (spec, listener) => new PtyStart(deps, openPty, masters).start(spec, listener);
}

/**
 * Only the package's prebuilt binary is used, and only for --pty. It is no dependency, so that other installations get
 * no native code.
 */
const PTY_PACKAGE = '@lydell/node-pty';

/**
 * Loads the package on demand, because it is optional, and with `require`, because starting a child is synchronous.
 *
 * @param load for tests
 */
export function loadOpenPty(load: (id: string) => unknown = createRequire(import.meta.url)): OpenPty {
  if (process.platform === 'win32') {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      '--pty does not work on Windows: its console redraws what a program writes as a screen, which breaks messages. ' +
        'Start the server without --pty.',
    );
  }
  try {
    const binary = load(`${PTY_PACKAGE}/requireBinary.js`) as { requireBinary(file: string): { open: OpenPty } };
    return binary.requireBinary('pty.node').open;
  } catch (cause) {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `--pty needs native code, the package ${PTY_PACKAGE}, which is not installed here or has no build for this system. ` +
        `Install it beside mcp-portage: "npm install -g ${PTY_PACKAGE}@1" where that is installed globally, or ` +
        `"npx -y -p mcp-portage -p ${PTY_PACKAGE}@1 mcp-portage --pty ...". Or do without --pty.`,
      { cause },
    );
  }
}

class PtyStart {
  readonly #deps: Deps;
  readonly #openPty: OpenPty;
  /** The open masters of all children with a terminal in this process. */
  readonly #masters: Set<number>;

  constructor(deps: Deps, openPty: OpenPty, masters: Set<number>) {
    this.#deps = deps;
    this.#openPty = openPty;
    this.#masters = masters;
  }

  start(spec: ChildSpec, listener: ChildListener): Child {
    try {
      const terminal = this.#openTerminal();
      try {
        return this.#startOn(terminal, spec, listener);
      } catch (thrown) {
        closeTerminal(terminal);
        throw thrown;
      }
    } catch (thrown) {
      throw toSpawnError(spec, thrown);
    }
  }

  #openTerminal(): Terminal {
    const { master: fd, slave: nonBlocking, pty } = this.#openPair();
    this.#masters.add(fd);
    const master = new ReadStream(fd);
    master.once('close', () => this.#masters.delete(fd));
    try {
      makeRaw(master);
      // The slave is opened again, because the first descriptor is non-blocking, which programs do not expect of a
      // terminal.
      return { fd, master, slave: openSync(pty, constants.O_RDWR | constants.O_NOCTTY) };
    } catch (thrown) {
      master.destroy();
      throw thrown;
    } finally {
      closeSync(nonBlocking);
    }
  }

  #openPair(): ReturnType<OpenPty> {
    try {
      return this.#openPty(COLUMNS, ROWS);
    } catch (cause) {
      const message =
        'The system has no pseudo-terminal to give; allow fewer servers with --max-sessions, or do without --pty.';
      throw new BridgeError('ERR_UPSTREAM_SPAWN', message, { cause });
    }
  }

  #startOn(terminal: Terminal, spec: ChildSpec, listener: ChildListener): Child {
    const { fd, master, slave } = terminal;
    const devNull = openSync('/dev/null', 'r+');
    try {
      const process = spawnProcess(spec, this.#stdio(slave, devNull));
      const { pid, stderr } = process;
      if (pid === undefined || stderr === null) {
        closeTerminal(terminal);
        return awaitFailure(spec, listener, process);
      }
      const { clock } = this.#deps;
      const stdin = new PtyInput(fd, clock);
      const stdout = new PtyOutput(master, fd);
      process.once('exit', () => {
        stdin.destroy();
        stdout.finish();
        closeTerminal(terminal);
      });
      const log = this.#deps.log.child({ child: spec.name, childPid: pid });
      const carried = { carrier: 'pty', stdin, stdout, stderr } as const;
      return new RunningChild({ spec, process, pid, ...carried, listener, clock, log });
    } finally {
      closeSync(devNull);
    }
  }

  /**
   * The stdio of a child. Masters are opened without close-on-exec. A child that inherited one, its own or another
   * child's, would keep terminals from hanging up when the bridge dies; so /dev/null replaces each master in the child.
   */
  #stdio(slave: number, devNull: number): (number | 'pipe' | 'ignore')[] {
    const stdio: (number | 'pipe' | 'ignore')[] = [slave, slave, 'pipe'];
    for (const master of this.#masters) {
      while (stdio.length <= master) stdio.push('ignore');
      stdio[master] = devNull;
    }
    return stdio;
  }
}

interface Terminal {
  readonly fd: number;
  readonly master: ReadStream;
  /** Kept open while the child runs: without an open slave, bytes buffered for the master would be lost. */
  readonly slave: number;
}

/**
 * Raw mode: no echo, no signals from input, and no line input, which the kernel would cut at 4,096 bytes. Set through
 * the master before the first write, so the child never reads in another mode. Output newlines still arrive as CR LF,
 * which the framing treats as LF.
 */
function makeRaw(master: ReadStream): void {
  master.setRawMode(true);
  if (!master.isRaw) throw new Error('the pseudo-terminal cannot be made raw');
}

function closeTerminal({ master, slave }: Terminal): void {
  master.destroy();
  closeSync(slave);
}

const FIRST_RETRY_MS = 1;
const MAX_RETRY_MS = 16;

/**
 * Writes to a pseudo-terminal without blocking on the child. The event loop's own terminal stream would spin until the
 * child reads, and no event tells when it has. A write to a full terminal is therefore repeated, first after a
 * millisecond, which is fast enough for the amount that a terminal accepts at once.
 */
export class PtyInput extends Writable {
  /** A non-blocking descriptor that stays open at least as long as this stream. */
  readonly #masterFd: number;
  readonly #clock: Clock;
  #cancelRetry: () => void = () => undefined;

  constructor(masterFd: number, clock: Clock) {
    super();
    this.#masterFd = masterFd;
    this.#clock = clock;
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#writeOn(chunk, FIRST_RETRY_MS, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#cancelRetry();
    done(error);
  }

  #writeOn(chunk: Buffer, retryMs: number, done: (error?: Error | null) => void): void {
    let written = 0;
    try {
      while (written < chunk.length) written += writeSync(this.#masterFd, chunk, written);
    } catch (thrown) {
      if (!isFull(thrown)) return done(thrown instanceof Error ? thrown : new Error(String(thrown)));
      const nextRetryMs = written > 0 ? FIRST_RETRY_MS : Math.min(MAX_RETRY_MS, 2 * retryMs);
      this.#cancelRetry = this.#clock.after(nextRetryMs, () =>
        this.#writeOn(chunk.subarray(written), nextRetryMs, done),
      );
      return;
    }
    done();
  }
}

function isFull(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'EAGAIN';
}

const READ_BYTES = 64 * 1024;
/**
 * The kernel buffers no more than this of the leader's output. Output that other processes still write is not awaited.
 */
const MAX_LAST_BYTES = 1024 * 1024;

/**
 * The output of a child on a pseudo-terminal, as a stream with an end. A terminal has no end: when its last slave is
 * closed, the event loop takes the hang-up for the end even if the kernel still holds bytes. The slave is therefore
 * kept open, and this stream ends once the child has exited and everything buffered has been read.
 */
export class PtyOutput extends Readable {
  readonly #master: ReadStream;
  readonly #masterFd: number;
  readonly #onData = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#master.pause();
  };

  constructor(master: ReadStream, masterFd: number) {
    super();
    this.#master = master;
    this.#masterFd = masterFd;
    master.on('data', this.#onData);
  }

  override _read(): void {
    this.#master.resume();
  }

  /** Called when the child has exited. The master must still be open and can be closed afterward. */
  finish(): void {
    this.#master.off('data', this.#onData);
    this.#master.pause();
    for (let chunk = this.#master.read(); chunk !== null; chunk = this.#master.read()) this.push(chunk);
    let left = MAX_LAST_BYTES;
    while (left > 0) {
      const chunk = this.#readKernel();
      if (chunk === undefined) break;
      left -= chunk.length;
      this.push(chunk);
    }
    this.push(null);
  }

  #readKernel(): Buffer | undefined {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    try {
      const byteLength = readSync(this.#masterFd, buffer);
      return byteLength === 0 ? undefined : buffer.subarray(0, byteLength);
    } catch {
      // EAGAIN: no bytes are left. EIO: no bytes are left, and no slave is open.
      return undefined;
    }
  }
}
