/** Is a WebSocket opened there? */
export function isWebSocketUrl({ protocol }: URL): boolean {
  return protocol === 'ws:' || protocol === 'wss:';
}

/** The URL of the handshake, which is a request over HTTP, as are those of a login for the server. [RFC 6455 3] */
export function handshakeUrlOf(url: URL): URL {
  if (!isWebSocketUrl(url)) return url;
  const handshake = new URL(url);
  handshake.protocol = url.protocol === 'wss:' ? 'https:' : 'http:';
  return handshake;
}

/** The reverse: as the user has written it. */
export function webSocketUrlOf(handshake: URL): URL {
  const url = new URL(handshake);
  url.protocol = handshake.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}
