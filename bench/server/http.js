/**
 * argv: port. The MCP server behind the bridges, on HTTP: Streamable HTTP with sessions on /mcp, the same with a stream
 * outside of calls on /streams, HTTP+SSE on /sse, and the modern era, without sessions, on /modern.
 */
import { createServer } from 'node:http';
import { answer } from './answers.js';

const POSTED = ['/mcp', '/streams', '/modern', '/messages'];
/** The open stream of each HTTP+SSE client. */
const streams = new Map();
let clients = 0;

function countClient() {
  clients += 1;
  return clients;
}

const server = createServer((request, response) => {
  const path = request.url.split('?')[0];
  if (request.method === 'POST' && POSTED.includes(path)) {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
      if (path === '/messages') post(request, response, body);
      else reply(response, body, path === '/modern' ? 'modern' : 'legacy');
    });
    return;
  }
  request.resume();
  if (request.method === 'GET' && path === '/sse') return open(response);
  if (request.method === 'GET' && path === '/streams') {
    return response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  }
  if (request.method === 'DELETE' && (path === '/mcp' || path === '/streams')) return response.writeHead(200).end();
  // No stream outside of a call, and no authorization server to discover.
  response.writeHead(path === '/mcp' || path === '/modern' || path === '/sse' ? 405 : 404).end();
});
server.keepAliveTimeout = 600_000;
server.listen(Number(process.argv[2]), '127.0.0.1');

/** One message is the body; several are a stream of events, written at once. */
function reply(response, body, era) {
  const messages = [];
  answer(body, era, (message) => messages.push(message));
  if (messages.length === 0) return response.writeHead(202).end();
  const headers = { 'content-type': 'application/json' };
  if (era === 'legacy' && body.includes('"initialize"')) headers['mcp-session-id'] = `bench-${countClient()}`;
  if (messages.length === 1) {
    headers['content-length'] = Buffer.byteLength(messages[0]);
    return response.writeHead(200, headers).end(messages[0]);
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let index = 0; index < messages.length; index += 100) {
    const events = messages.slice(index, index + 100).map((message) => `event: message\ndata: ${message}\n\n`);
    response.write(events.join(''));
  }
  response.end();
}

function open(response) {
  const client = String(countClient());
  streams.set(client, response);
  response.on('close', () => streams.delete(client));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`event: endpoint\ndata: /messages?client=${client}\n\n`);
}

function post(request, response, body) {
  const stream = streams.get(new URL(request.url, 'http://bench').searchParams.get('client'));
  if (stream === undefined) return response.writeHead(404).end();
  response.writeHead(202).end();
  answer(body, 'legacy', (message) => {
    if (typeof message === 'string') return stream.write(`event: message\ndata: ${message}\n\n`);
    stream.write(Buffer.concat([Buffer.from('event: message\ndata: '), message, Buffer.from('\n\n')]));
  });
}
