/** A client over WebSocket, by hand: all calls of a client share its one connection. */
import { connect } from 'node:net';
import type { Client, Identity } from './client.ts';
import { Mailbox } from './mailbox.ts';
import { openMessageClient } from './message-client.ts';

const TEXT = 0x81;
/** Masked bytes are the bytes themselves, which saves the load generator the work and the bridge nothing. */
const NO_MASK = '\0\0\0\0';

/** The head of a frame for so many bytes of text, in characters of one byte. [RFC 6455 5.2] */
function encodeHead(bodyBytes: number): string {
  const length =
    bodyBytes < 126
      ? [0x80 | bodyBytes]
      : bodyBytes < 65_536
        ? [0x80 | 126, bodyBytes >> 8, bodyBytes & 0xff]
        : [
            0x80 | 127,
            0,
            0,
            0,
            0,
            bodyBytes >>> 24,
            (bodyBytes >> 16) & 0xff,
            (bodyBytes >> 8) & 0xff,
            bodyBytes & 0xff,
          ];
  return String.fromCharCode(TEXT, ...length) + NO_MASK;
}

/** Cuts what a server sends into messages; it sends frames of text only, whole ones. */
class FrameReader {
  readonly #deliver: (message: Buffer) => void;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  /** How much has to be there before anything can be read. */
  #wanted = 2;

  constructor(deliver: (message: Buffer) => void) {
    this.#deliver = deliver;
  }

  push(chunk: Buffer): void {
    this.#kept.push(chunk);
    this.#keptBytes += chunk.length;
    if (this.#keptBytes < this.#wanted) return;
    const bytes = this.#kept.length === 1 ? chunk : Buffer.concat(this.#kept);
    const rest = bytes.subarray(this.#read(bytes));
    this.#kept = rest.length === 0 ? [] : [rest];
    this.#keptBytes = rest.length;
  }

  #read(bytes: Buffer): number {
    let at = 0;
    for (;;) {
      const left = bytes.length - at;
      this.#wanted = 2;
      if (left < 2) return at;
      const short = bytes[at + 1] as number;
      const head = short < 126 ? 2 : short === 126 ? 4 : 10;
      this.#wanted = head;
      if (left < head) return at;
      const length =
        short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
      this.#wanted = head + length;
      if (left < this.#wanted) return at;
      if (bytes[at] === TEXT) this.#deliver(bytes.subarray(at + head, at + this.#wanted));
      at += this.#wanted;
    }
  }
}

export async function openWebSocketClient(
  target: { readonly port: number; readonly path: string },
  identity: Identity,
): Promise<Client> {
  const socket = connect({ port: target.port, host: '127.0.0.1', noDelay: true });
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const upgraded = new Promise<void>((resolve, reject) => {
    socket.once('data', (answer: Buffer) =>
      answer.toString('latin1').startsWith('HTTP/1.1 101') ? resolve() : reject(new Error('no WebSocket')),
    );
  });
  socket.write(
    `GET ${target.path} HTTP/1.1\r\nHost: 127.0.0.1:${target.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mcp\r\n\r\n',
  );
  await upgraded;
  const mailbox = new Mailbox();
  const reader = new FrameReader((message) => mailbox.deliver(message));
  socket.on('data', (chunk: Buffer) => reader.push(chunk));
  socket.on('error', (error) => mailbox.fail(error));
  socket.on('close', () => mailbox.fail(new Error('the bridge closed the connection')));
  const way = {
    head: encodeHead,
    tail: '',
    // The next call changes the bytes of this one, and the system may not have taken them yet.
    write: (bytes: Buffer) => void socket.write(Buffer.from(bytes)),
    close: () => void socket.destroy(),
  };
  return openMessageClient(way, mailbox, identity);
}
