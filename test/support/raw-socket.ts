import { connect, type Socket } from 'node:net';
import { waitFor } from './wait-for.ts';

/** A TCP connection on which a test decides every byte, and whether it reads. */
export class RawSocket {
  readonly socket: Socket;
  #received = '';
  #isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#isClosed = true;
    });
  }

  static async connect(port: number): Promise<RawSocket> {
    const socket = connect({ port, host: '127.0.0.1' });
    const raw = new RawSocket(socket);
    await new Promise<void>((resolve) => socket.once('connect', resolve));
    return raw;
  }

  /** Starts reading and goes on with it. */
  read(): this {
    if (this.socket.listenerCount('data') === 0) {
      this.socket.on('data', (chunk: string) => {
        this.#received += chunk;
      });
    }
    this.socket.resume();
    return this;
  }

  write(text: string): void {
    this.socket.write(text);
  }

  /** Sends the head of a request, with its body. */
  request(method: string, path: string, headers: Readonly<Record<string, string>>, body = ''): void {
    const all = { Host: '127.0.0.1', 'Content-Length': String(Buffer.byteLength(body)), ...headers };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    this.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  }

  get received(): string {
    return this.#received;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async until(pattern: RegExp): Promise<string> {
    await waitFor(() => pattern.test(this.#received), {
      message: () => `${pattern} in ${JSON.stringify(this.#received.slice(-200))}`,
    });
    return this.#received;
  }

  /** Everything, once the other side has closed. */
  async all(): Promise<string> {
    this.read();
    await waitFor(() => this.#isClosed, { message: 'the end of the connection' });
    return this.#received;
  }

  destroy(): void {
    this.socket.destroy();
  }
}
