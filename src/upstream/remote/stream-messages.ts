import type { BridgeError } from '../../errors.ts';
import type { ServerFault } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { recoverEnvelope } from '../../wire/scan-envelope.ts';
import { KEPT_TAIL_BYTES } from './event-guard.ts';
import type { StreamEvent } from './event-stream.ts';
import { oversizedError } from './oversized-error.ts';
import { readServerMessages } from './read-messages.ts';
import { SeenEvents } from './seen-events.ts';

export interface StreamMessagesOptions {
  /** How the server is called in messages. */
  readonly name: string;
  readonly maxMessageBytes: number;
  readonly message: (frame: Frame) => void;
  readonly fault: (fault: ServerFault & { readonly error: BridgeError }) => void;
}

/** Messages out of the events of a long-lived stream. */
export class StreamMessages {
  readonly #options: StreamMessagesOptions;
  readonly #seen = new SeenEvents();

  constructor(options: StreamMessagesOptions) {
    this.#options = options;
  }

  /** The stream goes on after a break. */
  resumed(): void {
    this.#seen.resumed();
  }

  /** False: the event held no message. */
  take({ id, data }: StreamEvent): boolean {
    if (this.#seen.isRepeated(id)) return true;
    const bytes = Buffer.from(data, 'utf8');
    const { name, maxMessageBytes, message, fault } = this.#options;
    if (bytes.length <= maxMessageBytes) return readServerMessages(bytes, message);
    const recovered = recoverEnvelope(bytes.subarray(0, KEPT_TAIL_BYTES), bytes.subarray(-KEPT_TAIL_BYTES));
    fault({ error: oversizedError(name, bytes.length, maxMessageBytes), kind: recovered.kind, id: recovered.id });
    return true;
  }
}
