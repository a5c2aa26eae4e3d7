/**
 * argv: port, 'session' | 'shared' | 'stateless', then the command of the server. The floor in front of a stdio server:
 * the least that node:http and pipes need to carry a call, and nothing that makes it safe. With 'shared' and
 * 'stateless' one child serves everybody, whose clients have to keep their ids apart.
 */
import { createServer } from 'node:http';
import { startChild } from './child.js';
import { readRoute } from './route.js';

const EVENT = Buffer.from('event: message\ndata: ');
const EVENT_END = Buffer.from('\n\n');

const [port, mode, ...command] = process.argv.slice(2);
const sessions = new Map();
const common = mode === 'session' ? undefined : startServer();
let opened = 0;

function countOpened() {
  opened += 1;
  return opened;
}

const server = createServer((request, response) => {
  if (request.method === 'DELETE') {
    request.resume();
    if (common === undefined) sessions.get(request.headers['mcp-session-id'])?.end();
    sessions.delete(request.headers['mcp-session-id']);
    return response.writeHead(200).end();
  }
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => pass(request, response, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
});
server.keepAliveTimeout = 600_000;
server.listen(Number(port), '127.0.0.1');

function pass(request, response, body) {
  const headers = { 'content-type': 'application/json' };
  let upstream = mode === 'stateless' ? common : sessions.get(request.headers['mcp-session-id']);
  if (upstream === undefined) {
    const id = `floor-${countOpened()}`;
    upstream = common ?? startServer();
    sessions.set(id, upstream);
    headers['mcp-session-id'] = id;
  }
  const route = readRoute(body);
  if (route?.isLast) upstream.waiting.set(route.key, { response, headers, events: undefined });
  else response.writeHead(202).end();
  upstream.send(body);
}

function startServer() {
  const waiting = new Map();
  /** Calls with events that the current chunk brought. */
  const touched = [];
  const child = startChild(
    command,
    (line) => {
      const route = readRoute(line);
      const call = route && waiting.get(route.key);
      if (call === undefined) return;
      if (route.isLast) waiting.delete(route.key);
      if (route.isLast && call.events === undefined) {
        call.headers['content-length'] = line.length;
        return call.response.writeHead(200, call.headers).end(line);
      }
      if (call.events === undefined) {
        call.response.writeHead(200, { ...call.headers, 'content-type': 'text/event-stream' });
        call.events = [];
      }
      if (call.events.length === 0) touched.push(call);
      call.events.push(EVENT, line, EVENT_END);
      call.isDone = route.isLast;
    },
    () => {
      for (const call of touched) {
        const bytes = Buffer.concat(call.events);
        call.events.length = 0;
        if (call.isDone) call.response.end(bytes);
        else call.response.write(bytes);
      }
      touched.length = 0;
    },
  );
  return { waiting, send: child.send, end: child.end };
}
