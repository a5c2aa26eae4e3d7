/** The two conversations on a long-lived connection: one for each era, each with a relay of its own. */
import { BridgeError, toBridgeError } from '../../errors.ts';
import { MetadataReader } from '../../mcp/classify/request-metadata.ts';
import { validateModern } from '../../mcp/classify/route-era.ts';
import { CANCELED, isModernRequest, LISTEN } from '../../mcp/vocabulary/methods.ts';
import { MODERN_REVISION_IDS, OLDEST_REVISION, type Revision } from '../../mcp/vocabulary/revisions.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call } from '../../relay/call.ts';
import type { Session } from '../../relay/sessions/session-entry.ts';
import { Frame, type JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, notificationFrame } from '../../wire/write-message.ts';
import { BatchBudget, type BatchItem, BatchLane, countAnswers, faultAnswer, MAX_COLLECTED_BYTES } from '../batch.ts';
import { ConnectionPeer, type ConversationOptions, logRefusal, takenId } from './connection-peer.ts';

export interface LegacyConversationOptions extends ConversationOptions {
  /**
   * Called when the server has ended after the handshake: the client could not tell that another server is a new one.
   */
  readonly onServerEnded: (reason: BridgeError) => void;
}

/**
 * The legacy session of the connection, one at a time. If the server cannot be reached, the request that was to open
 * the session gets an error, and the client may try again.
 */
export class LegacyConversation {
  readonly #options: LegacyConversationOptions;
  readonly #budget = new BatchBudget();
  #session: Session<LegacyPeer> | undefined;

  constructor(options: LegacyConversationOptions) {
    this.#options = options;
  }

  get hasSession(): boolean {
    return this.#session !== undefined;
  }

  /** Revision of the session; undefined: no session is open. */
  get revision(): Revision | undefined {
    return this.#session?.peer.revision;
  }

  isOpen(id: JsonRpcId): boolean {
    return this.#session?.relay.isOpen(id) === true;
  }

  get openCalls(): number {
    return this.#session?.relay.openCalls ?? 0;
  }

  take(frame: Frame): void {
    const { deps } = this.#options;
    if (this.#isTaken(frame)) return this.#refuse(frame, takenId(frame.id as JsonRpcId));
    const session = this.#sessionFor(frame);
    if (session !== undefined) session.relay.fromClient(frame, session.peer);
    else if (frame.kind !== 'request') deps.log.debug({ kind: frame.kind }, 'message dropped: no session is open');
  }

  /** Takes an array that `refusalOfBatch` has accepted. */
  takeBatch(items: readonly BatchItem[]): void {
    const session = this.#session;
    if (session === undefined) return;
    const lane = new BatchLane({
      expected: countAnswers(items),
      budget: this.#budget,
      write: (message) => session.peer.write(message),
    });
    session.relay.batched();
    for (const item of items) {
      if (!(item instanceof Frame)) lane.send(faultAnswer(item));
      else if (this.#isTaken(item)) lane.send(errorFrame(item.id, rpcErrorOf(takenId(item.id as JsonRpcId))));
      else session.relay.fromClient(item, lane);
    }
  }

  #isTaken({ kind, id }: Frame): boolean {
    return kind === 'request' && this.#options.isTaken(id as JsonRpcId);
  }

  #sessionFor(frame: Frame): Session<LegacyPeer> | undefined {
    if (this.#session !== undefined || frame.kind !== 'request') return this.#session;
    try {
      this.#session = this.#open();
    } catch (thrown) {
      const error = toBridgeError(thrown);
      logRefusal(this.#options, error);
      this.#refuse(frame, error);
    }
    return this.#session;
  }

  #open(): Session<LegacyPeer> {
    const { sessions, connection, client, input, maxSentBytes, deps } = this.#options;
    const { log } = deps;
    const { transport, principal, environment } = client;
    return sessions.open(
      (_id, listener) => {
        const peer: LegacyPeer = new LegacyPeer({
          connection,
          client,
          input,
          maxSentBytes,
          log,
          listener,
          onClose: (reason) => this.#sessionEnded(peer, reason),
        });
        return peer;
      },
      { transport, era: 'legacy', principal, environment },
    );
  }

  /**
   * Forgets the session. One that ends before its handshake costs the client nothing, so it may open another; a later
   * end is reported.
   */
  #sessionEnded(peer: LegacyPeer, reason: BridgeError): void {
    if (this.#session?.peer !== peer) return;
    this.#session = undefined;
    if (peer.isReady) this.#options.onServerEnded(reason);
  }

  /**
   * Called when all input was processed. The client can send no more answers, so what the server has asked or asks is
   * rejected.
   */
  inputEnded(): void {
    this.#session?.relay.refuseQuestions(INPUT_ENDED);
  }

  #refuse(request: Frame, error: BridgeError): void {
    this.#options.connection.send(errorFrame(request.id, rpcErrorOf(error)).bytes);
  }

  drained(): void {
    this.#session?.peer.drained();
  }

  /** Takes no new calls. */
  drain(): void {
    this.#session?.relay.drain();
  }

  close(reason: BridgeError): void {
    this.#session?.relay.close(reason);
  }
}

const INPUT_ENDED = new BridgeError(
  'ERR_CLIENT_NO_STREAM',
  'The client has ended its input and can no longer answer; it only waits for the results of its calls.',
);

/** Room for the other answers of an array and the commas between them. */
const MAX_ARRAY_BYTES = 2 * MAX_COLLECTED_BYTES;

class LegacyPeer extends ConnectionPeer {
  #revision: Revision | undefined;

  get revision(): Revision {
    return this.#revision ?? OLDEST_REVISION;
  }

  /** True once the handshake has succeeded. */
  get isReady(): boolean {
    return this.#revision !== undefined;
  }

  override negotiated(revision: Revision): void {
    this.#revision = revision;
  }

  override send(frame: Frame, call?: Call): boolean {
    const lane = call?.lane;
    if (!(lane instanceof BatchLane) || !frame.isResponse) return super.send(frame, call);
    return lane.send(this.fitting(frame, MAX_ARRAY_BYTES) ?? frame);
  }

  override release(call: Call): void {
    if (call.lane instanceof BatchLane) call.lane.release();
  }
}

/**
 * The modern requests of the connection. They share one connection to the server but no state, since each request is
 * self-contained. If that connection ends, the next request opens another, and the client loses only the open answers.
 * [spec 2026-07-28 transports/stdio#unexpected-termination]
 */
export class ModernConversation {
  readonly #options: ConversationOptions;
  readonly #reader = new MetadataReader();
  #link: Session<ModernPeer> | undefined;
  #hasServed = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  /** True once the client has sent a valid modern request. */
  get hasServed(): boolean {
    return this.#hasServed;
  }

  isOpen(id: JsonRpcId): boolean {
    return this.#link?.relay.isOpen(id) === true;
  }

  get hasLink(): boolean {
    return this.#link !== undefined;
  }

  get openCalls(): number {
    return this.#link?.relay.openCalls ?? 0;
  }

  take(frame: Frame): void {
    if (frame.kind === 'request') return this.#request(frame);
    const link = this.#link;
    if (link !== undefined) link.relay.fromClient(frame, link.peer);
    else this.#options.deps.log.debug({ method: frame.method }, 'modern notification dropped: no request is open');
  }

  #request(frame: Frame): void {
    const checked = validateModern({
      frame,
      headers: undefined,
      supportedRevisions: MODERN_REVISION_IDS,
      isKnownMethod: isModernRequest,
      reader: this.#reader,
    });
    if (!('ok' in checked)) {
      const { code, message, data } = checked;
      this.#options.deps.log.debug({ code, method: frame.method }, `modern request refused: ${message}`);
      return this.#refuse(frame, { code, message, data });
    }
    this.#hasServed = true;
    const id = frame.id as JsonRpcId;
    if (this.#options.isTaken(id)) return this.#refuse(frame, rpcErrorOf(takenId(id)));
    const link = this.#linkFor(frame);
    link?.relay.fromClient(frame, link.peer);
  }

  #linkFor(frame: Frame): Session<ModernPeer> | undefined {
    if (this.#link !== undefined) return this.#link;
    try {
      this.#link = this.#open();
    } catch (thrown) {
      const error = toBridgeError(thrown);
      logRefusal(this.#options, error);
      this.#refuse(frame, rpcErrorOf(error));
    }
    return this.#link;
  }

  #open(): Session<ModernPeer> {
    const { sessions, connection, client, input, maxSentBytes, deps } = this.#options;
    const { log } = deps;
    const { transport, principal, environment, callerName, headers } = client;
    const context = { principal: callerName, headers };
    return sessions.open(
      (_id, listener) => {
        const peer: ModernPeer = new ModernPeer({
          connection,
          client,
          input,
          maxSentBytes,
          log,
          listener,
          onClose: (reason) => this.#ended(peer, reason),
        });
        return peer;
      },
      { transport, era: 'modern', principal, environment, context },
    );
  }

  #ended(peer: ModernPeer, reason: BridgeError): void {
    if (this.#link?.peer !== peer) return;
    this.#link = undefined;
    const { log } = this.#options.deps;
    // The bridge closed the connection or the server rejected the credentials, so the client lost nothing. A rejection
    // is logged where it occurs.
    const level = reason.code === 'ERR_SESSION_CLOSED' || reason.code === 'ERR_UPSTREAM_AUTH' ? 'debug' : 'info';
    log[level]({ code: reason.code }, `the next modern request connects anew: ${reason.message}`);
  }

  #refuse(request: Frame, error: RpcError): void {
    this.#options.connection.send(errorFrame(request.id, error).bytes);
  }

  drained(): void {
    this.#link?.peer.drained();
  }

  /** Takes no new calls, and ends subscriptions. */
  drain(): void {
    this.#link?.relay.drain();
  }

  close(reason: BridgeError): void {
    this.#link?.relay.close(reason);
  }
}

class ModernPeer extends ConnectionPeer {
  /**
   * Sends a notification after the result of a subscription. The specification names both as signs of its end, so
   * clients get both. [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure, basic/patterns/cancellation]
   */
  override send(frame: Frame, call?: Call): boolean {
    const hasCapacity = super.send(frame, call);
    if (frame.kind !== 'result' || call?.method !== LISTEN) return hasCapacity;
    return this.write(notificationFrame(CANCELED, { requestId: call.id }).bytes, call);
  }
}
