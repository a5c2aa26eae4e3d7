import { createServer } from 'node:http';

/**
 * Listens on 127.0.0.1, or at a Unix socket, prints the URL as a line of JSON, answers `GET /record` with what was seen, and ends the process
 * with its stdin.
 *
 * @param {object} options
 * @param {string} options.path of the endpoint
 * @param {string} options.place a port, of which 0 picks one, or the path of a socket
 * @param {import('./record.js').ServerRecord} options.record
 * @param {import('./legacy-http.js').Handle} [options.handle] default: there is nothing at this path
 * @param {string} [options.scheme] of the URL
 * @param {() => number} [options.others] connections beside those of HTTP
 */
export function serveHttp({ path, place, record, handle, scheme = 'http', others = () => 0 }) {
  const server = createServer(async (request, response) => {
    try {
      if (request.url === '/record') return answerRecord(response);
      if (handle === undefined) response.writeHead(404).end();
      else await handle(request, response);
    } catch (error) {
      console.error(error);
      response.destroy();
    }
  });
  // Longer than anybody here is idle: a call that meets the end of its connection is lost, as it should be.
  server.keepAliveTimeout = 60_000;
  /** @param {import('node:http').ServerResponse} response */
  const answerRecord = (response) =>
    server.getConnections((_, connections) => {
      response.writeHead(200, { 'Content-Type': 'application/json', Connection: 'close' });
      // Without the one that asks.
      response.end(JSON.stringify({ connections: connections - 1 + others(), entries: record.entries }));
    });
  const address = place.startsWith('/') ? { path: place } : { port: Number(place), host: '127.0.0.1' };
  server.listen(address, () => {
    const bound = server.address();
    const host = bound !== null && typeof bound === 'object' ? `127.0.0.1:${bound.port}` : 'localhost';
    console.log(JSON.stringify({ url: `${scheme}://${host}${path}`, pid: process.pid }));
  });
  process.stdin.resume().on('end', () => process.exit());
  return server;
}
