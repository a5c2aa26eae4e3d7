/**
 * The modern server of the matrix as a process: `modern.js stdio [file]`, whose processes share the record in the file, or
 * `modern.js http [port or socket]` for one over HTTP, which then prints its URL as a line of JSON, answers `GET /record`
 * with what it saw, and ends when its stdin does.
 */
import { createMcpHandler } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { createModernServer, ModernHost } from './modern-server.js';
import { ServerRecord } from './record.js';

/** @type {Record<string, (server: any) => Promise<void>>} */
const SEND_CHANGED = {
  tools: (server) => server.sendToolListChanged(),
  resources: (server) => server.sendResourceListChanged(),
  prompts: (server) => server.sendPromptListChanged(),
};

const [kind = '', place = '0'] = process.argv.slice(2);
const record = new ServerRecord(kind === 'stdio' && place !== '0' ? place : undefined);

if (kind === 'stdio') serveOnStdio();
else if (kind === 'http') void serveOnHttp(place);
else if (kind === 'websocket') void serveOnWebSocket(place);
else if (kind === 'grpc') void serveOverGrpc();
else {
  console.error('usage: modern.js stdio [file] | grpc [port] | (http | websocket) [port or socket]');
  process.exitCode = 2;
}

function serveOnStdio() {
  /** @type {any} */
  let server;
  const host = new ModernHost({
    record,
    publish: (change) => void (SEND_CHANGED[change]?.(server) ?? server.sendResourceUpdated({ uri: change })),
  });
  const transport = new StdioServerTransport();
  const start = transport.start.bind(transport);
  transport.start = () => {
    const { onmessage } = transport;
    transport.onmessage = (message) => {
      host.note('message', message);
      onmessage?.(message);
    };
    return start();
  };
  const factory = () => {
    server = createModernServer(host);
    return server;
  };
  serveStdio(factory, { legacy: 'reject', transport });
}

// As in the legacy server, what speaks HTTP is loaded only where it is spoken.

/** @param {string} place a port, of which 0 picks one */
async function serveOnWebSocket(place) {
  const { serveWebSockets, transportOver } = await import('./websocket.js');
  serveWebSockets({ path: '/mcp', place, record, connected: connectedBy(transportOver) });
}

async function serveOverGrpc() {
  const { serveGrpc, transportOver } = await import('./grpc.js');
  serveGrpc({ port: place ?? '0', record, connected: connectedBy(transportOver) });
}

/**
 * Returns what serves each connection.
 *
 * @param {(connection: any) => any} transportOver
 */
function connectedBy(transportOver) {
  /** @type {Set<any>} */
  const servers = new Set();
  const host = new ModernHost({
    record,
    publish: (change) => {
      for (const server of servers)
        void (SEND_CHANGED[change]?.(server) ?? server.sendResourceUpdated({ uri: change }));
    },
  });
  return (/** @type {any} */ socket) => {
    const transport = transportOver(socket);
    const start = transport.start.bind(transport);
    transport.start = () => {
      const { onmessage } = transport;
      transport.onmessage = (/** @type {object} */ message) => {
        host.note('message', message);
        onmessage?.(message);
      };
      return start();
    };
    const factory = () => {
      const server = createModernServer(host);
      servers.add(server);
      socket.on('close', () => servers.delete(server));
      return server;
    };
    serveStdio(factory, { legacy: 'reject', transport });
  };
}

/** @param {string} place a port, of which 0 picks one, or the path of a socket */
async function serveOnHttp(place) {
  const { handleModern } = await import('./modern-http.js');
  const { serveHttp } = await import('./serve-http.js');
  const host = new ModernHost({
    record,
    publish: (change) => {
      if (change in SEND_CHANGED) handler.bus.publish({ kind: `${change}_list_changed` });
      else handler.notify.resourceUpdated(change);
    },
  });
  const handler = createMcpHandler(() => createModernServer(host), { legacy: 'reject' });
  serveHttp({ path: '/mcp', place, record, handle: handleModern(handler.fetch, host) });
}
