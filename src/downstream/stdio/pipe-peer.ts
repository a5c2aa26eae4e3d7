import type { BridgeError } from '../../errors.ts';
import type { LineWriter } from '../../io/line-writer.ts';
import type { Revision } from '../../mcp/revisions.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { Lane } from '../../relay/lane.ts';
import type { ClientListener, DownstreamPeer } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import type { SharedInput } from './shared-input.ts';

export interface PipePeerOptions {
  readonly writer: LineWriter;
  readonly input: SharedInput;
  readonly listener: ClientListener;
  /** The relay has let go of this client. */
  readonly onClose: (reason: BridgeError) => void;
}

/** The client on the pipes, as one of its conversations sees it. The pipes are also the lane of each of its calls. */
export class PipePeer implements DownstreamPeer, Lane {
  readonly isOpen = true;
  readonly isConnected = true;
  readonly hasLeft = false;
  readonly #options: PipePeerOptions;
  #isFull = false;

  constructor(options: PipePeerOptions) {
    this.#options = options;
  }

  send(frame: Frame, _exchange?: Exchange): boolean {
    return this.write(frame.bytes);
  }

  /** False: full, the listener is told when there is capacity. */
  write(line: Buffer): boolean {
    const hasCapacity = this.#options.writer.send(line);
    if (!hasCapacity) this.#isFull = true;
    return hasCapacity;
  }

  drained(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#options.listener.clientDrained();
  }

  release(_exchange: Exchange): void {}
  negotiated(_revision: Revision): void {}

  pause(): void {
    this.#options.input.pauseFor(this);
  }

  resume(): void {
    this.#options.input.resumeFor(this);
  }

  close(reason: BridgeError): void {
    this.#options.input.resumeFor(this);
    this.#options.onClose(reason);
  }
}
