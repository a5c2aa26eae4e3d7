import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Clock } from '../../deps.ts';
import { assertNever } from '../../errors.ts';
import { decodeLine, encodeLine, MAX_ENVELOPE_BYTES } from '../../grpc/json-rpc-line.ts';
import { MessageSplitter, type SplitFault } from '../../grpc/message-splitter.ts';
import { MessageWriter } from '../../grpc/message-writer.ts';
import { CONTENT_TYPE, ENCODING } from '../../grpc/session-service.ts';
import { type GrpcStatus, STATUS, statusOf, statusTrailers } from '../../grpc/status.ts';
import { ReadingWatch } from '../../http/reading-watch.ts';
import { type ArrivingMessage, TOO_MANY_ARRIVE } from '../../http/server/read-body.ts';
import type { Call } from '../../relay/call.ts';
import type { ConnectionListener, MessageConnection } from '../duplex/message-connection.ts';

/** Time for the client to read the last messages and the status. */
export const LAST_WORDS_MS = 1000;

export interface ClientGrpcStreamOptions {
  /** A stream that nothing was answered on. */
  readonly stream: ServerHttp2Stream;
  readonly maxMessageBytes: number;
  /** This connection's share of the memory for incoming messages of all clients. */
  readonly arriving: ArrivingMessage;
  /** Called when the client has sent what cannot be read, with the status that it is told. */
  readonly onFault: (status: GrpcStatus) => void;
  readonly clock: Clock;
}

/**
 * - `open`: messages are exchanged.
 * - `ending`: the status follows when all messages have left.
 * - `over`: nothing can be sent anymore.
 */
type State =
  | { readonly kind: 'open' }
  | { readonly kind: 'ending'; readonly cancelTimer: () => void }
  | { readonly kind: 'over' };

/** A stream of gRPC as the connection of one client. */
export class ClientGrpcStream implements MessageConnection {
  readonly unit = 'message';
  readonly #options: ClientGrpcStreamOptions;
  readonly #stream: ServerHttp2Stream;
  readonly #listener: ConnectionListener;
  readonly #splitter: MessageSplitter;
  readonly #writer: MessageWriter;
  readonly #reading: ReadingWatch;
  #state: State = { kind: 'open' };

  constructor(options: ClientGrpcStreamOptions, listener: ConnectionListener) {
    const { stream, maxMessageBytes, arriving, clock } = options;
    this.#options = options;
    this.#stream = stream;
    this.#listener = listener;
    this.#splitter = new MessageSplitter({
      maxMessageBytes: maxMessageBytes + MAX_ENVELOPE_BYTES,
      message: (bytes) => this.#message(bytes),
      fault: (fault) => this.#refuse(this.#statusOf(fault)),
    });
    this.#writer = new MessageWriter(stream, () => listener.drained());
    this.#reading = new ReadingWatch(clock.now());
    stream.respond(
      {
        [constants.HTTP2_HEADER_STATUS]: '200',
        [constants.HTTP2_HEADER_CONTENT_TYPE]: CONTENT_TYPE,
        'grpc-accept-encoding': ENCODING,
      },
      { waitForTrailers: true },
    );
    stream.on('data', (chunk: Buffer) => {
      if (this.#state.kind === 'open') listener.read(chunk);
    });
    // A stream that is reset, or whose connection is lost, ends as well, but the client has ended nothing.
    stream.on('end', () => {
      if (!stream.aborted) listener.inputEnded();
    });
    stream.on('error', () => listener.readerGone());
    stream.on('close', () => {
      void arriving.holds(0);
      this.#isOver();
      listener.readerGone();
    });
  }

  // ---- from the client

  take(piece: Buffer, maxMessages: number): Buffer | undefined {
    const taken = this.#splitter.push(piece, maxMessages);
    if (this.#options.arriving.holds(this.#splitter.pendingBytes)) {
      return taken < piece.length ? piece.subarray(taken) : undefined;
    }
    this.#splitter.forget();
    void this.#options.arriving.holds(0);
    this.end(statusOf(TOO_MANY_ARRIVE));
    this.#listener.crowded();
    return undefined;
  }

  /** A message that the client has not completed is no message. */
  takeRest(): void {
    if (this.#splitter.isWithinMessage) this.#refuse(INCOMPLETE);
  }

  /** An empty line says nothing. */
  #message(bytes: Buffer): void {
    if (this.#state.kind !== 'open') return;
    const line = decodeLine(bytes);
    if (line === undefined) return this.#refuse(NO_LINE);
    if (line.length > this.#options.maxMessageBytes) return this.#refuse(this.#statusOf('too-large'));
    if (line.length > 0) this.#listener.message(line);
  }

  #statusOf(fault: SplitFault): GrpcStatus {
    switch (fault) {
      case 'too-large': {
        const { maxMessageBytes } = this.#options;
        const message = `A message is larger than the ${maxMessageBytes} bytes allowed; send less or raise --max-message-bytes.`;
        return { code: STATUS.resourceExhausted, message };
      }
      case 'compressed':
        return COMPRESSED;
      case 'invalid':
        return INVALID;
      default:
        return assertNever(fault);
    }
  }

  #refuse(status: GrpcStatus): void {
    this.#splitter.forget();
    this.#options.onFault(status);
    this.end(status);
    this.#listener.readerGone();
  }

  // ---- from the endpoint

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  send(message: Buffer, about?: Call): boolean {
    if (this.#state.kind !== 'open') return true;
    return this.#writer.send(encodeLine(message, about === undefined ? undefined : String(about.id)));
  }

  get waitingBytes(): number {
    return this.#writer.waitingBytes;
  }

  flush(): Promise<void> {
    return this.#writer.flush();
  }

  /** Returns true if messages wait and the client has read nothing for too long. Called every few seconds. */
  hasStoppedReading(nowMs: number): boolean {
    const { leftBytes, waitingBytes } = this.#writer;
    return this.#reading.hasStopped(
      { bytes: leftBytes + waitingBytes, queuedBytes: waitingBytes, socket: null },
      nowMs,
    );
  }

  /** The client reads nothing, so its stream is reset; gRPC takes this code for RESOURCE_EXHAUSTED. */
  cut(): void {
    this.#isOver();
    this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    this.#listener.readerGone();
  }

  /**
   * Ends the call with this status, after the messages that were sent. A client that does not read them in time gets
   * none, and one that does not end its own half then is told that nobody reads it. Were it told at once, Node would
   * drop the status.
   */
  end(status: GrpcStatus): void {
    if (this.#state.kind !== 'open') return;
    const stream = this.#stream;
    const cancelTimer = this.#options.clock.after(LAST_WORDS_MS, () => this.#letGo());
    this.#state = { kind: 'ending', cancelTimer };
    stream.once('wantTrailers', () => stream.sendTrailers(statusTrailers(status)));
    // Further input is discarded, but has to be read for its end to be noticed.
    stream.resume();
    void this.#writer.flush().then(() => stream.end());
  }

  /** Node would wait for what the client does not read before it resets a stream without an error. */
  #letGo(): void {
    const stream = this.#stream;
    stream.close(stream.writableFinished ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_CANCEL);
  }

  #isOver(): void {
    if (this.#state.kind === 'ending') this.#state.cancelTimer();
    this.#state = { kind: 'over' };
  }
}

const INCOMPLETE: GrpcStatus = { code: STATUS.invalidArgument, message: 'The stream ended within a message.' };
const NO_LINE: GrpcStatus = { code: STATUS.invalidArgument, message: 'A message is not a JsonRpcLine.' };
const INVALID: GrpcStatus = {
  code: STATUS.internal,
  message: 'Something was received that is not a length-prefixed message of gRPC.',
};
const COMPRESSED: GrpcStatus = {
  code: STATUS.unimplemented,
  message: 'Compressed messages are not read here; send them uncompressed (grpc-encoding: identity).',
};
