import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { loadPackageDefinition, Server, ServerCredentials } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { serveHttp } from './serve-http.js';

const PROTO = join(dirname(createRequire(import.meta.url).resolve('mcp-grpc-transport/package.json')), 'proto');
const UNLIMITED = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

/**
 * Listens for gRPC, and tells its port as the path of the URL at which `serveHttp` answers.
 *
 * @param {object} options
 * @param {string} options.port 0 picks one
 * @param {import('./record.js').ServerRecord} options.record
 * @param {(stream: any) => void} options.connected
 */
export function serveGrpc({ port: wanted, record, connected }) {
  const options = { includeDirs: [PROTO], keepCase: true, defaults: true };
  /** @type {any} */
  const { mcp } = loadPackageDefinition(loadSync('mcp/transport/v1/mcp.proto', options));
  const server = new Server(UNLIMITED);
  const open = new Set();
  server.addService(mcp.transport.v1.Mcp.service, {
    /** @param {any} stream */
    Session(stream) {
      open.add(stream);
      for (const end of ['close', 'cancelled', 'finish', 'error']) stream.on(end, () => open.delete(stream));
      connected(stream);
    },
  });
  server.bindAsync(`127.0.0.1:${wanted}`, ServerCredentials.createInsecure(), (error, port) => {
    if (error !== null) throw error;
    serveHttp({ path: `/${port}`, place: '0', record, scheme: 'grpc', others: () => open.size });
  });
}

/**
 * A transport of either SDK over a stream of the official library.
 *
 * @param {any} stream
 */
export function transportOver(stream) {
  /** @type {any} */
  const transport = {
    async start() {
      stream.on('data', (/** @type {{ line: string }} */ { line }) => transport.onmessage?.(JSON.parse(line)));
      stream.on('end', () => {
        transport.onclose?.();
        stream.end();
      });
      stream.on('cancelled', () => transport.onclose?.());
      stream.on('error', (/** @type {Error} */ error) => transport.onerror?.(error));
    },
    /** @param {object} message */
    async send(message) {
      if (stream.writable) stream.write({ line: JSON.stringify(message) });
    },
    async close() {
      stream.end();
    },
  };
  return transport;
}
