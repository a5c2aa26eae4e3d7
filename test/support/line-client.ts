import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';
import { Inbox } from '../contract/inbox.ts';
import { resetSocket } from './reset-socket.ts';

/** A client that writes and reads lines on a socket, and knows no more of it than `nc` does. */
export class LineClient {
  readonly socket: Socket;
  readonly #inbox = new Inbox();
  /** Resolves when the other side has ended, with what the last line was that had no end. */
  readonly ended: Promise<string>;
  /** Resolves when the other side has ended or reset the connection, or it is over. */
  readonly gone: Promise<unknown>;

  private constructor(socket: Socket) {
    this.socket = socket;
    let rest: string[] = [];
    socket.setEncoding('utf8');
    socket.on('error', () => undefined);
    socket.on('data', (text: unknown) => {
      const lines = String(text).split('\n');
      const end = lines.pop() ?? '';
      const [first, ...others] = lines;
      if (first === undefined) return rest.push(end);
      for (const line of [rest.join('') + first, ...others]) this.#inbox.put(line);
      rest = [end];
    });
    this.ended = new Promise((resolve) => socket.once('end', () => resolve(rest.join(''))));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    this.gone = Promise.race([this.ended, closed]);
  }

  static async connect(place: { readonly port: number } | { readonly path: string }): Promise<LineClient> {
    const options = 'port' in place ? { ...place, host: '127.0.0.1' } : place;
    const socket = connect({ ...options, allowHalfOpen: true } as TcpNetConnectOpts);
    const client = new LineClient(socket);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return client;
  }

  static async connectTls(options: ConnectionOptions): Promise<LineClient> {
    const socket = tlsConnect({ host: '127.0.0.1', ...options });
    const client = new LineClient(socket);
    await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    return client;
  }

  /** An object as one line, a text as it is. */
  write(message: object | string): void {
    this.socket.write(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`);
  }

  /** The next line. */
  next(): Promise<string> {
    return this.#inbox.next();
  }

  async nextMessage(): Promise<Message> {
    return JSON.parse(await this.next()) as Message;
  }

  /** Says no more, and reads on. */
  end(): void {
    this.socket.end();
  }

  reset(): Promise<void> {
    return resetSocket(this.socket);
  }
}

export interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}
