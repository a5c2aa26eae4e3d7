/** Returns true for a ws or wss URL. */
export function isWebSocketUrl({ protocol }: URL): boolean {
  return protocol === 'ws:' || protocol === 'wss:';
}

/** The URL of the handshake, which is an HTTP request. A login for the server uses the same URL. [RFC 6455 3] */
export function handshakeUrlOf(url: URL): URL {
  if (!isWebSocketUrl(url)) return url;
  const handshake = new URL(url);
  handshake.protocol = url.protocol === 'wss:' ? 'https:' : 'http:';
  return handshake;
}

/** The reverse of `handshakeUrlOf`: the URL as the user wrote it. */
export function webSocketUrlOf(handshake: URL): URL {
  const url = new URL(handshake);
  url.protocol = handshake.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}
