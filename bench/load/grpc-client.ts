/** A client over gRPC, on `node:http2` and by hand: all calls of a client share the one stream of its session. */
import { connect } from 'node:http2';
import type { Client, Identity } from './client.ts';
import { Mailbox } from './mailbox.ts';
import { openMessageClient } from './message-client.ts';

/** Flag of compression, and the length. */
const PREFIX_BYTES = 5;
/** Field 1 of a message, of text. */
const LINE = 0x0a;
/** More than any answer, so that the window is no part of what is measured. */
const WINDOW_BYTES = 64 * 1024 * 1024;

function encodeVarint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...encodeVarint(Math.floor(value / 128))];
}

/** What precedes so many bytes of text, in characters of one byte: the prefix of a message, and the tag of its field. */
function encodeHead(bodyBytes: number): string {
  const field = [LINE, ...encodeVarint(bodyBytes)];
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(field.length + bodyBytes, 1);
  return String.fromCharCode(...prefix, ...field);
}

/** Returns the text of a message, whose fields are all of text. */
function readLine(message: Buffer): Buffer {
  let at = 0;
  while (at < message.length) {
    const tag = message[at] as number;
    let length = 0;
    for (let scale = 1; ; scale *= 128) {
      at += 1;
      const byte = message[at] as number;
      length += (byte % 128) * scale;
      if (byte < 128) break;
    }
    at += 1;
    if (tag === LINE) return message.subarray(at, at + length);
    at += length;
  }
  throw new Error('a message without a line');
}

/** Cuts what a server sends into messages. */
class MessageReader {
  readonly #deliver: (line: Buffer) => void;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  /** How much has to be there before anything can be read. */
  #wanted = PREFIX_BYTES;

  constructor(deliver: (line: Buffer) => void) {
    this.#deliver = deliver;
  }

  push(chunk: Buffer): void {
    this.#kept.push(chunk);
    this.#keptBytes += chunk.length;
    if (this.#keptBytes < this.#wanted) return;
    let rest = this.#kept.length === 1 ? chunk : Buffer.concat(this.#kept);
    for (;;) {
      this.#wanted = PREFIX_BYTES;
      if (rest.length < this.#wanted) break;
      this.#wanted += rest.readUInt32BE(1);
      if (rest.length < this.#wanted) break;
      this.#deliver(readLine(rest.subarray(PREFIX_BYTES, this.#wanted)));
      rest = rest.subarray(this.#wanted);
    }
    this.#kept = rest.length === 0 ? [] : [rest];
    this.#keptBytes = rest.length;
  }
}

export async function openGrpcClient(port: number, identity: Identity): Promise<Client> {
  const connection = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: WINDOW_BYTES } });
  await new Promise<void>((resolve, reject) => connection.once('connect', () => resolve()).once('error', reject));
  connection.setLocalWindowSize(WINDOW_BYTES);
  const stream = connection.request({
    ':method': 'POST',
    ':path': '/mcp.transport.v1.Mcp/Session',
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  const mailbox = new Mailbox();
  const reader = new MessageReader((line) => mailbox.deliver(line));
  stream.on('data', (chunk: Buffer) => reader.push(chunk));
  stream.on('error', (error) => mailbox.fail(error));
  stream.on('close', () => mailbox.fail(new Error('the bridge closed the stream')));
  connection.on('error', (error) => mailbox.fail(error));
  const way = {
    head: encodeHead,
    tail: '',
    // The next call changes the bytes of this one, and the system may not have taken them yet.
    write: (bytes: Buffer) => void stream.write(Buffer.from(bytes)),
    close: () => {
      stream.close();
      connection.destroy();
    },
  };
  return openMessageClient(way, mailbox, identity);
}
