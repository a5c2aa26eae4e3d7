import { BridgeError } from '../errors.ts';
import type { ServerFault } from '../relay/ports.ts';

export interface OversizedMessage {
  /** The sender, as the beginning of a sentence. */
  readonly sender: string;
  /** In words, for not all of them may have been counted. */
  readonly bytes: string;
  readonly maxMessageBytes: number;
  /** The kind of the message, as far as its beginning and end tell. */
  readonly kind: ServerFault['kind'];
}

/** A request is refused to the server, as the request of a client would be; of all else a client hears. */
export function oversizedError({ sender, bytes, maxMessageBytes, kind }: OversizedMessage): BridgeError {
  const limit = `up to ${maxMessageBytes} are allowed`;
  if (kind === 'request') {
    const message = `${sender} sent a request of ${bytes} bytes; ${limit}. It was refused; send less at once or raise --max-message-bytes.`;
    return new BridgeError('ERR_WIRE_FRAME_TOO_LARGE', message);
  }
  const message = `${sender} sent a message of ${bytes} bytes; ${limit}. It was dropped; raise --max-message-bytes or let the server send less.`;
  return new BridgeError('ERR_UPSTREAM_TOO_LARGE', message);
}
