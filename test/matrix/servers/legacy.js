/**
 * The legacy server of the matrix as a process: `legacy.js stdio [file]`, whose processes share the record in the file, or `legacy.js <kind> [port or socket]` for one over HTTP, which
 * then prints its URL as a line of JSON, answers `GET /record` with what it saw, and ends when its stdin does.
 */
import { randomUUID } from 'node:crypto';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { LegacySession } from './legacy-server.js';
import { ServerRecord } from './record.js';

/** @type {Record<string, {path: string, handle: (kinds: typeof import('./legacy-http.js')) => import('./legacy-http.js').Handle}>} */
const HTTP_KINDS = {
  'http-sse': { path: '/sse', handle: ({ httpSse }) => httpSse(record) },
  stateful: { path: '/mcp', handle: ({ stateful }) => stateful(record) },
  'stateful-resumable': { path: '/mcp', handle: ({ stateful }) => stateful(record, { isResumable: true }) },
  'stateful-json': { path: '/mcp', handle: ({ stateful }) => stateful(record, { isJson: true }) },
  stateless: { path: '/mcp', handle: ({ stateless }) => stateless(record) },
  'stateless-json': { path: '/mcp', handle: ({ stateless }) => stateless(record, { isJson: true }) },
};

const [kind = '', place] = process.argv.slice(2);
const record = new ServerRecord(kind === 'stdio' ? place : undefined);
const http = HTTP_KINDS[kind];

if (kind === 'stdio') serveStdio();
else if (kind === 'websocket') void serveWebSocket();
else if (kind === 'grpc') void serveOverGrpc();
else if (http !== undefined) void serveOverHttp(http);
else {
  console.error(
    `usage: legacy.js stdio [file] | websocket [port] | grpc [port] | (${Object.keys(HTTP_KINDS).join(' | ')}) [port or socket]`,
  );
  process.exitCode = 2;
}

// What speaks HTTP is loaded only where it is spoken: that takes as long as the start of a server on stdio.

/** @param {(typeof HTTP_KINDS)[string]} kind */
async function serveOverHttp({ path, handle }) {
  const { serveHttp } = await import('./serve-http.js');
  serveHttp({ path, place: place ?? '0', record, handle: handle(await import('./legacy-http.js')) });
}

async function serveWebSocket() {
  const { serveWebSockets, transportOver } = await import('./websocket.js');
  const sessions = new Set();
  const connected = async (/** @type {import('ws').WebSocket} */ socket) => {
    const options = { name: randomUUID(), record, sessions, hasCallStreams: true };
    await new LegacySession(options).connect(transportOver(socket));
  };
  serveWebSockets({ path: '/mcp', place: place ?? '0', record, connected });
}

async function serveOverGrpc() {
  const { serveGrpc, transportOver } = await import('./grpc.js');
  const sessions = new Set();
  const connected = async (/** @type {any} */ stream) => {
    const options = { name: randomUUID(), record, sessions, hasCallStreams: true };
    await new LegacySession(options).connect(transportOver(stream));
  };
  serveGrpc({ port: place ?? '0', record, connected });
}

function serveStdio() {
  const options = { name: `process ${process.pid}`, record, sessions: new Set(), hasCallStreams: true };
  void new LegacySession(options).connect(new StdioServerTransport());
}
