import { randomUUID } from 'node:crypto';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { MemoryEventStore } from '../../fixtures/everything/event-store.js';
import { LegacySession } from './legacy-server.js';

/**
 * Answers one HTTP request.
 * @typedef {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => Promise<void>} Handle
 */

const METHODS_WITHOUT_SESSION = 'POST';

/** @param {import('./record.js').ServerRecord} record @returns {Handle} */
export function httpSse(record) {
  /** @type {Map<string, SSEServerTransport>} */
  const transports = new Map();
  const sessions = new Set();
  return async (request, response) => {
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response);
      const name = transport.sessionId;
      transports.set(name, transport);
      response.on('close', () => transports.delete(name));
      await new LegacySession({ name, record, sessions, hasCallStreams: true }).connect(transport);
      record.note(name, 'stream');
      return;
    }
    const id = new URL(request.url ?? '', 'http://localhost').searchParams.get('sessionId') ?? '';
    const transport = transports.get(id);
    if (transport === undefined) response.writeHead(404).end('no such session');
    else await transport.handlePostMessage(request, response);
  };
}

/**
 * @param {import('./record.js').ServerRecord} record
 * @param {{isJson?: boolean, isResumable?: boolean}} [options]
 * @returns {Handle}
 */
export function stateful(record, { isJson = false, isResumable = false } = {}) {
  /** @type {Map<string, StreamableHTTPServerTransport>} */
  const transports = new Map();
  const sessions = new Set();

  async function open() {
    const name = randomUUID();
    /** @type {StreamableHTTPServerTransport} */
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => name,
      enableJsonResponse: isJson,
      ...(isResumable && { eventStore: new MemoryEventStore() }),
      onsessioninitialized: () => void transports.set(name, transport),
      onsessionclosed: () => {
        transports.delete(name);
        record.note(name, 'deleted');
      },
    });
    const session = new LegacySession({ name, record, sessions, hasCallStreams: !isJson });
    await session.connect(transport);
    return { transport, session, name };
  }

  return async (request, response) => {
    const id = request.headers['mcp-session-id'];
    if (id === undefined) {
      const { transport, session, name } = await open();
      await transport.handleRequest(request, response);
      // Whoever asks something else first is refused, and will not come back for this one.
      if (!transports.has(name)) await session.server.close();
      return;
    }
    const transport = transports.get(String(id));
    if (transport === undefined) return void response.writeHead(404).end();
    await transport.handleRequest(request, response);
    if (request.method === 'GET' && response.statusCode === 200) record.note(String(id), 'stream');
  };
}

/**
 * Every POST meets a new server instance, as the SDK wants it without sessions.
 * @param {import('./record.js').ServerRecord} record
 * @param {{isJson?: boolean}} [options]
 * @returns {Handle}
 */
export function stateless(record, { isJson = false } = {}) {
  let posts = 0;
  return async (request, response) => {
    if (request.method !== METHODS_WITHOUT_SESSION) {
      if (request.method === 'DELETE') record.note('none', 'deleted');
      return void response.writeHead(405, { Allow: METHODS_WITHOUT_SESSION }).end();
    }
    posts += 1;
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: isJson });
    const session = new LegacySession({
      name: `post ${posts}`,
      record,
      sessions: new Set(),
      hasCallStreams: !isJson,
    });
    response.on('close', () => void session.server.close());
    await session.connect(transport);
    await transport.handleRequest(request, response);
  };
}
