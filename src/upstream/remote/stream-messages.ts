import type { BridgeError } from '../../errors.ts';
import type { ServerFault } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { recoverEnvelope } from '../../wire/scan-envelope.ts';
import { KEPT_END_BYTES, type SkippedEnds } from '../../wire/skipped-bytes.ts';
import type { DecodedEvent } from '../../wire/sse-decode.ts';
import { oversizedError } from '../oversized-error.ts';
import { ServerMessages } from './read-messages.ts';
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
  readonly #messages: ServerMessages;

  constructor(options: StreamMessagesOptions) {
    this.#options = options;
    this.#messages = new ServerMessages(options.message);
  }

  /** The stream goes on after a break. */
  resumed(): void {
    this.#seen.resumed();
  }

  /** False: the event held no message. */
  take({ id, data }: DecodedEvent): boolean {
    if (this.#seen.isRepeated(id)) return true;
    if (data.length <= this.#options.maxMessageBytes) return this.#messages.take(data);
    this.oversized(data.length, {
      head: data.subarray(0, KEPT_END_BYTES),
      tail: data.subarray(-KEPT_END_BYTES),
    });
    return true;
  }

  /** A message that was too long went by. */
  oversized(byteLength: number, { head, tail }: SkippedEnds): void {
    const { name, maxMessageBytes, fault } = this.#options;
    const { kind, id } = recoverEnvelope(head, tail);
    const bytes = `at least ${byteLength}`;
    fault({ error: oversizedError({ sender: `The server at ${name}`, bytes, maxMessageBytes, kind }), kind, id });
  }
}
