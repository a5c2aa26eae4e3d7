import type { Logger } from 'pino';
import { findOlderOffer } from '../../mcp/classify/older-offer.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { DecoratedSessions, PassingLink } from '../../relay/passing-link.ts';
import type { ServerFault, ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import { type Frame, hasPlainId, type JsonRpcId, withId } from '../../wire/frame.ts';
import { AwaitedIds, IdWarnings } from '../answer-ids.ts';

/**
 * Takes from servers what the clients of the official SDKs take, so that everything above sees answers with the ids that
 * were sent, and a handshake in a revision that the server speaks. Every transport with long-lived links is dialled
 * through this.
 */
export function createLenientSessions(dialer: SessionDialer, log: Logger): SessionDialer {
  const warnings = new IdWarnings(dialer.name, log);
  return new DecoratedSessions(dialer, (own, listener, session) => {
    return new LenientLink(listener, { warnings, log, dial: (below) => own.dial(below, session) });
  });
}

interface LenientLinkOptions {
  readonly warnings: IdWarnings;
  readonly log: Logger;
  readonly dial: (listener: ServerListener) => UpstreamLink;
}

class LenientLink extends PassingLink {
  protected readonly link: UpstreamLink;
  readonly #log: Logger;
  readonly #warnings: IdWarnings;
  readonly #awaited: AwaitedIds;
  /** The `initialize` that has no answer yet and has not been repeated. At most as large as a client's may be. */
  #initialize: Frame | undefined;

  constructor(listener: ServerListener, { warnings, log, dial }: LenientLinkOptions) {
    super(listener);
    this.#log = log;
    this.#warnings = warnings;
    this.#awaited = new AwaitedIds(warnings);
    this.link = dial(this);
  }

  override send(frame: Frame, exchange?: Exchange): boolean {
    if (frame.kind === 'request' && frame.id !== undefined) {
      this.#awaited.add(frame.id);
      if (frame.method === INITIALIZE) this.#initialize = frame;
    }
    return this.link.send(frame, exchange);
  }

  override fromServer(frame: Frame, exchange?: Exchange): void {
    if (!frame.isResponse || frame.id === undefined) return this.listener.fromServer(frame, exchange);
    const id = this.#awaited.take(frame.id, exchange?.id);
    const answer = this.#under(id, frame);
    if (this.#initialize !== undefined && this.#isRepeated(this.#initialize, answer, exchange)) return;
    this.listener.fromServer(answer, exchange);
  }

  /** The answer under the id that the request has. */
  #under(id: JsonRpcId, answer: Frame): Frame {
    if (id === answer.id) {
      if (hasPlainId(answer)) return answer;
      this.#warnings.changed(id, id);
    }
    return withId(answer, id);
  }

  /**
   * Some servers refuse a revision that they do not know instead of naming one that they do, and list those in the error.
   * [spec 2025-11-25 basic/lifecycle#error-handling] They are offered the newest of these, once.
   */
  #isRepeated(initialize: Frame, answer: Frame, exchange: Exchange | undefined): boolean {
    if (answer.id !== initialize.id) return false;
    this.#initialize = undefined;
    const older = answer.kind === 'error' ? findOlderOffer(initialize, answer) : undefined;
    if (older === undefined) return false;
    this.#log.info(`the server refused MCP ${older.refused} and is offered ${older.revision}, which it lists`);
    this.#awaited.add(answer.id as JsonRpcId); // that of the request
    this.link.send(older.frame, exchange);
    return true;
  }

  override serverFault(fault: ServerFault): void {
    if (fault.id === undefined || fault.kind === 'request' || fault.kind === 'notification') {
      return this.listener.serverFault(fault);
    }
    const id = this.#awaited.take(fault.id, undefined);
    this.listener.serverFault(id === fault.id ? fault : { ...fault, id });
  }
}
