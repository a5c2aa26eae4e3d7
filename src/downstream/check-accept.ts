import type { IncomingMessage } from 'node:http';
import { BridgeError } from '../errors.ts';
import { parseAccept } from '../http/content-type.ts';

/** What is wrong with the Accept header of a POST to the MCP endpoint, the same in every revision. */
export function checkAccept(request: IncomingMessage): BridgeError | undefined {
  const accept = parseAccept(request.headers.accept ?? '');
  if (accept.json && accept.eventStream) return undefined;
  return new BridgeError(
    'ERR_HTTP_ACCEPT',
    'The Accept header must list both application/json and text/event-stream: an answer may come as either.',
  );
}
