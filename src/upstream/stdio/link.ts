import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError, MAY_BE_FRAMED } from '../../errors.ts';
import { LineWriter } from '../../io/line-writer.ts';
import { type Child, type ChildExit, type ChildListener, describeExit, type EndReason } from '../../process/child.ts';
import { mayDownload } from '../../process/command-name.ts';
import type { RestartPolicy } from '../../process/supervisor.ts';
import type { ServerFault, ServerListener, UpstreamLink } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { type IdWarnings, LinkRequests } from '../answer-ids.ts';
import { AnswerLimit, ServerLines } from '../server-messages.ts';
import { exitError } from './exit-error.ts';

/** Who waits for the first answer of a server wants to know soon that something happens: most are there by then. */
const STARTING_MS = 2000;
/** After so long without a word something may be wrong. */
const SILENT_MS = 10_000;

export interface StdioLinkOptions {
  readonly name: string;
  readonly maxMessageBytes: number;
  readonly withheldEnv: readonly string[];
  /** How loud the log is about a process that fails: `debug` where whoever dials says it. */
  readonly failureLevel: 'warn' | 'debug';
  readonly listener: ServerListener;
  readonly idWarnings: IdWarnings;
  readonly policy: RestartPolicy;
  readonly clock: Clock;
  readonly log: Logger;
  readonly start: (listener: ChildListener) => Child;
}

/**
 * - `open`: messages flow.
 * - `closed`: the relay has let go or has been told of the end. Nothing more is said to it.
 */
type LinkState = 'open' | 'closed';

/**
 * One server process and the conversation with it. After `close` the relay hears nothing more, not even the end.
 */
export class StdioLink implements UpstreamLink, ChildListener {
  readonly #options: StdioLinkOptions;
  readonly #messages: ServerLines;
  readonly #child: Child;
  readonly #writer: LineWriter;
  readonly #answers: AnswerLimit;
  readonly #requests: LinkRequests;
  #state: LinkState = 'open';
  #isAsked = false;
  #hasServed = false;
  #cancelWarning: (() => void) | undefined = undefined;

  /** Throws what `start` throws. */
  constructor(options: StdioLinkOptions) {
    const { name, maxMessageBytes, log } = options;
    this.#options = options;
    const sink = {
      message: (frame: Frame) => this.#message(frame),
      fault: (fault: ServerFault) => this.#fault(fault),
      unreadable: (error: BridgeError) => this.#unreadable(error),
    };
    const named = log.child({ child: name });
    const noiseWarning = 'prints to stdout something that is not MCP';
    this.#messages = new ServerLines({ name, maxMessageBytes, noiseWarning, sink, log: named });
    this.#answers = new AnswerLimit(named);
    const send = (frame: Frame): void => void this.send(frame);
    this.#requests = new LinkRequests({ warnings: options.idWarnings, log: named, send });
    this.#child = options.start(this);
    this.#writer = new LineWriter(this.#child.stdin, () => this.#drained());
  }

  get child(): Child {
    return this.#child;
  }

  get process(): Child {
    return this.#child;
  }

  // ---- from the relay

  send(frame: Frame): boolean {
    if (this.#state === 'closed') return true;
    if (!this.#hasServed && frame.kind === 'request') {
      this.#isAsked = true;
      this.#cancelWarning ??= this.#watchStart();
    }
    this.#requests.sent(frame);
    return !this.#answers.excludes(frame, this.#writer.isFull) && this.#writer.send(frame.bytes);
  }

  /** Messages that are already here, at most one chunk's worth, are still delivered. */
  pause(): void {
    this.#child.pauseOutput();
  }

  resume(): void {
    this.#child.resumeOutput();
  }

  close(reason: BridgeError): void {
    // Whoever gives it up because it answers nothing gives one of our own reasons; a client that leaves is none.
    if (this.#isAsked && !this.#hasServed && this.#state === 'open' && reason.code.startsWith('ERR_UPSTREAM_')) {
      this.#options.policy.unanswered(reason);
    }
    if (!this.#leave()) return;
    this.#options.log.debug({ child: this.#options.name, code: reason.code }, 'link closed, ending the server');
    this.#letGo(reason.code === 'ERR_UPSTREAM_HUNG' ? 'hung' : 'unwanted');
  }

  // ---- from the child

  output(chunk: Buffer): void {
    if (this.#state !== 'closed') this.#messages.push(chunk);
  }

  closed(stream: 'stdin' | 'stdout'): void {
    if (this.#state === 'closed') return;
    const { name, failureLevel, log } = this.#options;
    const message = `Server "${name}" closed its ${stream} but went on running; it was ended.`;
    const error = new BridgeError('ERR_UPSTREAM_EXITED', message);
    log[failureLevel]({ child: name, code: error.code }, message);
    this.#lost(error);
    this.#letGo('unwanted');
  }

  ended(exit: ChildExit): void {
    const { name, withheldEnv, failureLevel, policy, log } = this.#options;
    const described = { child: name, exitCode: exit.code };
    if (this.#state === 'closed') return log.info(described, `server ${describeExit(exit)}`);
    this.#messages.end();
    const context = { name, withheldEnv, hasServed: this.#hasServed, noise: this.#messages.noise };
    const error = exitError(exit, { ...context, retryAfterMs: 0 });
    if (exit.terminated || (exit.code === 0 && this.#hasServed)) log.info(described, `server ${describeExit(exit)}`);
    else {
      // All that is known of it: nobody else says it again.
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
    if (this.#state === 'closed') return;
    if (!this.#hasServed && frame.isResponse) {
      this.#hasServed = true;
      this.#cancelWarning?.();
      this.#options.policy.served();
    }
    const passed = this.#requests.received(frame, undefined);
    if (passed !== undefined) this.#options.listener.fromServer(passed);
  }

  #fault(fault: ServerFault): void {
    if (this.#state !== 'closed') this.#options.listener.serverFault(this.#requests.failed(fault));
  }

  #unreadable(error: BridgeError): void {
    if (this.#state === 'closed') return;
    this.failed(error);
    this.#letGo('unwanted');
  }

  #drained(): void {
    if (this.#state !== 'closed') this.#options.listener.serverDrained();
  }

  #lost(error: BridgeError): void {
    if (this.#state !== 'closed') this.#options.policy.failed(error, this.#hasServed);
    this.#tell(error);
  }

  #tell(error: BridgeError): void {
    if (this.#leave()) this.#options.listener.serverClosed(error);
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
    // It has been silent for the time until the first word already.
    return this.#whenSilent(
      SILENT_MS,
      () => {
        const message = `no answer and nothing else for ${SILENT_MS / 1000} s: it is slow to start, or does not speak MCP on stdin and stdout. ${MAY_BE_FRAMED} A server that listens on a port is reached by its URL`;
        log.warn({ child: name }, message);
      },
      SILENT_MS - STARTING_MS,
    );
  }

  /** One that prints what it is doing, such as to download, is not silent. Looked for after `delayMs` at the earliest. */
  #whenSilent(silentMs: number, run: () => void, delayMs = silentMs): () => void {
    const { clock } = this.#options;
    return clock.after(delayMs, () => {
      const leftMs = this.#child.lastHeardMs + silentMs - clock.now();
      if (leftMs > 0) this.#cancelWarning = this.#whenSilent(silentMs, run, leftMs);
      else run();
    });
  }

  /** False when it had been left before. */
  #leave(): boolean {
    if (this.#state === 'closed') return false;
    this.#cancelWarning?.();
    this.#state = 'closed';
    return true;
  }

  /** What was sent last still goes out; output is read on, or a server that has much to say could not end by itself. */
  #letGo(why: EndReason): void {
    this.#writer.flush();
    this.#child.resumeOutput();
    void this.#child.terminate(why);
  }
}
