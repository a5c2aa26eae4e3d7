/** argv: port, then the command of the server. The floor of HTTP+SSE in front of a stdio server, one child a client. */
import { createServer } from 'node:http';
import { startChild } from './child.js';

const EVENT = Buffer.from('event: message\ndata: ');
const EVENT_END = Buffer.from('\n\n');

const [port, ...command] = process.argv.slice(2);
const children = new Map();
let opened = 0;

function countOpened() {
  opened += 1;
  return opened;
}

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    request.resume();
    return open(response);
  }
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const child = children.get(request.url);
    response.writeHead(child === undefined ? 404 : 202).end();
    child?.send(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  });
});
server.keepAliveTimeout = 600_000;
server.listen(Number(port), '127.0.0.1');

function open(response) {
  const path = `/messages?client=${countOpened()}`;
  let events = [];
  const child = startChild(
    command,
    (line) => events.push(EVENT, line, EVENT_END),
    () => {
      if (events.length === 0) return;
      response.write(Buffer.concat(events));
      events = [];
    },
  );
  children.set(path, child);
  response.on('close', () => {
    children.delete(path);
    child.end();
  });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`event: endpoint\ndata: ${path}\n\n`);
}
