import type { Readable, Writable } from 'node:stream';
import type { Deps } from '../deps.ts';
import { BridgeError, toBridgeError } from '../errors.ts';
import { LineWriter } from '../io/line-writer.ts';
import { INITIALIZE } from '../mcp/methods.ts';
import { OLDEST_REVISION, type Revision } from '../mcp/revisions.ts';
import { rpcErrorOf } from '../mcp/rpc-errors.ts';
import type { Exchange } from '../relay/exchange.ts';
import type { ClientListener, DownstreamPeer, Lane } from '../relay/ports.ts';
import type { Session, SessionRegistry } from '../relay/session-registry.ts';
import { Frame, type JsonRpcId } from '../wire/frame.ts';
import { type LineSink, LineSplitter, type OversizedLine } from '../wire/ndjson.ts';
import { readMessage } from '../wire/read-message.ts';
import { type EnvelopeFault, recoverEnvelope } from '../wire/scan-envelope.ts';
import { errorFrame } from '../wire/write-message.ts';
import { BatchLane } from './batch-lane.ts';

const READ_LIMITS = { maxDepth: 1000, maxBatch: 100 };

export interface StdioFaceOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly sessions: SessionRegistry;
  readonly maxMessageBytes: number;
  readonly deps: Deps;
}

/** Why the client is gone: it ended its input or stopped taking output, or the server it talked to ended. */
export type StdioEnd = { readonly kind: 'client' } | { readonly kind: 'server'; readonly reason: BridgeError };

/**
 * One client on a pair of pipes, with one session at a time: `initialize` opens it. A server that cannot be reached
 * is an answer to that request; the client may try again on the same pipes.
 */
export class StdioFace implements LineSink {
  readonly #options: StdioFaceOptions;
  readonly #writer: LineWriter;
  readonly #splitter: LineSplitter;
  #session: Session<StdioPeer> | undefined;
  #resolveEnded: (end: StdioEnd) => void = () => {};
  /** Resolves once, when nothing more can be done for this client. */
  readonly ended = new Promise<StdioEnd>((resolve) => {
    this.#resolveEnded = resolve;
  });

  constructor(options: StdioFaceOptions) {
    this.#options = options;
    const { input, output } = options;
    this.#writer = new LineWriter(output, () => this.#session?.peer.drained());
    this.#splitter = new LineSplitter(this, options.maxMessageBytes);
    input.on('data', (chunk: Buffer) => this.#splitter.push(chunk));
    input.on('end', () => this.#inputEnded());
    input.on('error', () => this.#inputEnded());
    // EPIPE: whoever read our output is gone, so nothing can be answered any more.
    output.on('error', () => this.#clientGone());
    output.on('close', () => this.#clientGone());
  }

  // ---- lines of the client

  line(bytes: Buffer): void {
    const result = readMessage(bytes, READ_LIMITS);
    if (result.kind === 'fault') return this.#refuse(result.reason, result.id, result.fault === 'parse');
    if (result.kind === 'batch') return this.#batch(result.items);
    const session = this.#sessionFor(result.frame);
    session?.relay.fromClient(result.frame, session.peer);
  }

  oversized({ head, tail, byteLength }: OversizedLine): void {
    const { id, kind } = recoverEnvelope(head, tail);
    const message = `A message of ${byteLength} bytes is larger than the ${this.#options.maxMessageBytes} allowed; send less or raise --max-message-bytes.`;
    const error = new BridgeError('ERR_WIRE_FRAME_TOO_LARGE', message);
    this.#options.deps.log.error({ code: error.code }, error.message);
    if (id !== undefined && kind === 'request') this.#write(errorFrame(id, rpcErrorOf(error)));
  }

  /** Without an id there is nobody to answer: the client would not know what the error is about. */
  #refuse(reason: string, id: JsonRpcId | undefined, isParse: boolean): void {
    const error = new BridgeError(isParse ? 'ERR_WIRE_PARSE' : 'ERR_WIRE_MESSAGE', `A line was refused: ${reason}.`);
    this.#options.deps.log.warn({ code: error.code }, error.message);
    if (id !== undefined) this.#write(errorFrame(id, rpcErrorOf(error)));
  }

  /** [spec 2025-03-26 basic#batching] The only revision that has arrays. */
  #batch(items: readonly (Frame | EnvelopeFault)[]): void {
    const session = this.#session;
    const isInitialize = items.some((item) => item instanceof Frame && item.method === INITIALIZE);
    if (session === undefined || !session.peer.revision.batching || isInitialize) {
      const reason = 'an array of messages is not part of this revision, or holds initialize; send each by itself';
      return this.#refuse(reason, undefined, false);
    }
    const expected = items.filter((item) => !(item instanceof Frame) || item.kind === 'request').length;
    const lane = new BatchLane(expected, (line) => this.#writer.send(line));
    for (const item of items) {
      if (item instanceof Frame) session.relay.fromClient(item, lane);
      else lane.send(errorFrame(item.id, rpcErrorOf(new BridgeError('ERR_WIRE_MESSAGE', item.fault))));
    }
  }

  // ---- the session

  #sessionFor(frame: Frame): Session<StdioPeer> | undefined {
    if (this.#session !== undefined || frame.kind !== 'request') return this.#session;
    try {
      this.#session = this.#open();
    } catch (thrown) {
      const error = toBridgeError(thrown);
      this.#options.deps.log.error({ code: error.code, err: error.cause }, error.message);
      this.#write(errorFrame(frame.id, rpcErrorOf(error)));
    }
    return this.#session;
  }

  #open(): Session<StdioPeer> {
    const { sessions, input } = this.#options;
    const onClose = (peer: StdioPeer, reason: BridgeError): void => this.#sessionEnded(peer, reason);
    return sessions.open((_id, listener) => new StdioPeer({ writer: this.#writer, input, listener, onClose }));
  }

  /** Before the handshake nothing is lost with a session; after it the client could not know that its server is new. */
  #sessionEnded(peer: StdioPeer, reason: BridgeError): void {
    if (this.#session?.peer !== peer) return;
    this.#session = undefined;
    if (peer.isReady) this.#resolveEnded({ kind: 'server', reason });
  }

  #inputEnded(): void {
    this.#splitter.end();
    this.#resolveEnded({ kind: 'client' });
  }

  #clientGone(): void {
    this.#resolveEnded({ kind: 'client' });
  }

  #write(frame: Frame): void {
    this.#writer.send(frame.bytes);
  }

  /** Resolves when what was written has left for the client, or cannot. */
  flush(): Promise<void> {
    this.#writer.flush();
    const { output } = this.#options;
    if (output.destroyed || output.writableLength === 0) return Promise.resolve();
    return new Promise((resolve) => {
      output.once('close', resolve);
      output.once('error', () => resolve());
      output.write('', () => resolve());
    });
  }
}

interface StdioPeerOptions {
  readonly writer: LineWriter;
  readonly input: Readable;
  readonly listener: ClientListener;
  readonly onClose: (peer: StdioPeer, reason: BridgeError) => void;
}

/** The client on the pipes, which are also the lane of each of its calls. */
class StdioPeer implements DownstreamPeer, Lane {
  readonly isOpen = true;
  readonly isConnected = true;
  readonly #options: StdioPeerOptions;
  #revision: Revision | undefined;
  #isFull = false;

  constructor(options: StdioPeerOptions) {
    this.#options = options;
  }

  get revision(): Revision {
    return this.#revision ?? OLDEST_REVISION;
  }

  /** The handshake has succeeded. */
  get isReady(): boolean {
    return this.#revision !== undefined;
  }

  negotiated(revision: Revision): void {
    this.#revision = revision;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    const lane = exchange?.lane;
    const hasRoom =
      lane instanceof BatchLane && frame.isResponse ? lane.send(frame) : this.#options.writer.send(frame.bytes);
    if (!hasRoom) this.#isFull = true;
    return hasRoom;
  }

  release(exchange: Exchange): void {
    if (exchange.lane instanceof BatchLane) exchange.lane.release();
  }

  drained(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#options.listener.clientDrained();
  }

  pause(): void {
    this.#options.input.pause();
  }

  resume(): void {
    this.#options.input.resume();
  }

  close(reason: BridgeError): void {
    this.#options.input.resume();
    this.#options.onClose(this, reason);
  }
}
