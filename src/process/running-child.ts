import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Logger } from 'pino';
import type { Clock } from '../deps.ts';
import type { Child, ChildListener, ChildSpec, EndReason } from './child.ts';
import { openProcessGroup } from './process-group.ts';
import { StderrLog } from './stderr-log.ts';
import { Termination } from './terminate.ts';

/** Time to wait for output after the exit, if another process still holds the pipe. */
const LATE_OUTPUT_MS = 1000;
/**
 * A process closes its streams a moment before it exits. Only after this time does it count as running without them.
 */
const LINGER_MS = 250;

export interface RunningChildOptions {
  /** The description by which the child was started. */
  readonly spec: Pick<ChildSpec, 'name' | 'graceMs' | 'withheldEnv' | 'onStderrLine'>;
  readonly process: ChildProcess;
  readonly pid: number;
  readonly carrier: 'pipe' | 'pty';
  readonly stdin: Writable;
  /** This stream must close some time after the exit. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly listener: ChildListener;
  readonly clock: Clock;
  /** A child logger with the child's name and pid. */
  readonly log: Logger;
}

interface BareExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly ranMs: number;
  readonly terminated: boolean;
}

/**
 * State of the child. `running`: with all of its streams. `closing`: it has closed stdin or stdout and may be about to
 * exit; if it still runs after `LINGER_MS`, the listener is told, unless `cancelReport` is called first. `exited`: the
 * process has exited, and its remaining output is being read. `ended`: the listener was told.
 */
type ChildState =
  | { readonly kind: 'running' }
  | { readonly kind: 'closing'; readonly cancelReport: () => void }
  | { readonly kind: 'exited'; readonly exit: BareExit }
  | { readonly kind: 'ended' };

/** A started process, on pipes or on a pseudo-terminal. */
export class RunningChild implements Child {
  readonly name: string;
  readonly pid: number;
  readonly stdin: Writable;
  readonly #options: RunningChildOptions;
  readonly #startedMs: number;
  readonly #stderrLog: StderrLog;
  readonly #termination: Termination;
  #lastHeardMs: number;
  #state: ChildState = { kind: 'running' };
  #openOutputs = 2;
  #isPaused = false;
  #hasFailed = false;
  #cancelLateOutput: () => void = () => undefined;

  constructor(options: RunningChildOptions) {
    const { spec, pid, carrier, stdin, clock, log } = options;
    const { name, graceMs, withheldEnv, onStderrLine } = spec;
    this.name = name;
    this.pid = pid;
    this.stdin = stdin;
    this.#options = options;
    this.#startedMs = clock.now();
    this.#lastHeardMs = this.#startedMs;
    this.#stderrLog = new StderrLog(log, withheldEnv, onStderrLine);
    const group = openProcessGroup(pid);
    this.#termination = new Termination({ carrier, graceMs, group, closeStdin: () => stdin.end(), clock, log });
    this.#listen();
    log.info('server started');
  }

  get lastHeardMs(): number {
    return this.#lastHeardMs;
  }

  get isEnding(): boolean {
    return this.#termination.hasBegun;
  }

  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  get gone(): Promise<void> {
    return this.#termination.gone;
  }

  pauseOutput(): void {
    this.#isPaused = true;
    this.#options.stdout.pause();
    this.#cancelLateOutput();
  }

  resumeOutput(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#options.stdout.resume();
    this.#limitLateOutput();
  }

  terminate(why?: EndReason): Promise<void> {
    if (why === 'hung' && !this.#termination.hasBegun) this.#hasFailed = true;
    return this.#termination.begin(why);
  }

  killNow(): void {
    this.#termination.killNow();
  }

  #listen(): void {
    const { process, stdin, stdout, stderr, listener, clock, log } = this.#options;
    process.on('exit', (code, signal) => this.#exited(code, signal));
    process.on('error', (err) => log.debug({ err }, 'child process error'));
    // EPIPE and similar errors need no handling here: `close` reports that the child does not read anymore.
    stdin.on('error', (err) => log.debug({ err }, 'child stdin error'));
    stdin.on('close', () => this.#closedEarly('stdin'));
    stdout.on('data', (chunk: Buffer) => {
      this.#lastHeardMs = clock.now();
      listener.output(chunk);
    });
    // Node resumes stdout when a child exits with unread output.
    stdout.on('resume', () => {
      if (this.#isPaused) stdout.pause();
    });
    stdout.on('error', (err) => log.debug({ err }, 'child stdout error'));
    stdout.on('close', () => {
      this.#closedEarly('stdout');
      this.#outputClosed();
    });
    // Stderr is never paused, because a full pipe would block the child.
    stderr.on('data', (chunk: Buffer) => {
      this.#lastHeardMs = clock.now();
      this.#stderrLog.push(chunk);
    });
    stderr.on('error', (err) => log.debug({ err }, 'child stderr error'));
    stderr.on('close', () => {
      this.#stderrLog.end();
      this.#outputClosed();
    });
  }

  #closedEarly(stream: 'stdin' | 'stdout'): void {
    if (this.#state.kind !== 'running') return;
    const cancelReport = this.#after(LINGER_MS, () => {
      if (!this.#termination.hasBegun) this.#options.listener.closed(stream);
    });
    this.#state = { kind: 'closing', cancelReport };
  }

  #exited(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#state.kind === 'closing') this.#state.cancelReport();
    const ranMs = this.#options.clock.now() - this.#startedMs;
    const terminated = this.#termination.hasBegun;
    if (!terminated) this.#hasFailed = true;
    this.#state = { kind: 'exited', exit: { code, signal, ranMs, terminated } };
    this.#termination.leaderExited();
    if (this.#openOutputs === 0) this.#end();
    else this.#limitLateOutput();
  }

  #outputClosed(): void {
    this.#openOutputs -= 1;
    if (this.#openOutputs === 0) this.#end();
  }

  /** Limits the wait for late output. The limit does not apply while the bridge itself has paused the output. */
  #limitLateOutput(): void {
    if (this.#state.kind !== 'exited' || this.#isPaused) return;
    const { stdout, stderr, log } = this.#options;
    this.#cancelLateOutput = this.#after(LATE_OUTPUT_MS, () => {
      log.debug('something still holds the pipes of a server that has exited; they are no longer read');
      stdout.destroy();
      stderr.destroy();
    });
  }

  /**
   * Runs a function after a delay and one more poll for pipes and exits: if the event loop was blocked, its timers run
   * before it has polled for them.
   */
  #after(delayMs: number, run: () => void): () => void {
    let look: NodeJS.Immediate | undefined;
    const cancel = this.#options.clock.after(delayMs, () => {
      look = setImmediate(run);
    });
    return () => {
      cancel();
      clearImmediate(look);
    };
  }

  #end(): void {
    if (this.#state.kind !== 'exited') return;
    const { exit } = this.#state;
    this.#state = { kind: 'ended' };
    this.#cancelLateOutput();
    const { tail, named } = this.#stderrLog;
    this.#options.listener.ended({ ...exit, stderrTail: tail, namedOnStderr: named });
  }
}
