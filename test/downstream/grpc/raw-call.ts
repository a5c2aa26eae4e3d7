import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';

export const SESSION_HEADERS = {
  ':method': 'POST',
  ':path': '/mcp.transport.v1.Mcp/Session',
  'content-type': 'application/grpc',
  te: 'trailers',
} as const;

/** One message with its length prefix, which may lie. */
export function prefixed(message: Buffer, { flag = 0, length = message.length } = {}): Buffer {
  const header = Buffer.alloc(5);
  header[0] = flag;
  header.writeUInt32BE(length, 1);
  return Buffer.concat([header, message]);
}

/** A JsonRpcLine of less than 16 kB. */
export function lineOf(message: object): Buffer {
  const line = Buffer.from(JSON.stringify(message));
  const length = line.length < 128 ? [line.length] : [(line.length & 0x7f) | 0x80, line.length >> 7];
  return prefixed(Buffer.concat([Buffer.from([0x0a, ...length]), line]));
}

/** How a call of HTTP/2 ended, as a client without gRPC sees it. */
export interface RawEnd {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  /** The code with which the stream was reset. */
  readonly code: number;
}

export function openConnection(t: ExecutionContext, port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  t.teardown(() => session.destroy());
  return session;
}

/** Opens a stream of HTTP/2 on which a test decides every byte. */
export function openCall(session: ClientHttp2Session, headers: Readonly<Record<string, string>> = {}) {
  const stream: ClientHttp2Stream = session.request({ ...SESSION_HEADERS, ...headers });
  let head: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  stream.on('response', (found) => {
    head = found;
  });
  stream.on('trailers', (found) => {
    trailers = found;
  });
  stream.on('error', () => undefined);
  stream.resume();
  // As clients of gRPC do: what is answered needs no more input.
  stream.on('end', () => stream.end());
  const ended = new Promise<RawEnd>((resolve) => {
    stream.on('close', () => resolve({ headers: head, trailers, code: stream.rstCode ?? 0 }));
  });
  return { stream, ended };
}

export const FRAME_TYPES = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6 } as const;
/** A flag of HEADERS. */
export const END_HEADERS = 4;

/** A client of HTTP/2 that writes frames as it likes, and reads nothing but what it must. */
export async function openFrames(port: number) {
  const socket: Socket = connectSocket({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  let isClosed = false;
  socket.on('close', () => {
    isClosed = true;
  });
  socket.resume();
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  const frame = (type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(stream, 5);
    return Buffer.concat([head, payload]);
  };
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(frame(FRAME_TYPES.settings, 0, 0));
  return { socket, frame, isClosed: () => isClosed };
}

/** HPACK without a table: the headers of a session. */
export function sessionHeaders(port: number, ...more: readonly (readonly [name: string, value: string])[]): Buffer {
  const literal = (name: string, value: string): Buffer =>
    Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat([
    literal(':method', 'POST'),
    literal(':scheme', 'http'),
    literal(':path', '/mcp.transport.v1.Mcp/Session'),
    literal(':authority', `127.0.0.1:${port}`),
    literal('content-type', 'application/grpc'),
    ...more.map(([name, value]) => literal(name, value)),
  ]);
}
