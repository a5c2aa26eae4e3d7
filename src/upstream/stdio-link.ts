import type { Logger } from 'pino';
import type { Clock } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import { LineWriter } from '../io/line-writer.ts';
import { type Child, type ChildExit, type ChildListener, describeExit } from '../process/child.ts';
import type { RestartPolicy } from '../process/supervisor.ts';
import type { ServerFault, ServerListener, UpstreamLink } from '../relay/ports.ts';
import type { Frame } from '../wire/frame.ts';
import { exitError } from './exit-error.ts';
import { StdioMessages } from './stdio-messages.ts';

/** A process that exits closes its streams a moment before; only after this long it counts as living without them. */
const LINGER_MS = 250;

export interface StdioLinkOptions {
  readonly name: string;
  readonly maxMessageBytes: number;
  readonly withheldEnv: readonly string[];
  readonly listener: ServerListener;
  readonly policy: RestartPolicy;
  readonly clock: Clock;
  readonly log: Logger;
  readonly start: (listener: ChildListener) => Child;
}

/**
 * - `open`: messages flow.
 * - `half-closed`: one of the child's streams is gone; its exit is expected any moment, and waited for until the timer.
 * - `closed`: the relay has let go or has been told of the end. Nothing more is said to it.
 */
type LinkState =
  | { readonly kind: 'open' }
  | { readonly kind: 'half-closed'; readonly cancel: () => void }
  | { readonly kind: 'closed' };

/**
 * One server process and the conversation with it. After `close` the relay hears nothing more, not even the end.
 */
export class StdioLink implements UpstreamLink, ChildListener {
  readonly #options: StdioLinkOptions;
  readonly #messages: StdioMessages;
  readonly #child: Child;
  readonly #writer: LineWriter;
  #state: LinkState = { kind: 'open' };
  #hasServed = false;

  /** Throws what `start` throws. */
  constructor(options: StdioLinkOptions) {
    const { name, maxMessageBytes, log } = options;
    this.#options = options;
    const sink = {
      message: (frame: Frame) => this.#message(frame),
      fault: (fault: ServerFault) => this.#fault(fault),
    };
    this.#messages = new StdioMessages({ name, maxMessageBytes, sink, log: log.child({ child: name }) });
    this.#child = options.start(this);
    this.#writer = new LineWriter(this.#child.stdin, () => this.#drained());
  }

  get child(): Child {
    return this.#child;
  }

  // ---- from the relay

  send(frame: Frame): boolean {
    return this.#state.kind === 'closed' || this.#writer.send(frame.bytes);
  }

  /** Messages that are already here, at most one chunk's worth, are still delivered. */
  pause(): void {
    this.#child.pauseOutput();
  }

  resume(): void {
    this.#child.resumeOutput();
  }

  close(reason: BridgeError): void {
    if (!this.#leave()) return;
    this.#options.log.debug({ child: this.#options.name, code: reason.code }, 'link closed, ending the server');
    this.#letGo();
  }

  // ---- from the child

  output(chunk: Buffer): void {
    if (this.#state.kind !== 'closed') this.#messages.push(chunk);
  }

  closed(stream: 'stdin' | 'stdout'): void {
    if (this.#state.kind !== 'open') return;
    const cancel = this.#options.clock.after(LINGER_MS, () => {
      const message = `Server "${this.#options.name}" closed its ${stream} but went on running; it was ended.`;
      const error = new BridgeError('ERR_UPSTREAM_EXITED', message);
      this.#options.log.warn({ child: this.#options.name, code: error.code }, message);
      this.#lost(error);
      this.#letGo();
    });
    this.#state = { kind: 'half-closed', cancel };
  }

  ended(exit: ChildExit): void {
    const { name, withheldEnv, policy, log } = this.#options;
    const isClean = exit.terminated || (exit.code === 0 && this.#hasServed);
    const described = { child: name, exitCode: exit.code };
    if (isClean || this.#state.kind === 'closed') log.info(described, `server ${describeExit(exit)}`);
    else log.warn({ ...described, code: 'ERR_UPSTREAM_EXITED' }, `server ${describeExit(exit)}`);
    if (this.#state.kind === 'closed') return;
    this.#messages.end();
    const context = { name, withheldEnv, hasServed: this.#hasServed };
    if (!isClean) policy.failed(exitError(exit, { ...context, retryAfterMs: 0 }), this.#hasServed);
    this.#tell(exitError(exit, { ...context, retryAfterMs: policy.delayMs() }));
  }

  failed(error: BridgeError): void {
    this.#lost(error);
  }

  // ---- between

  #message(frame: Frame): void {
    if (this.#state.kind === 'closed') return;
    if (!this.#hasServed && frame.isResponse) {
      this.#hasServed = true;
      this.#options.policy.served();
    }
    this.#options.listener.fromServer(frame);
  }

  #fault(fault: ServerFault): void {
    if (this.#state.kind !== 'closed') this.#options.listener.serverFault(fault);
  }

  #drained(): void {
    if (this.#state.kind !== 'closed') this.#options.listener.serverDrained();
  }

  #lost(error: BridgeError): void {
    if (this.#state.kind !== 'closed') this.#options.policy.failed(error, this.#hasServed);
    this.#tell(error);
  }

  #tell(error: BridgeError): void {
    if (this.#leave()) this.#options.listener.serverClosed(error);
  }

  /** False when it had been left before. */
  #leave(): boolean {
    if (this.#state.kind === 'closed') return false;
    if (this.#state.kind === 'half-closed') this.#state.cancel();
    this.#state = { kind: 'closed' };
    return true;
  }

  /** What was sent last still goes out; output is read on, or a server that has much to say could not end by itself. */
  #letGo(): void {
    this.#writer.flush();
    this.#child.resumeOutput();
    void this.#child.terminate();
  }
}
