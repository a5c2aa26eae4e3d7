import type { Readable, Writable } from 'node:stream';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { LineWriter } from '../../io/line-writer.ts';
import { findCancelledId } from '../../mcp/classify/correlators.ts';
import { claimsModern } from '../../mcp/classify/request-metadata.ts';
import { routeEra } from '../../mcp/classify/route-era.ts';
import { CANCELLED, INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { SessionRegistry } from '../../relay/session-registry.ts';
import { Frame, type JsonRpcId } from '../../wire/frame.ts';
import { type LineSink, LineSplitter, type OversizedLine } from '../../wire/ndjson.ts';
import { type ReadLimits, type ReadResult, readMessage } from '../../wire/read-message.ts';
import { recoverEnvelope } from '../../wire/scan-envelope.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { type BatchItem, refusalOfBatch } from '../batch.ts';
import { CLIENT_LIMITS } from '../post/read-post.ts';
import { LegacyConversation } from './legacy-conversation.ts';
import { ModernConversation } from './modern-conversation.ts';
import { SharedInput } from './shared-input.ts';

export interface StdioEndpointOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly sessions: SessionRegistry;
  readonly maxMessageBytes: number;
  /** Levels of arrays and objects. */
  readonly maxJsonDepth: number;
  /** After the end of input, how long a server may take nothing of what waits for it; default 0: as long as it takes. */
  readonly untakenTimeoutMs?: number;
  readonly deps: Deps;
}

/**
 * - `input`: the client has ended its input, and all of it was taken. It may still wait for answers.
 * - `untaken`: it has ended its input, and the server takes nothing of so many bytes before that.
 * - `output`: nobody reads any more.
 * - `server`: the server of its session has ended.
 */
export type StdioEnd =
  | { readonly kind: 'input' | 'output' }
  | { readonly kind: 'untaken'; readonly bytes: number }
  | { readonly kind: 'server'; readonly reason: BridgeError };

/**
 * One client on a pair of pipes, in both eras at once: each message says itself which one it is of.
 * [spec 2026-07-28 basic/versioning]
 */
export class StdioEndpoint implements LineSink {
  readonly #options: StdioEndpointOptions;
  readonly #writer: LineWriter;
  readonly #splitter: LineSplitter;
  readonly #legacy: LegacyConversation;
  readonly #modern: ModernConversation;
  readonly #limits: ReadLimits;
  #resolveEnded: (end: StdioEnd) => void = () => {};
  #resolveClientGone: () => void = () => {};
  #resolveUnread: () => void = () => {};
  /** Resolves once, when nothing more comes of this client. */
  readonly ended = new Promise<StdioEnd>((resolve) => {
    this.#resolveEnded = resolve;
  });
  /** Resolves when the client has ended its input or reads no more, whatever has ended before. */
  readonly clientGone = new Promise<void>((resolve) => {
    this.#resolveClientGone = resolve;
  });
  /** Resolves when nobody reads any more, whatever has ended before. */
  readonly unread = new Promise<void>((resolve) => {
    this.#resolveUnread = resolve;
  });

  constructor(options: StdioEndpointOptions) {
    this.#options = options;
    this.#limits = { ...CLIENT_LIMITS, maxDepth: options.maxJsonDepth };
    const { input, output, sessions, deps, untakenTimeoutMs = 0 } = options;
    this.#writer = new LineWriter(output, () => this.#drained());
    const sharedInput = new SharedInput({
      input,
      clock: deps.clock,
      untakenTimeoutMs,
      take: (chunk) => this.#splitter.push(chunk),
      onEnd: (untakenBytes) => this.#inputEnded(untakenBytes),
    });
    const shared = { writer: this.#writer, input: sharedInput, sessions, deps };
    this.#legacy = new LegacyConversation({
      ...shared,
      isTaken: (id) => this.#modern.isOpen(id),
      onServerEnded: (reason) => this.#resolveEnded({ kind: 'server', reason }),
    });
    this.#modern = new ModernConversation({ ...shared, isTaken: (id) => this.#legacy.isOpen(id) });
    this.#splitter = new LineSplitter(this, options.maxMessageBytes);
    // Behind it may be what a server has yet to take, and the client has no part in that any more.
    for (const end of ['end', 'error']) input.on(end, () => this.#resolveClientGone());
    // EPIPE: whoever read our output is gone, so nothing can be answered any more.
    output.on('error', () => this.readerGone());
    output.on('close', () => this.readerGone());
  }

  // ---- lines of the client

  line(bytes: Buffer): void {
    const result = readMessage(bytes, this.#limits);
    if (result.kind === 'fault') return this.#refuse(faultError(result), result.id);
    if (result.kind === 'batch') return this.#batch(result.items);
    const { frame } = result;
    if (this.#isModern(frame)) this.#modern.take(frame);
    else this.#legacy.take(frame);
  }

  /** A client that has only been modern so far and forgets to say so is told what is missing, not served as legacy. */
  #isModern(frame: Frame): boolean {
    if (claimsModern(frame)) return true;
    if (!this.#modern.hasServed) return false;
    switch (frame.kind) {
      case 'request':
        return frame.method !== INITIALIZE && !this.#legacy.hasSession;
      case 'notification':
        if (frame.method === CANCELLED) return this.#isOfModernCall(frame);
        // [spec 2026-07-28 basic#meta] only requests must carry an envelope.
        return !this.#legacy.hasSession;
      default:
        // [spec 2026-07-28 transports/stdio#sending-messages] modern clients write no responses.
        return false;
    }
  }

  #isOfModernCall(cancelled: Frame): boolean {
    const id = findCancelledId(cancelled);
    return id !== undefined && this.#modern.isOpen(id.value);
  }

  #batch(items: readonly BatchItem[]): void {
    const route = routeEra(items, {});
    const error =
      route.kind === 'refused' ? refusedLine(route.refusal.message) : refusalOfBatch(items, this.#legacy.revision);
    if (error === undefined) return this.#legacy.takeBatch(items);
    const unanswered = items.filter((item) => !(item instanceof Frame) || item.kind === 'request');
    this.#options.deps.log.warn({ code: error.code }, error.message);
    for (const { id } of unanswered) if (id !== undefined) this.#write(errorFrame(id, rpcErrorOf(error)));
  }

  oversized({ head, tail, byteLength }: OversizedLine): void {
    const { id, kind } = recoverEnvelope(head, tail);
    const message = `A message of ${byteLength} bytes is larger than the ${this.#options.maxMessageBytes} allowed; send less or raise --max-message-bytes.`;
    const error = new BridgeError('ERR_WIRE_FRAME_TOO_LARGE', message);
    this.#options.deps.log.error({ code: error.code }, error.message);
    if (id !== undefined && kind === 'request') this.#write(errorFrame(id, rpcErrorOf(error)));
  }

  /** Without an id there is nobody to answer: the client would not know what the error is about. */
  #refuse(error: BridgeError, id: JsonRpcId | undefined): void {
    this.#options.deps.log.warn({ code: error.code }, error.message);
    if (id !== undefined) this.#write(errorFrame(id, rpcErrorOf(error)));
  }

  // ---- the pipes

  #drained(): void {
    this.#legacy.drained();
    this.#modern.drained();
  }

  #inputEnded(untakenBytes: number): void {
    if (untakenBytes > 0) return this.#resolveEnded({ kind: 'untaken', bytes: untakenBytes });
    this.#splitter.end();
    this.#legacy.inputEnded();
    this.#resolveEnded({ kind: 'input' });
  }

  /** Nobody reads what is written: seen at the pipe, or known otherwise. May be called twice. */
  readerGone(): void {
    this.#resolveEnded({ kind: 'output' });
    this.#resolveClientGone();
    this.#resolveUnread();
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

function faultError({ fault, reason }: Extract<ReadResult, { kind: 'fault' }>): BridgeError {
  return fault === 'parse' ? new BridgeError('ERR_WIRE_PARSE', `A line was refused: ${reason}.`) : refusedLine(reason);
}

function refusedLine(reason: string): BridgeError {
  return new BridgeError('ERR_WIRE_MESSAGE', `A line was refused: ${reason}.`);
}
