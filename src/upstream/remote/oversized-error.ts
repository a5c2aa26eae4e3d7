import { BridgeError } from '../../errors.ts';

export function oversizedError(server: string, byteLength: number, maxMessageBytes: number): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TOO_LARGE',
    `The server at ${server} sent a message of at least ${byteLength} bytes; up to ${maxMessageBytes} are allowed. ` +
      'It was dropped; raise --max-message-bytes or let the server send less.',
  );
}
