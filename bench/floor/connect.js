/** argv: URL. The floor of a stdio endpoint for a Streamable HTTP server, of either era: a post for each line. */
import { Agent, request } from 'node:http';
import { createLineSplitter } from '../server/lines.js';
import { createBatch } from './child.js';
import { createDataReader } from './sse-data.js';

const url = new URL(process.argv[2]);
const agent = new Agent({ keepAlive: true, maxSockets: 256 });
const emit = createBatch((bytes) => process.stdout.write(bytes));
let session;

const split = createLineSplitter((line) => {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': line.length,
  };
  if (session !== undefined) headers['mcp-session-id'] = session;
  const post = request({ agent, host: url.hostname, port: url.port, path: url.pathname, method: 'POST', headers });
  post.on('response', (response) => {
    session ??= response.headers['mcp-session-id'];
    if (response.headers['content-type'] === 'text/event-stream') {
      return response.on('data', createDataReader(emit));
    }
    const chunks = [];
    response.on('data', (chunk) => chunks.push(chunk));
    response.on('end', () => {
      if (chunks.length > 0) emit(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    });
  });
  post.end(line);
});
process.stdin.on('data', split);
process.stdin.on('end', () => process.exit(0));
