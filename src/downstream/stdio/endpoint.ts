import type { Readable, Writable } from 'node:stream';
import type { ConnectionClient } from '../duplex/connection-peer.ts';
import { DuplexEndpoint, type DuplexEndpointOptions } from '../duplex/endpoint.ts';
import { LineConnection } from '../duplex/line-connection.ts';

export interface StdioEndpointOptions extends Omit<DuplexEndpointOptions, 'openConnection' | 'client' | 'unreadable'> {
  readonly input: Readable;
  readonly output: Writable;
}

/** Whoever holds the pipes is the one client there is. */
const CLIENT: ConnectionClient = {
  transport: 'stdio',
  principal: undefined,
  environment: undefined,
  callerName: 'stdio',
  headers: undefined,
};

/** One client on a pair of pipes: a message a line. */
export class StdioEndpoint extends DuplexEndpoint {
  constructor(options: StdioEndpointOptions) {
    super({
      ...options,
      client: CLIENT,
      unreadable: 'is-skipped',
      openConnection: (listener) => new LineConnection(options, listener),
    });
  }
}
