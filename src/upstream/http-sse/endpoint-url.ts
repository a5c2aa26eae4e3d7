import { BridgeError } from '../../errors.ts';
import { showUrl } from '../../http/shown-url.ts';

/**
 * Where the server wants its messages posted. It may name any path, but only of the origin it was reached at: messages
 * and credentials are for that server, and the event may come from whoever can write to its stream. A `//host` is
 * another origin like any other. [spec 2024-11-05 basic/transports#http-with-sse]
 */
export function resolveEndpoint(streamUrl: URL, announced: string): URL | BridgeError {
  const text = announced.trim();
  const name = `The server at ${showUrl(streamUrl)}`;
  if (text === '' || !URL.canParse(text, streamUrl.href)) {
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', `${name} announced an endpoint that is no URL.`);
  }
  const endpoint = new URL(text, streamUrl);
  endpoint.username = '';
  endpoint.password = '';
  endpoint.hash = '';
  if (endpoint.origin === streamUrl.origin) return endpoint;
  return new BridgeError(
    'ERR_UPSTREAM_PROTOCOL',
    `${name} wants its messages posted to another origin, ${endpoint.origin}; that is refused. If it stands behind a proxy, it has to be told its public URL.`,
  );
}
