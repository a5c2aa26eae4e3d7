import { Agent, type AgentOptions } from 'node:http';
import { connect, type Socket } from 'node:net';

/** Connects to one Unix socket or named pipe, whatever it is asked for. */
export class SocketAgent extends Agent {
  readonly #path: string;

  constructor(path: string, options: AgentOptions) {
    super(options);
    this.#path = path;
  }

  override createConnection(): Socket {
    return connect({ path: this.#path });
  }
}
