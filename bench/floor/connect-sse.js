/** argv: URL. The floor of a stdio endpoint for an HTTP+SSE server. */
import { Agent, get, request } from 'node:http';
import { createLineSplitter } from '../server/lines.js';
import { createBatch } from './child.js';
import { createDataReader } from './sse-data.js';

const url = new URL(process.argv[2]);
const agent = new Agent({ keepAlive: true, maxSockets: 256 });
const emit = createBatch((bytes) => process.stdout.write(bytes));
const early = [];
let path;

get(url, (stream) => {
  stream.on(
    'data',
    createDataReader((data) => {
      if (path !== undefined) return emit(data);
      path = data.toString();
      for (const line of early) post(line);
    }),
  );
});

function post(line) {
  const headers = { 'content-type': 'application/json', 'content-length': line.length };
  const sent = request({ agent, host: url.hostname, port: url.port, path, method: 'POST', headers });
  sent.on('response', (response) => response.resume());
  sent.end(line);
}

process.stdin.on(
  'data',
  createLineSplitter((line) => (path === undefined ? early.push(Buffer.from(line)) : post(line))),
);
process.stdin.on('end', () => process.exit(0));
