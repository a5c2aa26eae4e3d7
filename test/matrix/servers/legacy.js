/**
 * The legacy server of the matrix as a process: `legacy.js stdio [file]`, whose processes share the record in the file, or `legacy.js <kind> [port or socket]` for one over HTTP, which
 * then prints its URL as a line of JSON, answers `GET /record` with what it saw, and ends when its stdin does.
 */
import { randomUUID } from 'node:crypto';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { httpSse, stateful, stateless } from './legacy-http.js';
import { LegacySession } from './legacy-server.js';
import { ServerRecord } from './record.js';
import { serveHttp } from './serve-http.js';
import { transportOver } from './websocket.js';

/** @type {Record<string, {path: string, handle: () => import('./legacy-http.js').Handle}>} */
const HTTP_KINDS = {
  'http-sse': { path: '/sse', handle: () => httpSse(record) },
  stateful: { path: '/mcp', handle: () => stateful(record) },
  'stateful-resumable': { path: '/mcp', handle: () => stateful(record, { isResumable: true }) },
  'stateful-json': { path: '/mcp', handle: () => stateful(record, { isJson: true }) },
  stateless: { path: '/mcp', handle: () => stateless(record) },
  'stateless-json': { path: '/mcp', handle: () => stateless(record, { isJson: true }) },
};

const [kind = '', place] = process.argv.slice(2);
const record = new ServerRecord(kind === 'stdio' ? place : undefined);
const http = HTTP_KINDS[kind];

if (kind === 'stdio') serveStdio();
else if (kind === 'websocket') serveWebSocket();
else if (http !== undefined) serveHttp({ path: http.path, place: place ?? '0', record, handle: http.handle() });
else {
  console.error(
    `usage: legacy.js stdio [file] | websocket [port] | (${Object.keys(HTTP_KINDS).join(' | ')}) [port or socket]`,
  );
  process.exitCode = 2;
}

function serveWebSocket() {
  const sessions = new Set();
  const connected = async (/** @type {import('ws').WebSocket} */ socket) => {
    const options = { name: randomUUID(), record, sessions, hasCallStreams: true };
    await new LegacySession(options).connect(transportOver(socket));
  };
  serveHttp({ path: '/mcp', place: place ?? '0', record, connected });
}

function serveStdio() {
  const options = { name: `process ${process.pid}`, record, sessions: new Set(), hasCallStreams: true };
  void new LegacySession(options).connect(new StdioServerTransport());
}
