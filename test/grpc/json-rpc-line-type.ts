import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import protobuf from 'protobufjs';

const PROTO = join(dirname(createRequire(import.meta.url).resolve('mcp-grpc-transport/package.json')), 'proto');

/** The message as others have published it, read and written by protobufjs. */
export const JsonRpcLineType = new protobuf.Root()
  .loadSync(join(PROTO, 'mcp/transport/v1/mcp.proto'), { keepCase: true })
  .lookupType('mcp.transport.v1.JsonRpcLine');
