import { type BridgeError, toBridgeError } from '../../errors.ts';
import { validateModern } from '../../mcp/classify/modern-request.ts';
import { MetadataReader } from '../../mcp/classify/request-metadata.ts';
import { CANCELLED, isModernRequest, LISTEN } from '../../mcp/vocabulary/methods.ts';
import { MODERN_REVISION_IDS } from '../../mcp/vocabulary/revisions.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { Session } from '../../relay/sessions/session-entry.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, notificationFrame } from '../../wire/write-message.ts';
import { ConnectionPeer, type ConversationOptions, logRefusal, takenId } from './connection-peer.ts';

/**
 * The modern requests of the connection. They share one to the server but nothing else: each says everything of
 * itself, so that one may end, and another one be made for the next request, without the client losing more than
 * the answers that are open. [spec 2026-07-28 transports/stdio#unexpected-termination]
 */
export class ModernConversation {
  readonly #options: ConversationOptions;
  readonly #reader = new MetadataReader();
  #link: Session<ModernPeer> | undefined;
  #hasServed = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  /** The client has sent a modern request that was in order. */
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
    return this.#link?.relay.openExchanges ?? 0;
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
      logRefusal(this.#options.deps, error);
      this.#refuse(frame, rpcErrorOf(error));
    }
    return this.#link;
  }

  #open(): Session<ModernPeer> {
    const { sessions, connection, client, input } = this.#options;
    const { transport, principal, environment, callerName, headers } = client;
    const context = { principal: callerName, metadata: undefined, headers };
    return sessions.open(
      (_id, listener) => {
        const peer: ModernPeer = new ModernPeer({
          connection,
          client,
          input,
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
    // Closed by ourselves, or never let in: nobody lost anything. Why it was not let in is told where it was refused.
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
   * The specification names two signs that a subscription has ended, the result and this notification; here clients get
   * both. [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure, basic/patterns/cancellation]
   */
  override send(frame: Frame, exchange?: Exchange): boolean {
    const hasCapacity = this.write(frame.bytes);
    if (frame.kind !== 'result' || exchange?.method !== LISTEN) return hasCapacity;
    return this.write(notificationFrame(CANCELLED, { requestId: exchange.id }).bytes);
  }
}
