import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError, MAY_BE_FRAMED } from '../../errors.ts';
import { LineWriter } from '../../io/line-writer.ts';
import { type Child, type ChildExit, type ChildListener, describeExit, type EndReason } from '../../process/child.ts';
import { mayDownload } from '../../process/command-name.ts';
import type { RestartPolicy } from '../../process/supervisor.ts';
import type { ServerObserver } from '../../relay/observer.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Carrier, CarrierListener } from '../duplex/carrier.ts';
import { ServerLines } from '../server-messages.ts';
import { exitError } from './exit-error.ts';

/**
 * Time of silence before the first answer after which the log says that the server is starting. Most servers have
 * answered by then.
 */
const STARTING_MS = 2000;
/** Time without any output before the first answer after which the log warns of a possible problem. */
const SILENT_MS = 10_000;

export interface StdioCarrierOptions {
  readonly name: string;
  readonly maxMessageBytes: number;
  readonly withheldEnv: readonly string[];
  /** Log level for a process that fails: `debug` if the caller that dials reports the failure itself. */
  readonly failureLevel: 'warn' | 'debug';
  readonly policy: RestartPolicy;
  /** Is told why the process failed; undefined: nobody looks at it. */
  readonly observer?: ServerObserver | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly start: (listener: ChildListener) => Child;
}

/** The pipes of one server process. */
export class StdioCarrier implements Carrier, ChildListener {
  readonly process: Child;
  readonly #options: StdioCarrierOptions;
  readonly #listener: CarrierListener;
  readonly #lines: ServerLines;
  readonly #writer: LineWriter;
  #isOpen = true;
  /** Time of the first request. */
  #askedMs: number | undefined = undefined;
  #hasServed = false;
  #cancelWarning: (() => void) | undefined = undefined;

  /** Throws what `start` throws. */
  constructor(options: StdioCarrierOptions, listener: CarrierListener) {
    const { name, maxMessageBytes, log } = options;
    this.#options = options;
    this.#listener = listener;
    const sink = {
      message: (frame: Frame) => this.#message(frame),
      fault: listener.faulted.bind(listener),
      unreadable: (error: BridgeError) => this.#unreadable(error),
    };
    const noiseWarning = 'prints to stdout something that is not MCP';
    this.#lines = new ServerLines({ name, maxMessageBytes, noiseWarning, sink, log: log.child({ child: name }) });
    this.process = options.start(this);
    this.#writer = new LineWriter(this.process.stdin, () => listener.drained());
  }

  // ---- from the connection

  get isFull(): boolean {
    return this.#writer.isFull;
  }

  send(frame: Frame): boolean {
    if (!this.#hasServed && frame.kind === 'request') {
      this.#askedMs ??= this.#options.clock.now();
      this.#cancelWarning ??= this.#watchStart();
    }
    return this.#writer.send(frame.bytes);
  }

  pause(): void {
    this.process.pauseOutput();
  }

  resume(): void {
    this.process.resumeOutput();
  }

  close(reason: BridgeError): void {
    // An ERR_UPSTREAM_ code means that the bridge gave the server up for not answering. A client that disconnects is no
    // such failure.
    if (this.#askedMs !== undefined && !this.#hasServed && reason.code.startsWith('ERR_UPSTREAM_')) {
      this.#options.policy.unanswered(reason);
    }
    this.#options.log.debug({ child: this.#options.name, code: reason.code }, 'link closed, ending the server');
    this.#leave();
    const hangs = reason.code === 'ERR_UPSTREAM_HUNG';
    // A process that is ending already is ended for another reason.
    if (hangs && !this.process.isEnding) this.#options.observer?.failed(reason.message);
    this.#letGo(hangs ? 'hung' : 'unwanted');
  }

  /** Ends the process, in whose place another one follows. Its listener is called no more. */
  replace(): void {
    this.#options.log.debug({ child: this.#options.name }, 'ending the server, which is replaced');
    this.#leave();
    this.#letGo('replaced');
  }

  // ---- from the child

  output(chunk: Buffer): void {
    if (this.#isOpen) this.#lines.push(chunk);
  }

  closed(stream: 'stdin' | 'stdout'): void {
    if (!this.#isOpen) return;
    const { name, failureLevel, log } = this.#options;
    const message = `Server "${name}" closed its ${stream} but went on running; it was ended.`;
    const error = new BridgeError('ERR_UPSTREAM_EXITED', message);
    log[failureLevel]({ child: name, code: error.code }, message);
    this.#lost(error);
    this.#letGo('unwanted');
  }

  ended(exit: ChildExit): void {
    const { name, withheldEnv, failureLevel, policy, observer, log } = this.#options;
    const described = { child: name, exitCode: exit.code };
    if (this.#isOpen) this.#lines.end();
    const context = { name, withheldEnv, hasServed: this.#hasServed, noise: this.#lines.noise };
    const error = exitError(exit, { ...context, retryAfterMs: 0 });
    if (!exit.terminated) observer?.failed(error.message);
    if (!this.#isOpen) return log.info(described, `server ${describeExit(exit)}`);
    if (exit.terminated || (exit.code === 0 && this.#hasServed)) log.info(described, `server ${describeExit(exit)}`);
    else {
      // This is logged in full here, because no other code logs it.
      log[failureLevel]({ ...described, code: error.code }, error.message);
      policy.failed(error, this.#hasServed);
    }
    this.#tell(exitError(exit, { ...context, retryAfterMs: policy.delayMs() }));
  }

  failed(error: BridgeError): void {
    const { log, failureLevel, name } = this.#options;
    log[failureLevel]({ child: name, code: error.code }, error.message);
    this.#lost(error);
  }

  // ---- between

  #message(frame: Frame): void {
    if (!this.#isOpen) return;
    if (!this.#hasServed && frame.isResponse) {
      this.#hasServed = true;
      this.#cancelWarning?.();
      this.#tellSlowStart();
      this.#options.policy.served();
    }
    this.#listener.received(frame);
  }

  #unreadable(error: BridgeError): void {
    if (!this.#isOpen) return;
    this.failed(error);
    this.#letGo('unwanted');
  }

  #lost(error: BridgeError): void {
    if (this.#isOpen) this.#options.policy.failed(error, this.#hasServed);
    this.#tell(error);
  }

  #tell(error: BridgeError): void {
    this.#leave();
    this.#listener.ended(error);
  }

  /** Says that the wait for a server that took long to start is over. */
  #tellSlowStart(): void {
    const { log, name, clock } = this.#options;
    const tookMs = clock.now() - (this.#askedMs ?? Number.POSITIVE_INFINITY);
    if (tookMs >= STARTING_MS) log.info({ child: name }, `${name} answered after ${Math.round(tookMs / 1000)} s`);
  }

  #watchStart(): () => void {
    const { log, name } = this.#options;
    return this.#whenSilent(STARTING_MS, () => {
      const why = mayDownload(name) ? '; a package may be downloading' : '';
      log.info({ child: name }, `starting ${name}, no answer yet${why}`);
      this.#cancelWarning = this.#watchSilence();
    });
  }

  #watchSilence(): () => void {
    const { log, name } = this.#options;
    // The server has already been silent for STARTING_MS.
    return this.#whenSilent(
      SILENT_MS,
      () => {
        const message = `no answer and nothing else for ${SILENT_MS / 1000} s: it is slow to start, or does not speak MCP on stdin and stdout. ${MAY_BE_FRAMED} A server that listens on a port is reached by its URL`;
        log.warn({ child: name }, message);
      },
      SILENT_MS - STARTING_MS,
    );
  }

  /**
   * Calls `run` once the process has printed nothing for `silentMs`. A process that reports progress, such as a
   * download, is not silent. The first check happens after `delayMs`.
   */
  #whenSilent(silentMs: number, run: () => void, delayMs = silentMs): () => void {
    const { clock } = this.#options;
    return clock.after(delayMs, () => {
      const leftMs = this.process.lastHeardMs + silentMs - clock.now();
      if (leftMs > 0) this.#cancelWarning = this.#whenSilent(silentMs, run, leftMs);
      else run();
    });
  }

  #leave(): void {
    this.#isOpen = false;
    this.#cancelWarning?.();
  }

  /**
   * Ends the process. Pending messages are still written. Its output is still read, because a server that blocks on a
   * full pipe could not exit by itself.
   */
  #letGo(why: EndReason): void {
    this.#writer.flush();
    this.process.resumeOutput();
    void this.process.terminate(why);
  }
}
