import { BodyInput, BodyOutput } from './body-flow.ts';
import type { LinkConnection } from './connection.ts';
import { type FrameType, type LinkFrame, windowOf } from './frames.ts';

/** A violation of the link's protocol by the other end, or undefined if there is none. */
export type Fault = string | undefined;

export interface StreamEndOptions {
  readonly connection: LinkConnection;
  /** Type of the frames with the head that comes from the other end. */
  readonly headType: FrameType;
  /** Largest head that comes from the other end. */
  readonly maxHeadBytes: number;
}

const NOTHING = Buffer.alloc(0);

/**
 * An end of a stream. Each end sends a head and then a body, and this class checks the order and size of what the other
 * end has sent.
 */
export abstract class StreamEnd {
  readonly id: number;
  protected readonly connection: LinkConnection;
  protected readonly input: BodyInput;
  protected readonly output: BodyOutput;
  readonly #headType: FrameType;
  readonly #maxHeadBytes: number;
  /** Received part of the head, or undefined once the head is complete. */
  #head: Buffer | undefined = NOTHING;
  #isOver = false;

  constructor(id: number, { connection, headType, maxHeadBytes }: StreamEndOptions) {
    this.id = id;
    this.connection = connection;
    this.#headType = headType;
    this.#maxHeadBytes = maxHeadBytes;
    this.input = new BodyInput(connection, id);
    this.output = new BodyOutput(connection, id, () => this.drained());
  }

  take(frame: LinkFrame): Fault {
    switch (frame.type) {
      case this.#headType:
        return this.#takeHead(frame);
      case 'data':
        return this.#takeData(frame);
      case 'window':
        return this.output.widen(windowOf(frame)) ? undefined : 'more was read than was sent';
      case 'reset':
        this.wasReset();
        return undefined;
      default:
        return 'it carried a frame that only the other end may send';
    }
  }

  #takeHead({ payload, mark }: LinkFrame): Fault {
    if (this.#head === undefined) return 'it carried two heads in one stream';
    const bytes = this.#head.length === 0 ? payload : Buffer.concat([this.#head, payload]);
    if (bytes.length > this.#maxHeadBytes) return this.headTooLarge();
    this.#head = mark === 'more' ? bytes : undefined;
    return mark === 'more' ? undefined : this.headCame(bytes);
  }

  #takeData({ payload, mark }: LinkFrame): Fault {
    if (this.#head !== undefined) return 'it carried a body in front of its head';
    if (!this.input.came(payload.length)) return 'more of a body came than the window allows';
    const isLast = mark === 'last';
    if (isLast) this.input.end();
    this.dataCame(payload, isLast);
    return undefined;
  }

  /** Called with the complete head. */
  protected abstract headCame(bytes: Buffer): Fault;
  /** Called in place of `headCame` if the head exceeds its limit. */
  protected abstract headTooLarge(): Fault;
  /** Called with a part of the body. Whatever keeps it detaches it from the received chunk. */
  protected abstract dataCame(payload: Buffer, isLast: boolean): void;
  /** Called when the other end does not need the stream anymore, or cannot continue it. */
  protected abstract wasReset(): void;
  /** Called when more can be sent, after the output has been full. */
  protected abstract drained(): void;
  /** Called once, when nothing more is sent or received. */
  protected abstract forget(): void;

  protected get isOver(): boolean {
    return this.#isOver;
  }

  /** Ends the stream in both directions. */
  protected end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.input.end();
    this.output.stop();
    this.forget();
  }

  /** Tells the other end that nothing more comes on this stream, and ends it. */
  protected reset(): void {
    if (this.#isOver) return;
    this.connection.send('reset', this.id, NOTHING);
    this.end();
  }
}
