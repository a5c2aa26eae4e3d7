/** argv: port, URL. The floor of HTTP endpoints for an HTTP server: requests and responses pass as they are. */
import { Agent, createServer, request } from 'node:http';

const url = new URL(process.argv[3]);
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

const server = createServer((incoming, response) => {
  const { method, headers } = incoming;
  const chunks = [];
  incoming.on('data', (chunk) => chunks.push(chunk));
  incoming.on('end', () => {
    const passed = request({ agent, host: url.hostname, port: url.port, path: url.pathname, method, headers });
    passed.on('response', (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.on('data', (chunk) => response.write(chunk));
      answer.on('end', () => response.end());
    });
    passed.end(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  });
});
server.keepAliveTimeout = 600_000;
server.listen(Number(process.argv[2]), '127.0.0.1');
