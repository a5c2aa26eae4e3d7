import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';

/**
 * The SDK speaks `Request` and `Response`; a client that leaves aborts the one and cancels the other.
 * @param {(request: Request) => Promise<Response>} fetch
 * @param {import('./modern-server.js').ModernHost} host
 * @returns {import('./legacy-http.js').Handle}
 */
export function handleModern(fetch, host) {
  return async (request, response) => {
    const left = new AbortController();
    response.on('close', () => left.abort());
    const body = await buffer(request);
    if (body.length > 0) host.note('message', JSON.parse(body.toString()));
    const { method = 'GET', headers, url = '/' } = request;
    const asked = new Request(`http://${headers.host}${url}`, {
      method,
      headers: Object.entries(headers).map(([name, value]) => [name, String(value)]),
      signal: left.signal,
      ...(body.length > 0 && { body }),
    });
    const answered = await fetch(asked).catch(() => undefined);
    // The client has left before there was an answer.
    if (answered === undefined) return void response.destroy();
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    if (answered.body === null) return void response.end();
    response.flushHeaders();
    const stream = Readable.fromWeb(/** @type {any} */ (answered.body));
    stream.on('error', () => response.destroy());
    stream.pipe(response);
    response.on('close', () => stream.destroy());
  };
}
