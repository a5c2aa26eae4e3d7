import type { BridgeError } from '../../errors.ts';
import { findCancelledId } from '../../mcp/classify/correlators.ts';
import { CANCELLED } from '../../mcp/vocabulary/methods.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerFault, ServerListener } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';
import type { Outgoing } from './outbox.ts';

/**
 * Hands the server's messages to the listener, and knows which of the server's own requests are open: their ids mean
 * something in one session only.
 */
export class Delivery {
  readonly #listener: ServerListener;
  readonly #questions = new Set<JsonRpcId>();
  #isClosed = false;

  constructor(listener: ServerListener) {
    this.#listener = listener;
  }

  /** `exchange`: the call on whose answer the message came; for a response, the call it answers. */
  message(frame: Frame, exchange?: Exchange): void {
    if (this.#isClosed) return;
    const isOpen = exchange?.state.kind === 'open';
    // A late answer: the call was withdrawn meanwhile.
    if (frame.isResponse && exchange !== undefined && !isOpen) return;
    if (frame.kind === 'request' && frame.id !== undefined) this.#questions.add(frame.id);
    if (frame.method === CANCELLED) {
      const withdrawn = findCancelledId(frame);
      if (withdrawn !== undefined) this.#questions.delete(withdrawn.value);
    }
    if (isOpen) this.#listener.fromServer(frame, exchange);
    else this.#listener.fromServer(frame);
  }

  fault(fault: ServerFault): void {
    if (!this.#isClosed) this.#listener.serverFault(fault);
  }

  /** No answer to this request of the client will come. */
  failed({ frame, exchange }: Outgoing, error: BridgeError): void {
    const isAwaited = exchange === undefined || exchange.state.kind === 'open';
    if (isAwaited && frame.kind === 'request') this.fault({ error, kind: 'error', id: frame.id });
  }

  /** The client answers a request of the server. */
  answered(frame: Frame): void {
    if (frame.id !== undefined) this.#questions.delete(frame.id);
  }

  /** The session is gone, and with it whoever asked: a late answer would meet some other question of the next one. */
  withdrawQuestions(reason: string): void {
    const withdrawn = [...this.#questions];
    this.#questions.clear();
    for (const requestId of withdrawn) this.message(notificationFrame(CANCELLED, { requestId, reason }));
  }

  close(): void {
    this.#isClosed = true;
  }
}
