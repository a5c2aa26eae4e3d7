import { BridgeError, toBridgeError } from '../../errors.ts';
import { OLDEST_REVISION, type Revision } from '../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { Session } from '../../relay/sessions/session-entry.ts';
import { Frame, type JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { BatchBudget, type BatchItem, BatchLane, countAnswers, faultAnswer } from '../batch.ts';
import { ConnectionPeer, type ConversationOptions, logRefusal, takenId } from './connection-peer.ts';

export interface LegacyConversationOptions extends ConversationOptions {
  /** The server ended after the handshake: the client could not know that another one is new. */
  readonly onServerEnded: (reason: BridgeError) => void;
}

/**
 * The legacy session of the connection, one at a time. A server that cannot be reached is an answer to the request that was
 * to open it; the client may try again.
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

  /** The revision of the session; undefined: none is open. */
  get revision(): Revision | undefined {
    return this.#session?.peer.revision;
  }

  isOpen(id: JsonRpcId): boolean {
    return this.#session?.relay.isOpen(id) === true;
  }

  get openCalls(): number {
    return this.#session?.relay.openExchanges ?? 0;
  }

  take(frame: Frame): void {
    const { deps } = this.#options;
    if (this.#isTaken(frame)) return this.#refuse(frame, takenId(frame.id as JsonRpcId));
    const session = this.#sessionFor(frame);
    if (session !== undefined) session.relay.fromClient(frame, session.peer);
    else if (frame.kind !== 'request') deps.log.debug({ kind: frame.kind }, 'message dropped: no session is open');
  }

  /** Called with what `refusalOfBatch` lets through. */
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
      logRefusal(this.#options.deps, error);
      this.#refuse(frame, error);
    }
    return this.#session;
  }

  #open(): Session<LegacyPeer> {
    const { sessions, connection, client, input } = this.#options;
    const { transport, principal, environment } = client;
    return sessions.open(
      (_id, listener) => {
        const peer: LegacyPeer = new LegacyPeer({
          connection,
          client,
          input,
          listener,
          onClose: (reason) => this.#sessionEnded(peer, reason),
        });
        return peer;
      },
      { transport, era: 'legacy', principal, environment },
    );
  }

  /** Before the handshake nothing is lost with a session. */
  #sessionEnded(peer: LegacyPeer, reason: BridgeError): void {
    if (this.#session?.peer !== peer) return;
    this.#session = undefined;
    if (peer.isReady) this.#options.onServerEnded(reason);
  }

  /** Nothing of what the client has said waits any more, so it answers nothing that is not answered yet. */
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

class LegacyPeer extends ConnectionPeer {
  #revision: Revision | undefined;

  get revision(): Revision {
    return this.#revision ?? OLDEST_REVISION;
  }

  /** The handshake has succeeded. */
  get isReady(): boolean {
    return this.#revision !== undefined;
  }

  override negotiated(revision: Revision): void {
    this.#revision = revision;
  }

  override send(frame: Frame, exchange?: Exchange): boolean {
    const lane = exchange?.lane;
    return lane instanceof BatchLane && frame.isResponse ? lane.send(frame) : this.write(frame.bytes);
  }

  override release(exchange: Exchange): void {
    if (exchange.lane instanceof BatchLane) exchange.lane.release();
  }
}
