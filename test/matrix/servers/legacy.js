/**
 * The legacy server of the matrix as a process: `legacy.js stdio`, or `legacy.js <kind> [port]` for one over HTTP, which
 * then prints its URL as a line of JSON, answers `GET /record` with what it saw, and ends when its stdin does.
 */
import { createServer } from 'node:http';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { httpSse, stateful, stateless } from './legacy-http.js';
import { LegacySession } from './legacy-server.js';
import { ServerRecord } from './record.js';

const record = new ServerRecord();

/** @type {Record<string, {path: string, handle: () => import('./legacy-http.js').Handle}>} */
const HTTP_KINDS = {
  'http-sse': { path: '/sse', handle: () => httpSse(record) },
  stateful: { path: '/mcp', handle: () => stateful(record) },
  'stateful-resumable': { path: '/mcp', handle: () => stateful(record, { isResumable: true }) },
  'stateful-json': { path: '/mcp', handle: () => stateful(record, { isJson: true }) },
  stateless: { path: '/mcp', handle: () => stateless(record) },
  'stateless-json': { path: '/mcp', handle: () => stateless(record, { isJson: true }) },
};

const [kind = '', port = '0'] = process.argv.slice(2);
const http = HTTP_KINDS[kind];

if (kind === 'stdio') await serveStdio();
else if (http !== undefined) serveHttp(http.path, http.handle());
else {
  console.error(`usage: legacy.js stdio | (${Object.keys(HTTP_KINDS).join(' | ')}) [port]`);
  process.exitCode = 2;
}

async function serveStdio() {
  const options = { name: `process ${process.pid}`, record, sessions: new Set(), hasCallStreams: true };
  await new LegacySession(options).connect(new StdioServerTransport());
}

/** @param {string} path @param {import('./legacy-http.js').Handle} handle */
function serveHttp(path, handle) {
  const server = createServer(async (request, response) => {
    try {
      if (request.url === '/record') return answerRecord(response);
      await handle(request, response);
    } catch (error) {
      console.error(error);
      response.destroy();
    }
  });
  /** @param {import('node:http').ServerResponse} response */
  const answerRecord = (response) =>
    server.getConnections((_, connections) => {
      response.writeHead(200, { 'Content-Type': 'application/json', Connection: 'close' });
      // Without the one that asks.
      response.end(JSON.stringify({ connections: connections - 1, entries: record.entries }));
    });
  server.listen(Number(port), '127.0.0.1', () => {
    const address = /** @type {import('node:net').AddressInfo} */ (server.address());
    console.log(JSON.stringify({ url: `http://127.0.0.1:${address.port}${path}`, pid: process.pid }));
  });
  process.stdin.resume().on('end', () => process.exit());
}
