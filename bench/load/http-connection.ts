/**
 * HTTP/1.1 over one socket, by hand, one request at a time: what the load generator spends on a call must stay small
 * beside what any bridge does.
 */
import { connect, type Socket } from 'node:net';
import { EventReader } from './event-reader.ts';

/** A port, or the path of a Unix socket. */
export type Place = number | string;

export interface ResponseListener {
  onHead?(status: number, head: string): void;
  /** A JSON body, or the data of one event. */
  onMessage(message: Buffer, type: string): void;
  onEnd(): void;
  onFailure(error: Error): void;
}

const MAX_HEAD_BYTES = 16_384;

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'head' }
  | { readonly kind: 'length'; left: number }
  | { readonly kind: 'chunk-size' }
  | { readonly kind: 'chunk'; left: number }
  | { readonly kind: 'closed' };

export class HttpConnection {
  readonly #socket: Socket;
  #state: State = { kind: 'idle' };
  /** Bytes of a head or of a chunk's size that are not complete. */
  #partial: Buffer | undefined;
  #listener: ResponseListener | undefined;
  #events: EventReader | undefined;
  #body: Buffer[] = [];

  static open(place: Place): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket =
        typeof place === 'string' ? connect(place) : connect({ port: place, host: '127.0.0.1', noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new HttpConnection(socket));
      });
    });
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      try {
        this.#take(chunk);
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)));
      }
    });
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the bridge closed the connection')));
  }

  get isClosed(): boolean {
    return this.#state.kind === 'closed';
  }

  send(request: Buffer | string, listener: ResponseListener): void {
    if (this.#state.kind === 'closed') return listener.onFailure(new Error('the bridge closed the connection'));
    this.#state = { kind: 'head' };
    this.#listener = listener;
    this.#socket.write(request);
  }

  close(): void {
    this.#state = { kind: 'closed' };
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    const isAwaited = this.#state.kind !== 'idle' && this.#state.kind !== 'closed';
    this.close();
    if (isAwaited) this.#listener?.onFailure(error);
  }

  #take(chunk: Buffer): void {
    let rest: Buffer | undefined = chunk;
    while (rest !== undefined && rest.length > 0) rest = this.#step(rest);
  }

  /** Reads one part of the response; returns what comes after it. */
  #step(chunk: Buffer): Buffer | undefined {
    const state = this.#state;
    switch (state.kind) {
      case 'head':
        return this.#readHead(chunk);
      case 'length':
      case 'chunk': {
        const part = chunk.subarray(0, state.left);
        state.left -= part.length;
        if (part.length > 0) this.#readBody(part);
        if (state.left === 0 && state.kind === 'length') this.#end();
        else if (state.left === 0) this.#state = { kind: 'chunk-size' };
        return chunk.subarray(part.length);
      }
      case 'chunk-size':
        return this.#readChunkSize(chunk);
      case 'idle':
        throw new Error(`bytes that nobody asked for: ${chunk.toString('latin1', 0, 60)}`);
      case 'closed':
        return undefined;
    }
  }

  #readHead(chunk: Buffer): Buffer | undefined {
    const bytes: Buffer = this.#partial === undefined ? chunk : Buffer.concat([this.#partial, chunk]);
    const end = bytes.indexOf('\r\n\r\n');
    if (end === -1) {
      if (bytes.length > MAX_HEAD_BYTES) throw new Error('a response head without end');
      this.#partial = bytes;
      return undefined;
    }
    this.#partial = undefined;
    const head = bytes.toString('latin1', 0, end);
    const status = Number(head.slice(9, 12));
    this.#listener?.onHead?.(status, head);
    const isStream = /^content-type: *text\/event-stream/im.test(head);
    this.#events = isStream ? new EventReader((type, data) => this.#listener?.onMessage(data, type)) : undefined;
    const length = /^content-length: *(\d+)/im.exec(head)?.[1];
    if (length !== undefined && length !== '0') this.#state = { kind: 'length', left: Number(length) };
    else if (/^transfer-encoding: *chunked/im.test(head)) this.#state = { kind: 'chunk-size' };
    else this.#end();
    return bytes.subarray(end + 4);
  }

  #readChunkSize(chunk: Buffer): Buffer | undefined {
    const bytes: Buffer = this.#partial === undefined ? chunk : Buffer.concat([this.#partial, chunk]);
    // The line end of the chunk before stands in front of every size but the first.
    const start = bytes[0] === 13 ? 2 : 0;
    const end = bytes.indexOf('\r\n', start);
    if (end === -1) {
      this.#partial = bytes;
      return undefined;
    }
    const left = Number.parseInt(bytes.toString('latin1', start, end), 16);
    if (left > 0) {
      this.#partial = undefined;
      this.#state = { kind: 'chunk', left };
      return bytes.subarray(end + 2);
    }
    if (bytes.length < end + 4) {
      this.#partial = bytes;
      return undefined;
    }
    this.#partial = undefined;
    this.#end();
    return bytes.subarray(end + 4);
  }

  #readBody(part: Buffer): void {
    if (this.#events === undefined) this.#body.push(part);
    else this.#events.push(part);
  }

  #end(): void {
    const [first] = this.#body;
    const body = this.#body.length > 1 ? Buffer.concat(this.#body) : first;
    this.#body = [];
    if (body !== undefined) this.#listener?.onMessage(body, 'message');
    this.#state = { kind: 'idle' };
    this.#listener?.onEnd();
  }
}
